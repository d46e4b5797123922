"""TFLite files as the suite calls them: with ends of float32, and the graph that is called before all others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rnnbench.model_files.file_bytes import read_bytes
from rnnbench.model_files.formats.tflite.file import EXTRA, IDENTIFIER, TfliteFile, read_tflite, require_schema
from rnnbench.optional import require

_GRAPH = "subgraphindex"
"""The end of the names of all fields of the schema that are numbers of graphs, such as WHILE's body."""
_VERSIONS = {"QUANTIZE": 2, "DEQUANTIZE": 3}
"""Of the operators, the first ones that take int16."""
_LAST_DEPRECATED = 127
"""Numbers of operators up to this one stand in an older field too."""


def with_float_ends(path: Path) -> bytes:
    """The file, with a QUANTIZE after each quantised input and a DEQUANTIZE before each quantised output.

    The new ends are called as the old ones were, and all other operators stay. Raises ModelFileError.
    """
    file, data = read_tflite(path), read_bytes(path)
    if not quantised_ends(file):
        return data
    model = require_schema().ModelT.InitFromPackedBuf(data, 0)
    _Ends(model, file).add()
    return _packed(model, len(data))


def quantised_ends(file: TfliteFile) -> tuple[str, ...]:
    """Names of the inputs and outputs that have a scale and a zero point."""
    tensors = file.graphs[file.main].tensors
    return tuple(n for n, number in (*file.inputs.items(), *file.outputs.items()) if tensors[number].is_quantised)


def main_first(path: Path) -> bytes:
    """The file, its ends in float32, with the graph that is read before all others: frontends such as OpenVINO's read
    the first one only.

    Raises ModelFileError.
    """
    main, data = read_tflite(path).main, with_float_ends(path)
    if main == 0:
        return data
    model, moved = require_schema().ModelT.InitFromPackedBuf(data, 0), {0: main, main: 0}
    graphs = model.subgraphs
    graphs[0], graphs[main] = graphs[main], graphs[0]
    operators = [operator for graph in graphs for operator in graph.operators or ()]
    options = [each for operator in operators for each in (operator.builtinOptions, operator.builtinOptions2) if each]
    for each in (*options, *model.signatureDefs):
        for field, number in vars(each).items():
            if field.lower().endswith(_GRAPH):
                setattr(each, field, moved.get(number, number))
    return _packed(model, len(data))


class _Ends:
    """Adds operators at the ends of the graph that is called."""

    def __init__(self, model: Any, file: TfliteFile) -> None:
        self._model, self._schema = model, require_schema()
        self._graph = model.subgraphs[file.main]
        self._tensors = file.graphs[file.main].tensors
        self._signatures = [each for each in model.signatureDefs or () if each.subgraphIndex == file.main]

    def add(self) -> None:
        graph = self._graph
        inputs = {number: self._float(number) for number in graph.inputs if self._tensors[number].is_quantised}
        outputs = {number: self._float(number) for number in graph.outputs if self._tensors[number].is_quantised}
        first = [self._operator("QUANTIZE", new, old) for old, new in inputs.items()]
        last = [self._operator("DEQUANTIZE", old, new) for old, new in outputs.items()]
        graph.operators = [*first, *(graph.operators or ()), *last]
        graph.inputs = [inputs.get(number, number) for number in graph.inputs]
        graph.outputs = [outputs.get(number, number) for number in graph.outputs]
        for signature in self._signatures:
            _renumber(signature.inputs, inputs)
            _renumber(signature.outputs, outputs)

    def _float(self, number: int) -> int:
        """A new tensor of float32 with the shape and name of a quantised one."""
        old, new = self._graph.tensors[number], self._schema.TensorT()
        new.name, new.shape, new.shapeSignature = old.name, old.shape, old.shapeSignature
        new.type, new.buffer, new.hasRank = self._schema.TensorType.FLOAT32, 0, old.hasRank
        old.name = (old.name or b"") + b"_quantised"
        self._graph.tensors.append(new)
        return len(self._graph.tensors) - 1

    def _operator(self, name: str, source: int, target: int) -> Any:
        code, operator = self._schema.OperatorCodeT(), self._schema.OperatorT()
        number = getattr(self._schema.BuiltinOperator, name)
        code.builtinCode, code.deprecatedBuiltinCode = number, min(number, _LAST_DEPRECATED)
        code.version = _VERSIONS[name]
        self._model.operatorCodes.append(code)
        operator.opcodeIndex = len(self._model.operatorCodes) - 1
        operator.inputs, operator.outputs = [source], [target]
        return operator


def _renumber(entries: Sequence[Any] | None, numbers: dict[int, int]) -> None:
    for entry in entries or ():
        entry.tensorIndex = numbers.get(entry.tensorIndex, entry.tensorIndex)


def _packed(model: Any, size: int) -> bytes:
    builder = require("flatbuffers", EXTRA, "writing a TFLite file").Builder(size)
    builder.Finish(model.Pack(builder), file_identifier=IDENTIFIER)
    return bytes(builder.Output())
