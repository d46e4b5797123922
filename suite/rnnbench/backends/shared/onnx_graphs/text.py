"""An ONNX model as ONNX's own text, without the values of its large constants."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

MOST_VALUES = 16
"""Values of a constant that is shown."""
_DATA = ("raw_data", "float_data", "double_data", "int32_data", "int64_data", "uint64_data", "string_data")


def graph_text(model: Any) -> str:
    """The model, which stays as it is. Imports onnx."""
    from onnx import printer

    copy = type(model)()
    copy.CopyFrom(model)
    for tensor in _tensors(copy.graph):
        if prod(tensor.dims) > MOST_VALUES:
            for field in _DATA:
                tensor.ClearField(field)
    return str(printer.to_text(copy))


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        if attribute.HasField("t"):
            yield attribute.t
        if attribute.HasField("g"):
            yield from _tensors(attribute.g)
