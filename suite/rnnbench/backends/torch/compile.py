"""Route compile: torch.compile of the whole module as one graph, kept as a function that loads without compiling.

`aot_compile` is torch.compile's own way to a function that can be saved. Beside it the cache has Inductor's folder,
with the machine code that the function loads.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._guards import TracingContext, tracing
from torch._inductor.utils import run_and_get_code

from rnnbench.backends.base import Artifact, OperationStage, Request
from rnnbench.backends.torch.generated import calls, lowered_code
from rnnbench.backends.torch.inductor import failed, inductor_in, network, notes, origin, recording
from rnnbench.backends.torch.network import example_inputs, held_state, recorded_module
from rnnbench.backends.torch.recorded import RecordedStream
from rnnbench.backends.torch.store import Kept, kept, sha256, source_digest
from rnnbench.backends.torch.stream import Opener

OPTIONS: dict[str, Any] = {
    "cpp_wrapper": True,
    "size_asserts": False,
    "guard_filter_fn": torch.compiler.skip_all_guards_unsafe,
}
"""Calls between kernels in C++ and not in Python, which takes a third off an unrolled LSTM of 128; and no guards, which
would check once more in every call what the session has checked."""


def build(request: Request, cache: Path) -> tuple[Kept, Opener]:
    """The compiled function in the cache, loaded with the module whose weights and buffers it reads."""
    source = source_digest(request)
    whole = network(request)
    with inductor_in(cache):
        found = kept(cache, source, partial(_make, request, whole, source))
    return found, partial(_open, request, whole, found.path, cache)


def _open(request: Request, whole: nn.Module, path: Path, cache: Path) -> RecordedStream:
    module = recorded_module(request, whole)
    # What was saved of a scan (torch 2.13) installs a guard where it is loaded, and looks for a trace to install it in.
    with inductor_in(cache), tracing(TracingContext(None)), path.open("rb") as file:
        function: Any = torch.compiler.load_compiled_function(file, external_data={"module": module})
    function.disable_guard_check()
    return RecordedStream(function, function, held_state(request, module), request.strategy.state == "stitched")


def _make(request: Request, whole: nn.Module, source: str, path: Path) -> Artifact:
    module = recorded_module(request, whole)

    def program(*arguments: Tensor) -> Any:
        return module(*arguments)

    def compiled() -> Any:
        graph: Any = torch.compile(program, fullgraph=True, dynamic=False, options=OPTIONS)
        return graph.aot_compile((example_inputs(request), {}))

    with recording(request):
        try:
            function, codes = run_and_get_code(compiled)
        except Exception as error:
            raise failed("torch.compile", error) from error
    function.save_compiled_function(str(path), external_data={"module": module})
    code = "\n".join(codes)
    return Artifact(
        source_digest=source,
        digest=sha256(source, code),
        nbytes=path.stat().st_size,
        operations={OperationStage.COMPILED: calls(code)},
        lowered=lowered_code(request.model, code, request.strategy.copies or 1),
        origin=origin(request),
        math="exact",
        flags=tuple(f"{name}={value}" for name, value in OPTIONS.items() if value in (True, False)),
        notes=(
            *notes(request),
            "dispatch guards are dropped: the session has checked what they would check",
        ),
    )
