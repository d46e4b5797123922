"""Reading a TFLite file within limits. The schema is LiteRT's; nothing is copied before its size is known.

Flatbuffers are read in place (flatbuffers.dev/internals): a vector says how many elements it has, and each may point to
the same table again. So every element that is looked at is counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.file_bytes import read_bytes
from rnnbench.model_files.formats.tflite.schema import IDENTIFIED_AT, IDENTIFIER, require_schema
from rnnbench.model_files.formats.tflite.variables import OPERATORS, Variable, with_own_names, with_states
from rnnbench.outside_text import describe_error, safe_text
from rnnbench.rnn import Range

T = TypeVar("T")
_DTYPES = {
    **dict.fromkeys(("FLOAT32", "FLOAT16", "FLOAT64", "BOOL"), ""),
    **dict.fromkeys(("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"), ""),
}
UNQUANTISED = (
    "what a program gives is not known here, so nothing can be compared; convert the network without quantisation: no "
    "converter.optimizations, or float16 weights alone "
    "(converter.target_spec.supported_types = [tf.float16]), with float32 inputs and outputs"
)
"""Why quantised arrays that the oracle does not compute are refused, and what to do."""
QUANTISED = ("int8", "uint8", "int16")
"""The types of arrays that a call gives and makes, which have a scale and a zero point."""
_MAIN = "serving_default"
"""The signature that is read where a file has several."""
_COMPILED = {"edgetpu-custom-op": "an Edge TPU", "ethos-u": "an Arm Ethos-U"}
"""What the operators are for into which compilers of accelerators put whole networks."""
_APART = 1
"""A buffer whose `offset` is larger has its data after the flatbuffer."""


@dataclass(frozen=True)
class Quantisation:
    """A value is (q − zero)·scale, with one of each for the whole tensor, or for each index along `axis`."""

    scales: np.ndarray
    zeros: np.ndarray
    axis: int


@dataclass(frozen=True)
class Tensor:
    """A value of a graph. Sizes that a caller chooses are −1 in `sizes`, and 1 in `shape`."""

    name: str
    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    dtype: str
    """NumPy's name, or LiteRT's where NumPy has none."""
    data: np.ndarray | None
    """Of a constant: a view of the file's bytes."""
    quantisation: Quantisation | None
    is_variable: bool

    @property
    def called(self) -> str:
        """What to call it in a sentence: some tools leave out the names."""
        return self.name or "a tensor without a name"

    @property
    def is_quantised(self) -> bool:
        return self.quantisation is not None

    @property
    def range(self) -> Range | None:
        """The range of a quantised value; None of another one. Raises ModelFileError where it has not just one."""
        if self.quantisation is None:
            return None
        if self.dtype not in QUANTISED or len(self.quantisation.scales) != 1:
            scales = len(self.quantisation.scales)
            kept = f"{self.dtype} of {scales} scales" if scales > 1 else f"{self.dtype}, and no int8, uint8 or int16"
            raise ModelFileError(f"{self.called} is quantised: {kept}; {UNQUANTISED}")
        kind = np.iinfo(self.dtype)
        zero = int(self.quantisation.zeros[0])
        return Range(float(self.quantisation.scales[0]), zero - int(kind.min), int(kind.max) - int(kind.min))

    @property
    def values(self) -> np.ndarray | None:
        """The data of a constant. Of a quantised one, what it stands for."""
        if self.data is None or self.quantisation is None:
            return self.data
        along = [1] * self.data.ndim
        if len(self.quantisation.scales) > 1:
            along[self.quantisation.axis] = -1
        scales, zeros = (side.reshape(along) for side in (self.quantisation.scales, self.quantisation.zeros))
        dequantised: np.ndarray = (self.data.astype(np.float64) - zeros) * scales
        return dequantised


@dataclass(frozen=True)
class Operator:
    name: str
    inputs: tuple[int, ...]
    """Numbers of tensors; −1 is an input that is left out."""
    outputs: tuple[int, ...]
    options: Any
    """The table of the schema, read in place; None where the operator has none."""
    intermediates: tuple[int, ...] = ()
    """Tensors that are neither: a quantised LSTM has the ranges of values inside it there."""


@dataclass(frozen=True)
class Graph:
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class TfliteFile:
    graphs: tuple[Graph, ...]
    """The graphs that operators such as WHILE name by number."""
    main: int
    inputs: dict[str, int]
    """The tensor of each input, by the signature's name for it, in the order of the graph's inputs."""
    outputs: dict[str, int]
    signature: str
    """Empty where the file has none."""
    weight_bytes: int
    producer: str
    variables: tuple[Variable, ...] = ()
    """Its states, where the file as it is keeps them in variables."""


def tensor_names(path: Path) -> dict[str, str]:
    """The name of the tensor of each input and output: frontends know these, and not those of a signature."""
    file = read_tflite(path)
    tensors = file.graphs[file.main].tensors
    return {name: tensors[number].name for name, number in (*file.inputs.items(), *file.outputs.items())}


def signature_name(path: Path) -> str:
    """The name of the signature that is read; empty where the file has none."""
    return read_tflite(path).signature


def keeping_variables(file: TfliteFile) -> tuple[str, ...]:
    """The operators that have a state in variable tensors, which only they read and write."""
    return tuple(
        dict.fromkeys(
            operator.name
            for graph in file.graphs
            for operator in graph.operators
            if any(number >= 0 and graph.tensors[number].is_variable for number in operator.inputs)
        )
    )


@cache
def _names(kind: str) -> dict[int, str]:
    """Names of the numbers of an enumeration of the schema."""
    return {number: name for name, number in vars(getattr(require_schema(), kind)).items() if isinstance(number, int)}


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
        with _damage_told():
            data = with_own_names(data, file.signature)
        file = _read(data)
    names = {operator.name for graph in file.graphs for operator in graph.operators}
    if not OPERATORS & names and not keeping_variables(file):
        return file, data
    with _damage_told():
        data, variables = with_states(data, file.main, file.signature)
    return replace(_read(data), variables=variables), data


def _read(data: bytes) -> TfliteFile:
    if data[IDENTIFIED_AT : IDENTIFIED_AT + len(IDENTIFIER)] != IDENTIFIER:
        raise ModelFileError("it is no TFLite file: the letters TFL3 are missing at its beginning")
    schema = require_schema()
    with _damage_told():
        return _Reader(schema.Model.GetRootAs(data, 0), data).file()


@contextmanager
def _damage_told() -> Iterator[None]:
    """Raises ModelFileError for whatever wrong bytes make the schema raise."""
    try:
        yield
    except (ModelFileError, MemoryError, ImportError):
        raise
    except Exception as error:  # struct.error, IndexError, UnicodeDecodeError, … of whatever byte is wrong
        raise ModelFileError(f"it is damaged or cut short: {describe_error(error)[:200]}") from error


class _Reader:
    def __init__(self, model: Any, data: bytes) -> None:
        self._model, self._data = model, data
        self._seen = 0
        self._weights: dict[int, int] = {}
        self._elements = 0

    def file(self) -> TfliteFile:
        codes = self._all(self._model.OperatorCodesLength(), self._model.OperatorCodes)
        self._operators = [self._operator_name(code) for code in codes]
        count = self._model.SubgraphsLength()
        graphs = tuple(self._graph(graph) for graph in self._all(count, self._model.Subgraphs))
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
            signature="" if signature is None else _text(signature.SignatureKey()),
            weight_bytes=sum(self._weights.values()),
            producer=_text(self._model.Description()),
        )

    def _all(self, count: int, get: Callable[[int], T]) -> list[T]:
        """Elements of a vector, counted before they are read."""
        self._seen += count
        if self._seen > limits.FIELDS:
            raise ModelFileError(f"it has more than {limits.FIELDS:,} fields; files with so many are not read")
        return [get(index) for index in range(count)]

    def _operator_name(self, code: Any) -> str:
        if code.CustomCode():
            name = _text(code.CustomCode())
            if name in _COMPILED:
                raise ModelFileError(
                    f"it was compiled for {_COMPILED[name]}, and its operators are no more in it; give the file that "
                    "it was compiled from"
                )
            return f"custom {name}"
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        return _names("BuiltinOperator").get(number, f"operator {number}")

    def _graph(self, graph: Any) -> Graph:
        tensors = tuple(map(self._tensor, self._all(graph.TensorsLength(), graph.Tensors)))
        operators = self._all(graph.OperatorsLength(), graph.Operators)
        if len(operators) > limits.NODES:
            raise ModelFileError(f"it has {len(operators):,} operators; up to {limits.NODES:,} are read")
        made = tuple(self._operator(operator, len(tensors)) for operator in operators)
        ends = [self._numbers(count, get, len(tensors)) for count, get in _ends(graph)]
        return Graph(tensors, ends[0], ends[1], made)

    def _operator(self, operator: Any, tensors: int) -> Operator:
        index = operator.OpcodeIndex()
        if index >= len(self._operators):
            raise ModelFileError(f"it uses operator {index}, and names {len(self._operators)}")
        inputs, outputs = (self._numbers(count, get, tensors) for count, get in _ends(operator))
        inside = self._numbers(operator.IntermediatesLength(), operator.Intermediates, tensors)
        return Operator(self._operators[index], inputs, outputs, _options(operator), inside)

    def _numbers(self, count: int, get: Callable[[int], int], tensors: int) -> tuple[int, ...]:
        numbers = tuple(int(number) for number in self._all(count, get))
        if any(not -1 <= number < tensors for number in numbers):
            raise ModelFileError("an operator or graph names a tensor that there is not")
        return numbers

    def _tensor(self, tensor: Any) -> Tensor:
        name = _text(tensor.Name())
        kind = _names("TensorType").get(tensor.Type(), str(tensor.Type()))
        shape = tuple(int(size) for size in self._all(tensor.ShapeLength(), tensor.Shape))
        signature = tuple(int(size) for size in self._all(tensor.ShapeSignatureLength(), tensor.ShapeSignature))
        if any(size < -1 for size in (*shape, *signature)):
            raise ModelFileError(f"tensor '{name}' has a negative size: {list(shape)}")
        if math.prod(max(size, 1) for size in shape) > limits.ELEMENTS:
            raise ModelFileError(f"tensor '{name}' has the shape {list(shape)}; that many elements are not read")
        return Tensor(
            name=name,
            shape=shape,
            sizes=signature if len(signature) == len(shape) else shape,
            dtype=kind.lower(),
            data=self._constant(tensor, name, kind, shape),
            quantisation=self._quantisation(tensor.Quantization(), name, shape),
            is_variable=bool(tensor.IsVariable()),
        )

    def _quantisation(self, found: Any, name: str, shape: Sequence[int]) -> Quantisation | None:
        if found is None or not found.ScaleLength():
            return None
        count, axis = found.ScaleLength(), found.QuantizedDimension()
        scales = np.array(self._all(count, found.Scale), np.float64)
        zeros = np.array(self._all(found.ZeroPointLength(), found.ZeroPoint), np.float64)
        zeros = zeros if len(zeros) else np.zeros(1)
        if len(shape) == 1:
            axis = 0  # Older converters write that of the weights for a bias, too.
        if count > 1 and not (0 <= axis < len(shape) and shape[axis] == count):
            raise ModelFileError(f"tensor '{name}' has {count:,} scales, and its shape {list(shape)} has not")
        if len(zeros) not in (1, count) or not np.all(np.isfinite(scales) & (scales > 0)):
            raise ModelFileError(f"tensor '{name}' has scales and zero points that do not fit, or a scale of zero")
        return Quantisation(scales, np.resize(zeros, count), axis)

    def _constant(self, tensor: Any, name: str, kind: str, shape: Sequence[int]) -> np.ndarray | None:
        if tensor.Buffer() >= self._model.BuffersLength():
            raise ModelFileError(f"tensor '{name}' has its data in buffer {tensor.Buffer()}, which there is not")
        buffer = self._model.Buffers(tensor.Buffer())
        if buffer.Offset() > _APART:
            raise ModelFileError("its weights are behind the flatbuffer (a file of more than 2 GB); that is not read")
        if not buffer.DataLength():
            return None
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
        found = {
            _text(each.SignatureKey()): each
            for each in self._all(self._model.SignatureDefsLength(), self._model.SignatureDefs)
        }
        if not found:
            return 0, None
        fed = [each for each in found.values() if each.InputsLength()]  # Others only give a state to begin with.
        chosen = [found[_MAIN]] if _MAIN in found else list(found.values()) if len(found) == 1 else fed
        if len(chosen) != 1:
            named = ", ".join(found)
            raise ModelFileError(
                f"it has the signatures {named}; one that is called {_MAIN} is read, or the only one with inputs"
            )
        (signature,) = chosen
        return int(signature.SubgraphIndex()), signature

    def _arrays(self, graph: Graph, signature: Any) -> tuple[dict[str, int], dict[str, int]]:
        if signature is None:
            named = (_by_name(graph, ends, kind) for ends, kind in ((graph.inputs, "input"), (graph.outputs, "output")))
        else:
            maps = (
                self._all(signature.InputsLength(), signature.Inputs),
                self._all(signature.OutputsLength(), signature.Outputs),
            )
            named = ({_text(each.Name()): int(each.TensorIndex()) for each in these} for these in maps)
        inputs, outputs = named
        # An output may have two names: the converter joins y and a next state that are the same.
        once = sorted(inputs.values()) == sorted(graph.inputs) and {*outputs.values()} == {*graph.outputs}
        for arrays in (inputs, outputs):
            if not once or not all(arrays):
                raise ModelFileError("its signature does not name each input of its graph once, and each output")
            if len(arrays) > limits.ARRAYS:
                raise ModelFileError(f"it has {len(arrays):,} inputs; up to {limits.ARRAYS} are read")
        order = {number: place for place, number in enumerate((*graph.inputs, *graph.outputs))}
        return tuple(  # type: ignore[return-value]
            dict(sorted(arrays.items(), key=lambda item: order[item[1]])) for arrays in (inputs, outputs)
        )


def _by_name(graph: Graph, ends: Sequence[int], kind: str) -> dict[str, int]:
    """The inputs or outputs by the names of their tensors; by their places where a tool has left out the names."""
    names = [graph.tensors[number].name for number in ends]
    if not all(names) or len({*names}) != len(names):
        names = [f"{kind}{place}" for place in range(len(ends))]
    return dict(zip(names, ends, strict=True))


def _ends(table: Any) -> tuple[tuple[int, Callable[[int], int]], ...]:
    return (table.InputsLength(), table.Inputs), (table.OutputsLength(), table.Outputs)


def _options(operator: Any) -> Any:
    kind = _names("BuiltinOptions").get(operator.BuiltinOptionsType(), "NONE")
    table = operator.BuiltinOptions()
    if table is None or kind == "NONE":
        return None
    options = getattr(require_schema(), kind)()
    options.Init(table.Bytes, table.Pos)
    return options


def _text(value: bytes | None) -> str:
    return safe_text((value or b"").decode("utf-8", "replace"), limits.NAME_CHARACTERS)
