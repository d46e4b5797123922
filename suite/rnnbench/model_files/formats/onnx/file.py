"""Reading an ONNX file within limits: what this returns has been looked at, byte by byte, and passed ONNX's checker.

Call it in a process of its own that has limits of memory and time: a mistake in protobuf's or ONNX's C++ can end it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.file_bytes import read_bytes
from rnnbench.model_files.formats.onnx.default_states import without_defaults
from rnnbench.model_files.formats.onnx.node_order import put_in_order
from rnnbench.model_files.formats.onnx.tensors import all_nodes, check_tensors, opset_version, subgraphs
from rnnbench.model_files.formats.onnx.wire import check_wire
from rnnbench.optional import require
from rnnbench.outside_text import one_line, safe_text

EXTRA = "files"
INSTEAD = "export the network with ONNX's own operators, and save it before a runtime optimises it"


@dataclass(frozen=True)
class OnnxFile:
    """An ONNX file that was read. `model` is its ModelProto, functions in place of their calls, and nodes in order."""

    model: Any
    weight_bytes: int
    external: tuple[str, ...]
    """Names of the files beside it that have weights."""
    starts: frozenset[str] = frozenset()
    """States whose default value is not zero. The model has no defaults of states any more."""


def require_onnx(module: str = "onnx") -> Any:
    """The package onnx, or a module of it. Raises MissingExtraError."""
    return require(module, EXTRA, "reading a model file")


def type_names() -> dict[int, str]:
    """Names of the types of elements, by number, as onnx.proto has them."""
    return {number: name for name, number in require_onnx().TensorProto.DataType.items()}


def read_onnx(path: Path) -> OnnxFile:
    """The file, without the data of files beside it. Raises ModelFileError, and MissingExtraError without onnx."""
    data = read_bytes(path)
    onnx = require_onnx()
    check_wire(data, onnx.ModelProto.DESCRIPTOR)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:
        raise ModelFileError(f"it is no ONNX file, or it is damaged: {safe_text(str(error), 200)}") from error
    if not model.graph.node and not model.graph.output:
        raise ModelFileError("it is no ONNX file, or an empty one: it has no graph")
    _check_nodes(model)
    _check_arrays(model)
    weight_bytes, external = check_tensors(model, path.parent, type_names())
    put_in_order(model)
    _check_versions(onnx, model)
    _check_model(onnx, model, path if external else None)
    if model.functions:
        _fill_defaults(model)
        model = require_onnx("onnx.inliner").inline_local_functions(model)
        _check_nodes(model)
    starts = without_defaults(model, path.parent, type_names())
    return OnnxFile(model, weight_bytes, external, starts)


def _fill_defaults(model: Any) -> None:
    """Give calls of functions the attributes that they leave out. ONNX's inliner knows no defaults of a function."""
    defaults = {(f.domain, f.name, f.overload): f.attribute_proto for f in model.functions}
    for node in all_nodes(model):
        given = {attribute.name for attribute in node.attribute}
        called = defaults.get((node.domain, node.op_type, node.overload), ())
        node.attribute.extend(attribute for attribute in called if attribute.name not in given)


def _check_nodes(model: Any) -> None:
    nodes = _Expansion(model).nodes()
    if nodes > limits.NODES:
        raise ModelFileError(f"it has {nodes:,} nodes; up to {limits.NODES:,} are read")


class _Expansion:
    """How many nodes there are once functions are in place of their calls. Thirty that double make a billion."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._functions = {(function.domain, function.name): function for function in model.functions}
        self._sizes: dict[tuple[str, str], int] = {}
        self._calls = 0

    def nodes(self) -> int:
        return self._sum(self._model.graph.node)

    def _sum(self, nodes: Any) -> int:
        return sum(self._size(node) + sum(self._sum(graph.node) for graph in subgraphs(node)) for node in nodes)

    def _size(self, node: Any) -> int:
        called = node.domain, node.op_type
        if called not in self._functions:
            return 1
        if called not in self._sizes:
            self._calls += 1
            if self._calls > limits.CALLS:
                raise ModelFileError(f"its functions call each other more than {limits.CALLS} deep, or for ever")
            self._sizes[called] = self._sum(self._functions[called].node)
            self._calls -= 1
        return self._sizes[called]


def graph_inputs(graph: Any) -> list[Any]:
    """Inputs of a graph that a caller gives: the others are weights, listed among the inputs by older files."""
    weights = {tensor.name for tensor in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


def _check_arrays(model: Any) -> None:
    arrays = [*graph_inputs(model.graph), *model.graph.output]
    if len(arrays) > limits.ARRAYS:
        raise ModelFileError(f"it has {len(arrays):,} inputs and outputs; up to {limits.ARRAYS} are read")
    names = [value.name for value in model.graph.output]
    if repeated := next((name for place, name in enumerate(names) if name in names[:place]), None):
        raise ModelFileError(
            f"two of its outputs are called '{safe_text(repeated, 60)}'; give each a name of its own, as by an Identity"
        )
    types = type_names()
    for value in arrays:
        name, kind = value.name, value.type.WhichOneof("value")
        shown = f"'{safe_text(name, 60)}'"
        if not name.isprintable() or not name.strip() or len(name) > limits.NAME_CHARACTERS:
            most = limits.NAME_CHARACTERS
            raise ModelFileError(f"an input or output is called {shown}; up to {most} printable characters are read")
        if kind != "tensor_type":
            kind_in_words = f"a value of the kind {kind.removesuffix('_type')}" if kind else "a value without a type"
            raise ModelFileError(f"{shown} is {kind_in_words}; make each of its tensors an input or output of its own")
        if types.get(element := value.type.tensor_type.elem_type, "UNDEFINED") == "UNDEFINED":
            raise ModelFileError(
                f"{shown} has elements of the type {element}, which is not known; give it one of ONNX's types"
            )


def _check_versions(onnx: Any, model: Any) -> None:
    """ONNX computes operators of a later version than it knows as those of the last one that it knows."""
    version, newest = opset_version(model), onnx.defs.onnx_opset_version()
    if model.ir_version > onnx.IR_VERSION or version > newest:
        raise ModelFileError(
            f"it is in version {model.ir_version} of the format, with operators of version {version}; onnx "
            f"{onnx.__version__} knows them up to {onnx.IR_VERSION} and {newest}: install a newer one "
            f"(pip install --upgrade onnx), or export the network with operators of version {newest} or earlier"
        )


def _check_model(onnx: Any, model: Any, path: Path | None) -> None:
    """ONNX's own checker. It finds files with weights beside `path`."""
    try:
        onnx.checker.check_model(os.fspath(path) if path else model)
    except Exception as error:
        told = one_line(str(error), 300)
        raise ModelFileError(
            f"ONNX's checker refuses it: {told}{f'; {INSTEAD}' if 'No Op registered' in told else ''}"
        ) from error
