"""Which requests each route supports, the reasons for the others, and the variables of its worker's environment."""

from __future__ import annotations

from rnnbench.backends.base import Request
from rnnbench.rnn import TOGETHER

ROUTES = ("graph", "xla", "keras", "keras-xla")
READS = {
    **dict.fromkeys(("keras", "keras-xla"), frozenset({"keras"})),
    **dict.fromkeys(("graph", "xla"), frozenset({"savedmodel"})),
}
IN_VARIABLES = "The state is copied to the variables of the file before each call, and from them after it."
AUTHORS = dict.fromkeys(("graph", "xla"), frozenset({"concat", "columns", "div", "mean", "sqrt", "while", *TOGETHER}))


def is_keras(route: str) -> bool:
    return route.startswith("keras")


def is_compiled(route: str) -> bool:
    """Whether XLA compiles the route's programs."""
    return route.endswith("xla")


def environment(threads: int) -> dict[str, str]:
    """The sizes of the thread pools. XLA has a pool of its own; it can only be told whether to use several threads.

    Several threads work on one operation. Two operations never run at once, because a second pool of the same size
    would double the number of threads.
    """
    pools = {"TF_NUM_INTRAOP_THREADS": str(threads), "TF_NUM_INTEROP_THREADS": "1"}
    return {
        **pools,
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'false' if threads == 1 else 'true'}",
        "KERAS_BACKEND": "tensorflow",
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }


def unsupported(request: Request) -> str:
    """Why a request cannot be met; empty where it can."""
    if request.precision.uniform not in ("float32", "float64"):
        return "TensorFlow's programs are built in float32 or float64, in one dtype throughout."
    if request.file is not None:
        return ""
    return _unsupported_by_keras(request) if is_keras(request.route) else _unsupported_by_cells(request)


def _unsupported_by_cells(request: Request) -> str:
    if request.strategy.time == "fused":
        return "TensorFlow has no RNN operator for the CPU. The fused form of Keras is on the route keras."
    return ""


def _unsupported_by_keras(request: Request) -> str:
    model, time = request.stack, request.strategy.time
    if model.cell == "counter":
        return "Keras has no layer for the counter."
    if model.projection:
        return "keras.layers.LSTM has no projection."
    if model.clip is not None or model.cell_clip is not None:
        return "The RNN layers of Keras have no clip."
    if time.startswith("unrolled:"):
        return "A layer of Keras is either looped or completely unrolled (unroll=True)."
    if time == "fused" and model.cell == "rnn":
        return "keras.layers.SimpleRNN has no fused form (use_cudnn)."
    return ""
