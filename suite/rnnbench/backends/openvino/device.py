"""OpenVINO's CPU device: how it is set up, what a build keeps of a compiled model, and how that is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from rnnbench.backends.base import Request

BLOB = "compiled.blob"
MODEL = "model.xml"


def config(threads: int) -> dict[str, object]:
    """One stream of `threads` threads. Without the precision hint a machine with AMX computes in bfloat16."""
    return {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "ENABLE_CPU_PINNING": False,
    }


def misexported(request: Request) -> bool:
    """Whether a compiled model of this request computes something else once exported and imported (2026.4).

    The device takes the transposes that the importer puts around ONNX's operators out, and marks the operator to run
    over the first axis. The export forgets the mark: batch and steps change places. Where one of them is 1 it is the
    same, and operators of both directions are not so treated.
    """
    one_way = request.model.direction != "bidirectional"
    fused = request.route == "onnx" and request.strategy.time == "fused"
    return fused and one_way and request.batch > 1 and request.strategy.chunk > 1


def export(compiled: Any, folder: Path) -> bytes:
    """Keeps a compiled model, and returns its bytes."""
    blob: bytes = compiled.export_model().getvalue()
    (folder / BLOB).write_bytes(blob)
    return blob


def save(model: Any, folder: Path) -> bytes:
    """Keeps a model as it is before it is compiled, and returns its bytes."""
    path = folder / MODEL
    ov.serialize(model, path)
    return path.read_bytes() + path.with_suffix(".bin").read_bytes()


def loaded(folder: Path, threads: int) -> tuple[Any, Any]:
    """A CompiledModel, and what must outlive it: an exported file is mapped into memory."""
    core = ov.Core()
    if not (folder / BLOB).exists():
        return core.compile_model(folder / MODEL, "CPU", config(threads)), None
    # Mode "c", copy on write, since OpenVINO takes no array that is read-only.
    blob = ov.Tensor(np.memmap(folder / BLOB, np.uint8, "c"), shared_memory=True)
    return core.import_model(blob, "CPU", config(threads)), blob
