"""OpenVINO's CPU device: its settings, the files of a build, and how the Python API loads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from rnnbench.backends.base import Request
from rnnbench.backends.openvino.backend import INT8_GROUP

DEVICE = "CPU"
BLOB = "compiled.blob"
MODEL = "model.xml"


INT8_GROUPS = {"int8_weights": 0, "int8_dynamic": INT8_GROUP, "int8_static": 0}
"""Elements of x or h that share a scale, by form of int8. With 0 the device quantises neither by itself."""


def config(request: Request) -> dict[str, object]:
    """One stream. Without the precision hint, a machine with AMX computes in bfloat16.

    One thread is pinned, as by default on Linux: binding it costs less in each call. Several would wait for the core
    of each where other processes use it.
    """
    groups = INT8_GROUPS.get(request.precision.int8 or "")
    return {
        "INFERENCE_NUM_THREADS": request.threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "ENABLE_CPU_PINNING": request.threads == 1,
        **({} if groups is None else {"DYNAMIC_QUANTIZATION_GROUP_SIZE": groups}),
    }


def export(compiled: Any, folder: Path) -> None:
    """Write a compiled model into `folder`."""
    exported = compiled.export_model()
    # Older releases give bytes, newer ones a stream.
    (folder / BLOB).write_bytes(exported if isinstance(exported, bytes) else exported.getvalue())


def files(folder: Path) -> tuple[Path, ...]:
    """The files of the build in `folder`: a compiled model, or one to compile at each load."""
    blob, model = folder / BLOB, folder / MODEL
    return (blob,) if blob.exists() else (model, model.with_suffix(".bin"))


def save(model: Any, folder: Path) -> bytes:
    """Write a model that is not compiled into `folder`, and return its bytes."""
    path = folder / MODEL
    ov.serialize(model, path)
    return path.read_bytes() + path.with_suffix(".bin").read_bytes()


def _imported(core: Any, blob: Any, request: Request) -> Any:
    """An exported model. Before OpenVINO 2025.4 it is taken as bytes alone, which are copied."""
    try:
        return core.import_model(blob, DEVICE, config(request))
    except TypeError:
        return core.import_model(blob.data.tobytes(), DEVICE, config(request))


class Model:
    """A compiled model, loaded from the files of a build through the Python API."""

    def __init__(self, folder: Path, request: Request) -> None:
        core = ov.Core()
        self._blob: Any = None
        """The memory map of an exported model. It must exist as long as the model, which does not hold it."""
        if (folder / BLOB).exists():
            # Mode "c" is copy on write: OpenVINO takes no read-only array.
            self._blob = ov.Tensor(np.memmap(folder / BLOB, np.uint8, "c"), shared_memory=True)
            self._compiled = _imported(core, self._blob, request)
        else:
            self._compiled = core.compile_model(folder / MODEL, DEVICE, config(request))
        self._ports = {port.get_any_name(): port for port in (*self._compiled.inputs, *self._compiled.outputs)}
        self.shapes: dict[str, tuple[int, ...]] = {name: tuple(port.shape) for name, port in self._ports.items()}
        """The shape of every input and output, by name."""

    def request(self, arrays: Mapping[str, np.ndarray]) -> Any:
        """An InferRequest. Its tensors are in the memory of these arrays."""
        request = self._compiled.create_infer_request()
        for name, port in self._ports.items():
            view = arrays[name].reshape(self.shapes[name])
            request.set_tensor(port, ov.Tensor(view, shared_memory=True))
        request.memory = (*arrays.values(), self._blob)
        return request
