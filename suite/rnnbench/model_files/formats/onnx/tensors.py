"""The tensors of an ONNX file: their declared sizes against the bytes that are there, and data in files beside it."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnbench.model_files import limits
from rnnbench.model_files.description import Dim
from rnnbench.model_files.errors import ModelFileError
from rnnbench.outside_text import safe_text

_BITS = {
    **dict.fromkeys(("FLOAT", "INT32", "UINT32"), 32),
    **dict.fromkeys(("DOUBLE", "INT64", "UINT64", "COMPLEX64"), 64),
    **dict.fromkeys(("FLOAT16", "BFLOAT16", "INT16", "UINT16"), 16),
    **dict.fromkeys(("INT8", "UINT8", "BOOL"), 8),
    **dict.fromkeys(("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0"), 8),
    **dict.fromkeys(("INT4", "UINT4", "FLOAT4E2M1"), 4),
    **dict.fromkeys(("INT2", "UINT2"), 2),
    "COMPLEX128": 128,
}
"""Bits of an element in `raw_data`, by the name of the type in onnx.proto."""
_COMPLEX = ("COMPLEX64", "COMPLEX128")
_LISTS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
"""Where the elements are that are not in `raw_data`."""


@dataclass(frozen=True)
class External:
    """Where the data of a tensor is in a file beside the model's: bytes from `offset`."""

    file: Path
    offset: int
    length: int


def opset_version(model: Any) -> int:
    """The version of ONNX's own operators, `ai.onnx`; a model may import other domains beside them."""
    return next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 1)


def subgraphs(node: Any) -> Iterator[Any]:
    """The graphs in a node's attributes."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def graphs(model: Any) -> Iterator[Any]:
    """The model's graph and all graphs inside it. Functions have nodes of their own: see `all_nodes`."""
    in_functions = (graph for function in model.functions for node in function.node for graph in subgraphs(node))
    waiting = [model.graph, *in_functions]
    while waiting:
        graph = waiting.pop()
        yield graph
        waiting += [inner for node in graph.node for inner in subgraphs(node)]


def names_inside(node: Any) -> Iterator[str]:
    """Names that the graphs in a node use. Those that they make themselves are nobody's else."""
    for graph in subgraphs(node):
        yield from (value.name for value in graph.output)
        for inner in graph.node:
            yield from inner.input
            yield from names_inside(inner)


def all_nodes(model: Any) -> Iterator[Any]:
    for function in model.functions:
        yield from function.node
    for graph in graphs(model):
        yield from graph.node


def all_tensors(model: Any) -> Iterator[Any]:
    """Initializers, and tensors in attributes."""
    for graph in graphs(model):
        yield from graph.initializer
    for node in all_nodes(model):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def shape_of(value: Any) -> tuple[Dim, ...] | None:
    """The sizes of an input or output; None where the file does not say how many axes there are."""
    tensor = value.type.tensor_type
    return tuple(map(_dim, tensor.shape.dim)) if tensor.HasField("shape") else None


def _dim(dim: Any) -> Dim:
    if dim.HasField("dim_value"):
        return None if dim.dim_value < 0 else int(dim.dim_value)
    return safe_text(dim.dim_param, limits.NAME_CHARACTERS) or None


def check_tensors(model: Any, folder: Path, type_names: dict[int, str]) -> tuple[int, tuple[str, ...]]:
    """Bytes of all tensors, and the paths from `folder` of the files that have some. Raises ModelFileError."""
    if any(graph.sparse_initializer for graph in graphs(model)) or any(
        attribute.HasField("sparse_tensor") or attribute.sparse_tensors
        for node in all_nodes(model)
        for attribute in node.attribute
    ):
        raise ModelFileError("it has sparse tensors, which are not read; store them as dense ones")
    total, files = 0, {}
    for tensor in all_tensors(model):
        size = declared_bytes(tensor, type_names)
        total += size
        if total > limits.WEIGHT_BYTES:
            raise ModelFileError(f"its tensors take more than {limits.WEIGHT_BYTES >> 30} GiB; that much is not read")
        if is_external(tensor):
            files[str(external_of(tensor, folder, size).file.relative_to(folder))] = True
        else:
            _check_present(tensor, size, type_names)
    return total, tuple(files)


def declared_bytes(tensor: Any, type_names: dict[int, str]) -> int:
    """Bytes that its shape and type call for. Strings count as they are."""
    kind = type_names.get(tensor.data_type, "")
    if any(dim < 0 for dim in tensor.dims):
        raise ModelFileError(f"tensor {_name(tensor)} has a negative size: {safe_text(str(list(tensor.dims)), 80)}")
    if kind == "STRING":
        return sum(map(len, tensor.string_data))
    if kind not in _BITS:
        raise ModelFileError(f"tensor {_name(tensor)} has the type {tensor.data_type}, which is not known")
    bits: int = math.prod(tensor.dims) * _BITS[kind]
    return -(-bits // 8)


def is_external(tensor: Any) -> bool:
    return bool(tensor.data_location == tensor.EXTERNAL)


def external_of(tensor: Any, folder: Path, size: int) -> External:
    """Where its data is. Raises ModelFileError where that is outside the folder, or not as long as the tensor."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    where = f"tensor {_name(tensor)} has its data in the file '{safe_text(location, 200)}'"
    parts = Path(location).parts
    if not parts or "\0" in location or Path(location).is_absolute() or ".." in parts:
        raise ModelFileError(f"{where}; only files in the model's own folder are read")
    path = folder
    for part in parts:
        path = path / part
        if path.is_symlink():
            raise ModelFileError(f"{where}: {safe_text(part, 80)} {limits.NO_LINKS}")
    try:
        there = os.stat(path, follow_symlinks=False)
    except OSError as error:
        raise ModelFileError(f"{where}, which cannot be read: {error.strerror}; put it beside the model") from error
    if not stat.S_ISREG(there.st_mode):
        raise ModelFileError(f"{where}, which is no plain file")
    offset, length = (_whole(entries, key, default, where) for key, default in (("offset", 0), ("length", size)))
    if length != size:
        raise ModelFileError(f"{where}: {length:,} bytes, where its shape and type call for {size:,}")
    if offset + length > there.st_size:
        raise ModelFileError(f"{where}, bytes {offset:,} to {offset + length:,}; that file ends at {there.st_size:,}")
    return External(path, offset, length)


def load_external(model: Any, folder: Path, type_names: dict[int, str]) -> None:
    """Put the data of files beside the model's into the model. Raises ModelFileError."""
    for tensor in all_tensors(model):
        if not is_external(tensor):
            continue
        where = external_of(tensor, folder, declared_bytes(tensor, type_names))
        try:
            with open(os.open(where.file, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                file.seek(where.offset)
                tensor.raw_data = file.read(where.length)
        except OSError as error:
            raise ModelFileError(f"{where.file.name}, beside the model, cannot be read: {error.strerror}") from error
        if len(tensor.raw_data) != where.length:
            raise ModelFileError(f"{where.file.name}, beside the model, became shorter while it was read")
        del tensor.external_data[:]
        tensor.data_location = tensor.DEFAULT


def _whole(entries: dict[str, str], key: str, default: int, where: str) -> int:
    text = entries.get(key, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ModelFileError(f"{where}; its {key} is '{safe_text(text, 60)}', and should be a number of bytes")
    return int(text)


def _check_present(tensor: Any, size: int, type_names: dict[int, str]) -> None:
    """As much is there as is declared: ONNX would allocate 10¹² elements for a shape of so many without data."""
    kind = type_names[tensor.data_type]
    elements = math.prod(tensor.dims)
    if tensor.HasField("raw_data"):
        if len(tensor.raw_data) != size:
            raise ModelFileError(
                f"tensor {_name(tensor)} has {len(tensor.raw_data):,} bytes of data, "
                f"where its shape {list(tensor.dims)} of {kind} calls for {size:,}"
            )
        return
    present = sum(len(getattr(tensor, name)) for name in _LISTS)
    called_for = {present} & {elements * 2 if kind in _COMPLEX else elements}
    packed = {-(-elements * _BITS.get(kind, 8) // 8)} if _BITS.get(kind, 8) < 8 else set()
    if not called_for and present not in packed:
        raise ModelFileError(
            f"tensor {_name(tensor)} has {present:,} elements, where its shape {list(tensor.dims)} "
            f"calls for {elements:,}"
        )


def _name(tensor: Any) -> str:
    return f"'{safe_text(tensor.name, 80)}'" if tensor.name else "without a name"
