"""Reading a TFLite file within limits. The schema is LiteRT's; nothing is copied before its size is known.

Flatbuffers are read in place (flatbuffers.dev/internals): a vector says how many elements it has, and each may point to
the same table again. So every element that is looked at is counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.entry_point import entry_point
from rnnbench.model_files.errors import ModelFileError, parsing
from rnnbench.model_files.file_bytes import read_bytes
from rnnbench.model_files.formats.tflite.called_graph import names_of_ends, with_own_names
from rnnbench.model_files.formats.tflite.graph import (
    Graph,
    LeftOut,
    Operator,
    Quantisation,
    Tensor,
    TfliteFile,
    keeping_variables,
)
from rnnbench.model_files.formats.tflite.schema import (
    IDENTIFIED_AT,
    IDENTIFIER,
    names_of,
    require_schema,
    text_of,
)
from rnnbench.model_files.formats.tflite.variables import OPERATORS, with_states
from rnnbench.outside_text import safe_text

T = TypeVar("T")
_DAMAGED = "it is damaged or cut short"
_DTYPES = frozenset(
    (
        *("FLOAT32", "FLOAT16", "FLOAT64", "BOOL"),
        *("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"),
    )
)
"""Types of elements, by LiteRT's names, that NumPy has too."""
_MAIN = "serving_default"
"""The signature that is read where a file has several."""
_COMPILED = {"edgetpu-custom-op": "an Edge TPU", "ethos-u": "an Arm Ethos-U"}
"""What the operators are for into which compilers of accelerators put whole networks."""
_TENSORFLOW_PREFIX = "Flex"
"""How the names of operators begin that the converter takes from TensorFlow."""
_NAMING_GRAPHS = frozenset(("WHILE", "IF", "CALL_ONCE"))
"""Operators whose options are the numbers of graphs."""
_APART = 1
"""A buffer whose `offset` is larger has its data after the flatbuffer."""


def tensor_names(path: Path) -> dict[str, str]:
    """The name of the tensor of each input and output: frontends know these, and not those of a signature."""
    file = read_tflite(path)
    tensors = file.graphs[file.main].tensors
    return {name: tensors[number].name for name, number in (*file.inputs.items(), *file.outputs.items())}


def signature_name(path: Path) -> str:
    """The name of the signature that is read; empty where the file has none."""
    return read_tflite(path).signature


def states_in_place(path: Path) -> frozenset[str]:
    """The states, by their names before a call, that operators keep in tensors of their own and change there."""
    file = read_tflite(path)
    ends = {*file.outputs.values()}
    tensors = file.graphs[file.main].tensors
    return frozenset(name for name, number in file.inputs.items() if number in ends and tensors[number].is_variable)


def read_tflite(path: Path) -> TfliteFile:
    """The file, its variables as inputs and outputs.

    Raises ModelFileError, and MissingExtraError without ai-edge-litert.
    """
    return read_with_bytes(path)[0]


def read_with_bytes(path: Path) -> tuple[TfliteFile, bytes]:
    """The file, its variables as inputs and outputs, and the bytes of such a file. Raises as `read_tflite` does."""
    data = read_bytes(path)
    file = _read(data)
    if file.signature and file.inputs.keys() & file.outputs.keys():
        with parsing(_DAMAGED):
            data = with_own_names(data, file.signature)
        file = _read(data)
    names = {operator.name for graph in file.graphs for operator in graph.operators}
    if not OPERATORS & names and not keeping_variables(file):
        return file, data
    with parsing(_DAMAGED):
        data, variables = with_states(data, file.main, file.signature)
    return replace(_read(data), variables=variables), data


def _read(data: bytes) -> TfliteFile:
    if data[IDENTIFIED_AT : IDENTIFIED_AT + len(IDENTIFIER)] != IDENTIFIER:
        raise ModelFileError("it is no TFLite file: the letters TFL3 are missing at its beginning")
    schema = require_schema()
    with parsing(_DAMAGED):
        return _Reader(schema.Model.GetRootAs(data, 0), data).file()


class _Reader:
    def __init__(self, model: Any, data: bytes) -> None:
        self._model, self._data = model, data
        self._seen = 0
        self._weights: dict[int, int] = {}
        self._elements = 0

    def file(self) -> TfliteFile:
        codes = self._vector(self._model.OperatorCodesLength(), self._model.OperatorCodes)
        self._operators = [self._operator_name(code) for code in codes]
        count = self._model.SubgraphsLength()
        graphs = tuple(self._graph(graph) for graph in self._vector(count, self._model.Subgraphs))
        if not graphs or not graphs[0].outputs:
            raise ModelFileError("it has no graph, or one without outputs")
        main, signature = self._signature()
        if main >= len(graphs):
            raise ModelFileError(f"its signature is of graph {main}, and it has {len(graphs)}")
        inputs, outputs = self._arrays(graphs[main], signature)
        return TfliteFile(
            graphs=graphs,
            main=main,
            inputs=inputs,
            outputs=outputs,
            signature="" if signature is None else text_of(signature.SignatureKey()),
            weight_bytes=sum(self._weights.values()),
            producer=text_of(self._model.Description()),
        )

    def _vector(self, count: int, get: Callable[[int], T]) -> list[T]:
        """Elements of a vector, counted before they are read."""
        self._seen += count
        if self._seen > limits.FIELDS:
            raise ModelFileError(f"it has more than {limits.FIELDS:,} fields; files with so many are not read")
        return [get(index) for index in range(count)]

    def _operator_name(self, code: Any) -> str:
        if code.CustomCode():
            name = text_of(code.CustomCode())
            if name in _COMPILED:
                raise ModelFileError(
                    f"it was compiled for {_COMPILED[name]}, and its operators are no more in it; give the file that "
                    "it was compiled from"
                )
            if name.startswith(_TENSORFLOW_PREFIX):
                raise ModelFileError(
                    f"it needs {safe_text(name, 60)}, an operator of TensorFlow (SELECT_TF_OPS), without which LiteRT "
                    "does not run it; convert the network again with a fixed batch ([1, steps, inputs]), for which the "
                    "converter writes operators of LiteRT's own, or with unroll=True, or give its .keras or .h5 file"
                )
            return f"custom {name}"
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        return names_of("BuiltinOperator").get(number, f"operator {number}")

    def _graph(self, graph: Any) -> Graph:
        tensors = tuple(map(self._tensor, self._vector(graph.TensorsLength(), graph.Tensors)))
        operators = self._vector(graph.OperatorsLength(), graph.Operators)
        if len(operators) > limits.NODES:
            raise ModelFileError(f"it has {len(operators):,} operators; up to {limits.NODES:,} are read")
        read = tuple(self._operator(operator, len(tensors)) for operator in operators)
        ends = [self._numbers(count, get, len(tensors)) for count, get in _ends(graph)]
        return Graph(tensors, ends[0], ends[1], read)

    def _operator(self, operator: Any, tensors: int) -> Operator:
        index = operator.OpcodeIndex()
        if index >= len(self._operators):
            raise ModelFileError(f"it uses operator {index}, and names {len(self._operators)}")
        inputs, outputs = (self._numbers(count, get, tensors) for count, get in _ends(operator))
        inside = self._numbers(operator.IntermediatesLength(), operator.Intermediates, tensors)
        name = self._operators[index]
        return Operator(name, inputs, outputs, _options(name, operator), inside)

    def _numbers(self, count: int, get: Callable[[int], int], tensors: int) -> tuple[int, ...]:
        numbers = tuple(int(number) for number in self._vector(count, get))
        if any(not -1 <= number < tensors for number in numbers):
            raise ModelFileError("an operator or graph names a tensor that does not exist")
        return numbers

    def _tensor(self, tensor: Any) -> Tensor:
        name = text_of(tensor.Name())
        kind = names_of("TensorType").get(tensor.Type(), str(tensor.Type()))
        shape = tuple(int(size) for size in self._vector(tensor.ShapeLength(), tensor.Shape))
        signature = tuple(int(size) for size in self._vector(tensor.ShapeSignatureLength(), tensor.ShapeSignature))
        shown = safe_text(str(list(shape)), 80)
        if any(size < -1 for size in (*shape, *signature)):
            raise ModelFileError(f"tensor '{name}' has a negative size: {shown}")
        if math.prod(max(size, 1) for size in shape) > limits.ELEMENTS:
            raise ModelFileError(f"tensor '{name}' has the shape {shown}; that many elements are not read")
        return Tensor(
            name=name,
            shape=shape,
            sizes=signature if len(signature) == len(shape) else shape,
            dtype=kind.lower(),
            data=self._constant(tensor, name, kind, shape),
            quantisation=self._quantisation(tensor.Quantization(), name, shape, kind),
            is_variable=bool(tensor.IsVariable()),
        )

    def _quantisation(self, parameters: Any, name: str, shape: Sequence[int], kind: str) -> Quantisation | None:
        if parameters is None or not parameters.ScaleLength():
            return None
        count, axis = parameters.ScaleLength(), parameters.QuantizedDimension()
        scales = np.array(self._vector(count, parameters.Scale), np.float64)
        zeros = np.array(self._vector(parameters.ZeroPointLength(), parameters.ZeroPoint), np.float64)
        zeros = zeros if len(zeros) else np.zeros(1)
        if len(shape) == 1:
            axis = 0  # Older converters write that of the weights for a bias, too.
        if count > 1 and not (0 <= axis < len(shape) and shape[axis] == count):
            raise ModelFileError(f"tensor '{name}' has {count:,} scales, which do not fit its shape {list(shape)}")
        if len(zeros) not in (1, count) or not np.all(np.isfinite(scales) & (scales > 0)):
            raise ModelFileError(f"tensor '{name}' has scales and zero points that do not fit, or a scale of zero")
        whole = np.iinfo(kind.lower()) if kind in _DTYPES and "INT" in kind else None
        if whole is not None and not np.all((whole.min <= zeros) & (zeros <= whole.max)):
            raise ModelFileError(f"tensor '{name}' has a zero point that is no number of its type, {kind.lower()}")
        return Quantisation(scales, np.resize(zeros, count), axis)

    def _constant(self, tensor: Any, name: str, kind: str, shape: Sequence[int]) -> np.ndarray | None:
        if tensor.Buffer() >= self._model.BuffersLength():
            raise ModelFileError(f"tensor '{name}' has its data in buffer {tensor.Buffer()}, which does not exist")
        buffer = self._model.Buffers(tensor.Buffer())
        if buffer.Offset() > _APART:
            raise ModelFileError("its weights are behind the flatbuffer (a file of more than 2 GB); that is not read")
        if not buffer.DataLength():
            # Such as the shape of a RESHAPE to no axes: an array without elements has no bytes.
            return None if math.prod(shape) or kind not in _DTYPES else np.zeros(shape, kind.lower())
        if tensor.IsVariable():
            raise ModelFileError(f"tensor '{name}' is a variable that begins with a value, which LiteRT refuses")
        if tensor.Sparsity() is not None:
            raise ModelFileError("it has sparse tensors, which are not read; store them as dense ones")
        values = buffer.DataAsNumpy()
        self._weights[tensor.Buffer()] = values.size
        if kind not in _DTYPES:
            return None
        dtype = np.dtype(kind.lower())
        if values.size != math.prod(shape) * dtype.itemsize:
            raise ModelFileError(
                f"tensor '{name}' has {values.size:,} bytes of data, where its shape {list(shape)} of {dtype} "
                f"calls for {math.prod(shape) * dtype.itemsize:,}"
            )
        return np.frombuffer(values.tobytes(), dtype).reshape(shape)

    def _signature(self) -> tuple[int, Any]:
        signatures = {
            text_of(definition.SignatureKey()): definition
            for definition in self._vector(self._model.SignatureDefsLength(), self._model.SignatureDefs)
        }
        if not signatures:
            return 0, None
        chosen = entry_point(list(signatures), _MAIN, lambda name: bool(signatures[name].InputsLength()))
        if chosen is None:
            named = ", ".join(signatures)
            raise ModelFileError(
                f"it has the signatures {named}; one that is called {_MAIN} is read, or the only one with inputs. "
                "Convert the network again with the one to run: TFLiteConverter.from_saved_model(FOLDER, "
                "signature_keys=[NAME])"
            )
        return int(signatures[chosen].SubgraphIndex()), signatures[chosen]

    def _arrays(self, graph: Graph, signature: Any) -> tuple[dict[str, int], dict[str, int]]:
        if signature is None:
            named = (_by_name(graph, ends, kind) for ends, kind in ((graph.inputs, "input"), (graph.outputs, "output")))
        else:
            maps = (
                self._vector(signature.InputsLength(), signature.Inputs),
                self._vector(signature.OutputsLength(), signature.Outputs),
            )
            named = ({_name_of(entry.Name()): int(entry.TensorIndex()) for entry in entries} for entries in maps)
        inputs, outputs = named
        # An output may have two names: the converter joins y and a next state that are the same.
        once = sorted(inputs.values()) == sorted(graph.inputs) and {*outputs.values()} == {*graph.outputs}
        for arrays in (inputs, outputs):
            if not once or not all(arrays):
                raise ModelFileError("its signature does not name each input of its graph once, and each output")
            if len(arrays) > limits.ARRAYS:
                raise ModelFileError(f"it has {len(arrays):,} inputs or outputs; up to {limits.ARRAYS} are read")
        order = {number: place for place, number in enumerate((*graph.inputs, *graph.outputs))}
        return tuple(  # type: ignore[return-value]
            dict(sorted(arrays.items(), key=lambda item: order[item[1]])) for arrays in (inputs, outputs)
        )


def _name_of(value: bytes | None) -> str:
    """The name of an input or output in a signature. Raises ModelFileError for one that is not as it is shown."""
    name = text_of(value)
    if name.encode() != (value or b""):
        raise ModelFileError(
            f"an input or output is called '{name[:60]}'; up to {limits.NAME_CHARACTERS} printable characters are read"
        )
    return name


def _by_name(graph: Graph, ends: Sequence[int], kind: str) -> dict[str, int]:
    """The inputs or outputs by the names of their tensors; by their places where a tool has left out the names."""
    return dict(zip(names_of_ends([graph.tensors[number].name for number in ends], kind), ends, strict=True))


def _ends(table: Any) -> tuple[tuple[int, Callable[[int], int]], ...]:
    return (table.InputsLength(), table.Inputs), (table.OutputsLength(), table.Outputs)


def _are_of_another(name: str, kind: str) -> bool:
    """Whether options of this kind are another operator's, which LiteRT leaves aside. Some operators share a kind."""
    own = f"{name.replace('_', '').lower()}options"
    return kind.lower() != own and own in {known.lower() for known in names_of("BuiltinOptions").values()}


def _options(name: str, operator: Any) -> Any:
    kind = names_of("BuiltinOptions").get(operator.BuiltinOptionsType(), "NONE")
    table = operator.BuiltinOptions()
    if table is None or kind == "NONE" or _are_of_another(name, kind):
        if name in _NAMING_GRAPHS:
            raise ModelFileError(f"its operator {name} has no options of its own, so it names no graphs; export again")
        return LeftOut()
    options = getattr(require_schema(), kind)()
    options.Init(table.Bytes, table.Pos)
    return options
