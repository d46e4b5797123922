"""What the routes can be asked for, and why not; without torch, which is not imported here."""

from __future__ import annotations

from rnnbench.backends.base import ACTIVATIONS, LENGTHS, Request

DTYPES = ("float32", "float64", "float16", "bfloat16")
TIMES = {
    "eager": ("fused", "looped"),
    "script": ("looped", "unrolled", "unrolled:k"),
    "compile": ("fused", "looped", "unrolled", "unrolled:k"),
    "aoti": ("fused", "looped", "unrolled", "unrolled:k"),
}
"""Values of `time` by route; the default route first."""
NO_PACKED = "Dynamo and torch.export refuse packed sequences, which alone tell nn's RNNs of a length for each row"
UPSTREAM = {NO_PACKED: "pytorch/pytorch#112044"}
"""The issues of reasons that have one."""
COMPILED = ("compile", "aoti")
"""Routes that go through Inductor."""


def unsupported(request: Request) -> str:
    """Why a request cannot be met; empty where it can."""
    strategy = request.strategy
    if request.route not in TIMES:
        return f"torch's routes are {', '.join(TIMES)}, and not {request.route}"
    if request.precision.uniform not in DTYPES:
        return f"torch computes an RNN in one dtype throughout: {', '.join(DTYPES)}"
    if ("unrolled:k" if ":" in strategy.time else strategy.time) not in TIMES[request.route]:
        return _no_time(request)
    return _not_fused(request) if strategy.time == "fused" else ""


def covered(request: Request) -> frozenset[str]:
    """The extras that a request's program has."""
    if request.route == "eager":
        return frozenset({LENGTHS} if request.strategy.time == "fused" else {ACTIVATIONS, LENGTHS})
    return frozenset() if request.strategy.time == "fused" else frozenset({ACTIVATIONS})


def _not_fused(request: Request) -> str:
    model = request.model
    if model.cell == "counter":
        return "torch.nn has no operator that counts"
    if not model.reset_after:
        return "nn.GRU applies its reset gate after the recurrent product, and this model before it"
    if request.ragged and request.route in COMPILED:
        return NO_PACKED
    if model.other_activations:
        return f"nn.{model.cell.upper()} has a sigmoid and a tanh of its own, and no other activations"
    if model.clip is not None or model.cell_clip is not None:
        return f"nn.{model.cell.upper()} clips nothing"
    return ""


def _no_time(request: Request) -> str:
    if request.route == "eager":
        return "operators run one by one as Python calls them: there is no program in which to unroll a loop"
    return f"a traced nn.{request.model.cell.upper()} is the eager operator again: ask torch:eager for it"
