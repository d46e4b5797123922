"""Which requests each route supports, the reasons for the others, and the variables of its worker's environment."""

from __future__ import annotations

from rnnbench.backends.base import Request
from rnnbench.backends.shared import CUDA, ENVIRONMENT, NO_GPU, too_many_threads
from rnnbench.rnn import FUSED, LAYER_PRIMITIVES, Model

ROUTES = ("graph", "xla", "keras", "keras-xla")
READS = {
    **dict.fromkeys(("keras", "keras-xla"), frozenset({"keras"})),
    **dict.fromkeys(("graph", "xla"), frozenset({"savedmodel"})),
}
IN_VARIABLES = "The state is copied to the variables of the file before each call, and from them after it."
AUTHORS = dict.fromkeys(("graph", "xla"), LAYER_PRIMITIVES | {"while"})


_COMMON = {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "2"}


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
        **_COMMON,
        **NO_GPU,
    }


def variables(request: Request) -> dict[str, str]:
    """What the environment of a request's worker must have.

    On CUDA, TensorFlow takes all of the GPU's memory when it starts unless it is told to let it grow. XLA would join
    operations into CUDA graphs, and the launch is `stream`.
    Source: tensorflow.org/guide/gpu, "Limiting GPU memory growth".
    """
    if request.device != CUDA:
        return environment(request.threads)
    pools = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
    of_gpu = {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "XLA_FLAGS": "--xla_gpu_enable_command_buffer="}
    return {**pools, **_COMMON, **of_gpu, **ENVIRONMENT}


def unsupported(request: Request) -> str:
    """Why a request cannot be met; empty where it can."""
    if request.file is not None:
        return too_many_threads(request)
    if request.precision.uniform not in ("float32", "float64"):
        return "TensorFlow's programs are built in float32 or float64, in one dtype throughout."
    unsupported_by = _unsupported_by_keras if is_keras(request.route) else _unsupported_by_cells
    return too_many_threads(request) or unsupported_by(request)


def _unsupported_by_cells(request: Request) -> str:
    return _not_block_lstm(request) if request.strategy.time == FUSED else ""


def _not_block_lstm(request: Request) -> str:
    """Why TensorFlow's operator for LSTMs cannot compute a request; empty where it can."""
    model = request.model
    if request.device == CUDA:
        return "On CUDA the fused form is cuDNN's operator, on the route keras."
    if is_compiled(request.route):
        return "XLA has no kernel for TensorFlow's LSTM operator (BlockLSTMV2). It is on the route graph."
    if not isinstance(model, Model) or model.cell != "lstm":
        return "TensorFlow's recurrent operator for the processor (BlockLSTMV2) is for LSTMs alone."
    if model.projection or model.clip is not None or model.other_activations:
        return "TensorFlow's LSTM operator (BlockLSTMV2) has no projection, no clip and no other activations."
    if request.precision.uniform != "float32":
        return "TensorFlow's LSTM operator (BlockLSTMV2) has no kernel for float64."
    if request.ragged:
        return "TensorFlow's LSTM operator (BlockLSTMV2) has one length for all rows."
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
    return _not_cudnn(request) if time == FUSED and request.device == CUDA else ""


def _not_cudnn(request: Request) -> str:
    """Why Keras does not use cuDNN for a layer; empty where it does. Source: keras/src/backend/tensorflow/rnn.py"""
    model = request.stack
    if is_compiled(request.route):
        return "XLA has no kernel for cuDNN's operator (CudnnRNNV3). It is on the route keras."
    if not model.bias or model.activation != "tanh" or model.recurrent_activation != "sigmoid":
        return "Keras uses cuDNN for layers with biases and the standard activations alone."
    if model.cell == "gru" and not model.reset_after:
        return "Keras uses cuDNN for a GRU with reset_after alone."
    return ""
