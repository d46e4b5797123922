"""The file of a network that runs: it must be what it was when the case was read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnbench.model_files.file_bytes import require_unchanged
from rnnbench.model_files.network import FileNetwork


def unchanged_path(network: FileNetwork) -> Path:
    """The path of the file. Raises ModelFileError where it is not what it was when the case was read."""
    path = Path(network.path)
    require_unchanged(path, network.sha256, network.external)
    return path


def read_onnx_model(network: FileNetwork) -> Any:
    """An ONNX file as an `onnx.ModelProto`, with all of its weights. Raises ModelFileError."""
    from rnnbench.model_files.formats.onnx.file import read_onnx, type_names
    from rnnbench.model_files.formats.onnx.tensors import load_external

    path = unchanged_path(network)
    model = read_onnx(path).model
    load_external(model, path.parent, type_names())
    return model
