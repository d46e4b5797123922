"""Programs of other frameworks, through IREE's importers: the routes, what each of them supports, and its module.

An importer makes a pure function `step` that takes x and the state, and returns y and the state after it. TensorFlow's
may keep the state inside instead, and so does that of a user's StableHLO. The importer decides what the framework's
RNN operator becomes: a loop in that of ONNX, a copy of the cell for each step in those of torch and Keras.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import cast

from rnnbench.backends.base import Request
from rnnbench.backends.iree.imported_apart import import_apart
from rnnbench.backends.shared import onnx_graphs
from rnnbench.backends.tensorflow import ml_program
from rnnbench.backends.torch import export as torch_export
from rnnbench.disk import read_cached, write_text
from rnnbench.model_files import FileNetwork
from rnnbench.rnn import Model

PACKAGES = {
    "onnx": ("onnx",),
    "stablehlo": ("jax", "jaxlib"),
    "torch": ("torch-mlir", "torch"),
    "tensorflow": ("tensorflow", "keras"),
}
"""By route, the packages that it needs besides IREE itself. Their versions decide the program."""

QUANTISED_LSTM = "com.microsoft.DynamicQuantizeLSTM"
"""An LSTM that ONNX Runtime's quantiser has quantised."""
NOT_IN_FLOAT64 = frozenset(
    (
        *("LSTM", "GRU", "RNN", "Tanh", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Erf", "Gelu", "Mish"),
        *("tanh", "sine", "cosine", "tan", "atan2", "chlo.erf", "chlo.erfc"),
        *("lstm", "lstm_cell", "gru", "gru_cell", "rnn_tanh", "rnn_tanh_cell", "sin", "cos", "erf", "gelu"),
    )
)
"""Operators of ONNX, StableHLO and ATen for which IREE calls tanh, sin, cos, asin, acos, atan or erf. In float32 it
has polynomials."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Imported:
    """A module with a function `step`, whose operations are at `copy n` where they came from a copy of the cell."""

    text: str
    x: Shape
    """The shape of x in the program. Its layout in memory is that of the suite."""
    state: tuple[Shape, ...]
    """The shapes of the state: an array for each of h and c, or one for all; none where a call starts from zeros."""


def imported(request: Request, cache: Path) -> Imported:
    """The module of a request, or the one that an earlier build left. Raises BuildError.

    The framework to import from (torch, JAX) is imported here alone: loading a program does not need it.
    """
    path = cache / f"imported-{_key(request)}.json"
    if (kept := read_cached(path, _read)) is not None:
        return kept
    text = import_apart(request, _variables(request)) if is_apart(request) else import_here(request)
    write_text(path, text)
    return _read(path)


def import_here(request: Request) -> str:
    """The module of a request, as JSON, made in this process. Raises BuildError."""
    module = importlib.import_module(f"rnnbench.backends.iree.imported_{request.route}")
    return json.dumps(asdict(cast("Callable[[Request], Imported]", module.import_module)(request)))


def is_apart(request: Request) -> bool:
    """Whether the importer runs in a process of its own, since it cannot share one with the device's driver."""
    return request.route == "tensorflow" and request.device != "cpu"


def _read(path: Path) -> Imported:
    fields = json.loads(path.read_text())
    return Imported(fields["text"], tuple(fields["x"]), tuple(tuple(shape) for shape in fields["state"]))


def unsupported(request: Request) -> str:
    """Why the importer of a route makes no program of a request; empty where it does."""
    if request.file is not None:
        return _no_function(request.file)
    time = request.strategy.time
    if request.route == "stablehlo":
        return (
            "StableHLO has no RNN operator: JAX and TensorFlow write a loop or copies of the cell."
            if time == "fused"
            else ""
        )
    if request.route == "tensorflow":
        return ml_program.unsupported(request)
    if request.route == "onnx":
        return onnx_graphs.unsupported(request) or (_onnx_operator(request.stack) if time == "fused" else "")
    return torch_export.unsupported(request)


def _no_function(network: FileNetwork) -> str:
    """Which operator of a file is not imported, or has no function in float64; empty where each is and has."""
    if QUANTISED_LSTM in network.operators:
        return f"IREE's importer of ONNX has the operators of ONNX, and not {QUANTISED_LSTM}."
    missing = [name for name in network.operators if name in NOT_IN_FLOAT64]
    if "float64" not in network.types or not missing:
        return ""
    return (
        f"IREE's linker has no functions of the C library, and {missing[0]} in float64 calls one (undefined symbol). "
        "With --iree-llvmcpu-link-embedded=false there is one, and each session keeps a file descriptor (3.13)."
    )


def _onnx_operator(model: Model) -> str:
    """What IREE's lowering of the operators LSTM, GRU and RNN refuses.

    It ignores the clip of an RNN, so that is not refused here: it is a known failure (cases/expectations.yaml).
    """
    if model.clip is not None and model.cell != "rnn":
        return f"IREE's lowering of ONNX's {model.cell.upper()} has no clip."
    if model.direction == "reverse":
        return "IREE's lowering of ONNX's operators has no direction that only runs backwards."
    if model.direction == "bidirectional" and model.cell != "lstm":
        return f"IREE's lowering of ONNX's {model.cell.upper()} runs forwards only; that of its LSTM runs both ways."
    return ""


def stand_ins(request: Request) -> str:
    """What stands in for what the importers do not have; empty where nothing has to."""
    sentences = []
    if request.strategy.time == "fused":
        form = "a loop over the cell" if request.route == "onnx" else "a copy of the cell for each step"
        sentences.append(f"IREE has no RNN operator: the importer makes {form} of it.")
    if request.file is not None and request.file.format == "savedmodel" and request.strategy.state != "none":
        sentences.append(ml_program.IN_VARIABLES)
    if request.strategy.state == "stateful" and not encloses(request):
        sentences.append("Imported functions are pure: the session holds the state's buffers.")
    return " ".join(sentences)


def encloses(request: Request) -> bool:
    """Whether the imported module keeps the state. Other modules are pure."""
    keeps = request.route == "tensorflow" or (request.route == "stablehlo" and request.file is not None)
    return keeps and request.strategy.state == "stateful"


def environment(request: Request) -> dict[str, str]:
    """The variables of a worker that the framework to import from reads when it is imported."""
    return {} if is_apart(request) else _variables(request)


def _variables(request: Request) -> dict[str, str]:
    """No framework gets a GPU: each only writes the module that IREE compiles."""
    if request.route == "tensorflow":
        return ml_program.environment(request.threads)
    return {"JAX_PLATFORMS": "cpu"} if request.route == "stablehlo" and request.device != "cpu" else {}


def _key(request: Request) -> str:
    """The name of a module: a digest of the request, its weights, and the versions that import it."""
    decisive = {
        "route": request.route,
        "model": request.model.params,
        "time": request.strategy.time,
        "carried": request.strategy.state != "none",
        "encloses": encloses(request),
        "chunk": request.strategy.chunk,
        "batch": request.batch,
        "versions": [version(name) for name in ("iree-base-compiler", *PACKAGES[request.route])],
        "weights": request.weights.digest(request.model),
    }
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:32]


def located(operation: str, copy: int) -> str:
    """A line of MLIR with the location of a copy of the cell."""
    return f'{operation} loc("copy {copy}")'
