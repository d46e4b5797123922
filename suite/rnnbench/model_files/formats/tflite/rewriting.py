"""TFLite files as the suite calls them: with ends of float32, and the graph that is called before all others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files.formats.tflite.file import read_tflite, read_with_bytes
from rnnbench.model_files.formats.tflite.graph import Tensor, TfliteFile
from rnnbench.model_files.formats.tflite.schema import (
    add_operator,
    fields_of_graphs,
    packed,
    require_schema,
    unpacked,
)

_QUANTIZE, _DEQUANTIZE = 2, 3
"""Their first versions that take int16."""
_WIDE = "int32"
"""The type that LiteRT has no DEQUANTIZE of."""


def with_float_ends(path: Path) -> bytes:
    """The file, with a QUANTIZE after each quantised input and a DEQUANTIZE before each quantised output.

    The new ends are called as the old ones were, and all other operators stay. An operator's own state stays as it is:
    a DEQUANTIZE of a tensor that is changed in place may run before that. Raises ModelFileError.
    """
    file, data = read_with_bytes(path)
    if not quantised_ends(file):
        return data
    model = unpacked(data)
    _Ends(model, file).add()
    return packed(model, len(data))


def changes_of(path: Path) -> tuple[str, ...]:
    """What `with_float_ends` changes in the file, in a few words each. Raises ModelFileError."""
    file = read_tflite(path)
    changes = {
        "its variables are inputs and outputs": bool(file.variables),
        "it has QUANTIZE and DEQUANTIZE at its ends, since arrays are float32": bool(quantised_ends(file)),
    }
    return tuple(change for change, is_made in changes.items() if is_made)


def quantised_ends(file: TfliteFile) -> tuple[str, ...]:
    """Names of the inputs and outputs that have a scale and a zero point, but for states of operators' own."""
    tensors = file.graphs[file.main].tensors
    return tuple(n for n, number in (*file.inputs.items(), *file.outputs.items()) if _is_rewritten(tensors[number]))


def _is_rewritten(tensor: Tensor) -> bool:
    return tensor.is_quantised and not tensor.is_variable


def main_first(path: Path) -> bytes:
    """The file, its ends in float32, with the graph that is read before all others: frontends such as OpenVINO's read
    the first one only.

    Raises ModelFileError.
    """
    main, data = read_tflite(path).main, with_float_ends(path)
    if main == 0:
        return data
    model, moved = unpacked(data), {0: main, main: 0}
    graphs = model.subgraphs
    graphs[0], graphs[main] = graphs[main], graphs[0]
    operators = [operator for graph in graphs for operator in graph.operators or ()]
    for owner in (*operators, *model.signatureDefs):
        for (table, field), number in fields_of_graphs(owner).items():
            setattr(table, field, moved.get(number, number))
    return packed(model, len(data))


class _Ends:
    """Adds operators at the ends of the graph that is called."""

    def __init__(self, model: Any, file: TfliteFile) -> None:
        self._model, self._schema = model, require_schema()
        self._graph = model.subgraphs[file.main]
        self._tensors = file.graphs[file.main].tensors
        self._signatures = [
            signature for signature in model.signatureDefs or () if signature.subgraphIndex == file.main
        ]

    def add(self) -> None:
        graph = self._graph
        inputs = {number: self._float(number) for number in graph.inputs if _is_rewritten(self._tensors[number])}
        outputs = {number: self._float(number) for number in graph.outputs if _is_rewritten(self._tensors[number])}
        first = [add_operator(self._model, "QUANTIZE", [new], old, _QUANTIZE) for old, new in inputs.items()]
        last = [operator for old, new in outputs.items() for operator in self._dequantised(old, new)]
        graph.operators = [*first, *(graph.operators or ()), *last]
        graph.inputs = [inputs.get(number, number) for number in graph.inputs]
        graph.outputs = [outputs.get(number, number) for number in graph.outputs]
        for signature in self._signatures:
            _renumber(signature.inputs, inputs)
            _renumber(signature.outputs, outputs)

    def _dequantised(self, old: int, new: int) -> list[Any]:
        """DEQUANTIZE; of int32 a CAST, and a product with the scale."""
        tensor = self._tensors[old]
        if tensor.dtype != _WIDE:
            return [add_operator(self._model, "DEQUANTIZE", [old], new, _DEQUANTIZE)]
        assert tensor.range is not None
        scale, buffer = self._schema.TensorT(), self._schema.BufferT()
        buffer.data = np.frombuffer(np.float32(tensor.range.scale).tobytes(), np.uint8)
        self._model.buffers.append(buffer)
        scale.name, scale.shape, scale.type = b"scale", [1], self._schema.TensorType.FLOAT32
        scale.buffer = len(self._model.buffers) - 1
        self._graph.tensors.append(scale)
        place, whole = len(self._graph.tensors) - 1, self._float(new)
        cast, product = (
            add_operator(self._model, name, [], output) for name, output in (("CAST", whole), ("MUL", new))
        )
        cast.inputs, product.inputs = [old], [whole, place]
        product.builtinOptionsType, product.builtinOptions = (
            self._schema.BuiltinOptions.MulOptions,
            self._schema.MulOptionsT(),
        )
        return [cast, product]

    def _float(self, number: int) -> int:
        """A new tensor of float32 with the shape and name of a quantised one."""
        old, new = self._graph.tensors[number], self._schema.TensorT()
        new.name, new.shape, new.shapeSignature = old.name, old.shape, old.shapeSignature
        new.type, new.buffer, new.hasRank = self._schema.TensorType.FLOAT32, 0, old.hasRank
        old.name = (old.name or b"") + b"_quantised"
        self._graph.tensors.append(new)
        return len(self._graph.tensors) - 1


def _renumber(entries: Sequence[Any] | None, numbers: dict[int, int]) -> None:
    for entry in entries or ():
        entry.tensorIndex = numbers.get(entry.tensorIndex, entry.tensorIndex)
