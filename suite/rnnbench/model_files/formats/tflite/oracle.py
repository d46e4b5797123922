"""The oracle of a TFLite file: what it gives in float64, or in another arithmetic. NumPy computes its operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.description import require_names, require_shape
from rnnbench.model_files.errors import ModelFileError, computing
from rnnbench.model_files.formats.format import Oracle
from rnnbench.model_files.formats.tflite.file import read_tflite
from rnnbench.model_files.formats.tflite.graph import (
    QUANTISED,
    UNQUANTISED,
    Graph,
    Operator,
    Tensor,
    TfliteFile,
)
from rnnbench.model_files.formats.tflite.hybrid_weights import WEIGHTED, as_litert_reads, takes_its_own_range
from rnnbench.model_files.formats.tflite.lstm_ranges import may_have_zero_point
from rnnbench.model_files.formats.tflite.operators import ACTIVATIONS, MOVES, OPERATIONS, SUMS, Compute, cast
from rnnbench.model_files.formats.tflite.recurrent import RECURRENT, has_own_range, states_of
from rnnbench.model_files.operator_rounding import Kind, rounded_result
from rnnbench.outside_text import safe_text
from rnnbench.rnn import Activations, Arithmetic, Range

_COMPUTED: dict[str, Compute] = {**MOVES, **SUMS, **ACTIVATIONS, **OPERATIONS}
_WHILE, _IF = "WHILE", "IF"
_CAST = "CAST"
_QUANTISED_OPERATORS = frozenset(
    (
        *("RESHAPE", "SQUEEZE", "SPLIT", "SPLIT_V", "STRIDED_SLICE", "SLICE", "CONCATENATION", "PACK"),
        *("UNPACK", "GATHER"),
        *("TRANSPOSE", "EXPAND_DIMS", "TILE", "REVERSE_V2", "PAD", "PADV2", "RELU", "RELU6", "RELU_N1_TO_1", "SHAPE"),
        *("MAXIMUM", "MINIMUM", "REDUCE_MAX", "REDUCE_MIN", "MAX_POOL_2D", "SELECT_V2", "QUANTIZE"),
        *("DEQUANTIZE", *SUMS, _WHILE),
        *("GATHER_ND", "MIRROR_PAD", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "RESIZE_NEAREST_NEIGHBOR", "PRELU"),
        *("ARG_MAX", "ARG_MIN", "SQRT", "RSQRT", "ABS", "NEG", "HARD_SWISH", "SQUARED_DIFFERENCE", "REDUCE_PROD"),
        *("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL", _IF),
        *("LOGISTIC", "TANH", "SOFTMAX", "ADD", "SUB", "MUL", "LEAKY_RELU"),
    )
)
"""Operators whose quantised form computes what the other one does, and rounds the result to its range."""
_BIASES = ("int32", "int64")
_QUANTISED_TYPES = (*QUANTISED, *_BIASES)
"""The types of quantised constants."""


class TfliteOracle(Oracle):
    """A TFLite file in an arithmetic."""

    def __init__(self, path: Path) -> None:
        """Raises ModelFileError for a file that is not read, or has an operator that is not computed here."""
        self._name = str(path)
        self._file = as_litert_reads(read_tflite(path))
        _refuse(self._file)
        self.use(Arithmetic())

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        tensors = self._file.graphs[self._file.main].tensors
        require_names(self._file.inputs, inputs)
        arrays = {number: self._cast(name, tensors[number], inputs[name]) for name, number in self._file.inputs.items()}
        self._passes = 0
        with computing(self._name), np.errstate(all="ignore"):
            values = self._run(self._file.main, arrays, list(self._file.outputs.values()))
        return dict(zip(self._file.outputs, values, strict=True))

    def weights(self) -> Iterator[tuple[str, np.ndarray]]:
        for graph in self._file.graphs:
            yield from ((tensor.called, tensor.values) for tensor in graph.tensors if tensor.values is not None)

    def use(self, arithmetic: Arithmetic) -> None:
        self._arithmetic = arithmetic
        self._constants = [
            {
                number: self._constant(tensor)
                for number, tensor in enumerate(graph.tensors)
                if tensor.data is not None and not tensor.is_variable
            }
            for graph in self._file.graphs
        ]

    def _constant(self, tensor: Tensor) -> np.ndarray:
        values = tensor.values
        assert values is not None
        return self._arithmetic.cast(values) if values.dtype.kind == "f" else values

    def _cast(self, name: str, tensor: Tensor, array: np.ndarray) -> np.ndarray:
        array = np.asarray(array)
        require_shape(name, [None if size < 0 else size for size in tensor.sizes], array)
        if tensor.range is not None:
            return self._quantised(self._arithmetic.cast(array), tensor.range)
        if tensor.dtype.startswith("float"):
            return self._arithmetic.cast(array)
        return array.astype(tensor.dtype, casting="same_kind", copy=False)

    def _run(self, number: int, arguments: Mapping[int, np.ndarray], wanted: Sequence[int]) -> list[np.ndarray]:
        """The tensors `wanted` of a graph whose inputs are `given`."""
        graph = self._file.graphs[number]
        values: dict[int, np.ndarray] = {**self._constants[number], **arguments}
        for operator in graph.operators:
            inputs = [None if index < 0 else values.get(index) for index in operator.inputs]
            if takes_its_own_range(operator, graph):
                inputs[0] = self._quantised(np.asarray(inputs[0]), None)
            outputs = self._operator(operator, inputs, graph)
            if operator.name not in (_WHILE, _IF, *RECURRENT):  # What these give is in its range.
                outputs = self._in_their_ranges(operator, graph, outputs)
            outputs_and_states = (
                (*operator.outputs, *states_of(operator)) if operator.name in RECURRENT else operator.outputs
            )
            values |= zip(outputs_and_states, outputs, strict=True)
        return [values[index] for index in wanted]

    def _operator(self, operator: Operator, inputs: Sequence[Any], graph: Graph) -> Sequence[np.ndarray]:
        if operator.name == _WHILE:
            return self._while(operator.options, inputs)
        if operator.name == _IF:
            branches = _graphs_of(operator)
            return self._inner(branches[0] if np.all(inputs[0]) else branches[1], inputs[1:])
        if operator.name in RECURRENT:
            return RECURRENT[operator.name].compute(self._arithmetic, operator, graph, inputs)
        if operator.name == _CAST:
            return (cast(inputs[0], graph.tensors[operator.outputs[0]].dtype),)
        compute = _COMPUTED[operator.name]
        results = compute(operator.options, inputs)
        if operator.name in MOVES:
            return results
        return [self._rounded(operator, compute, inputs, result) for result in results]

    def _in_their_ranges(self, operator: Operator, graph: Graph, results: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Results in the ranges of their tensors. What only moves within one range is there already."""
        input_ranges = {
            graph.tensors[number].range for number in operator.inputs if number >= 0 and operator.name in MOVES
        }
        ranges = [graph.tensors[number].range for number in operator.outputs]
        return [
            result if range_ is None or input_ranges - {None} == {range_} else self._quantised(result, range_)
            for range_, result in zip(ranges, results, strict=True)
        ]

    def _quantised(self, value: np.ndarray, range_: Range | None) -> np.ndarray:
        """A value in a range, or in the range that it has itself."""
        result: np.ndarray = self._arithmetic.quantised(value.reshape(1, -1), range_).reshape(value.shape)
        return result

    def _while(self, options: Any, values: Sequence[Any]) -> Sequence[np.ndarray]:
        condition, body = options.CondSubgraphIndex(), options.BodySubgraphIndex()
        while np.all(self._inner(condition, values)[0]):
            self._passes += 1
            if self._passes > limits.PASSES:
                raise ModelFileError(f"its loops take more than {limits.PASSES:,} passes in one call")
            values = self._inner(body, values)
        return values

    def _inner(self, number: int, values: Sequence[Any]) -> list[np.ndarray]:
        graph = self._file.graphs[number]
        return self._run(number, dict(zip(graph.inputs, values, strict=True)), graph.outputs)

    def _rounded(self, operator: Operator, compute: Compute, inputs: Sequence[Any], result: np.ndarray) -> np.ndarray:
        if result.dtype.kind != "f":
            return result
        kind: Kind = "operation"
        if operator.name in SUMS:
            kind = "sum"
        elif operator.name in ACTIVATIONS:
            kind = "activation"
        terms = _terms(operator.name, operator.options, inputs, result) if kind == "sum" else 1
        return rounded_result(self._arithmetic, result, kind, terms, lambda: _squares(operator, compute, inputs, terms))


def _refuse(file: TfliteFile) -> None:
    """Raises ModelFileError for what has no float64 result here."""
    activations_of(file)
    sizes = dict[int, int]()
    for number, graph in reversed(tuple(enumerate(file.graphs))):
        sizes[number] = len(graph.operators)
        for operator in graph.operators:
            if operator.name not in (*_COMPUTED, _CAST, _WHILE, _IF, *RECURRENT):
                called = safe_text(operator.name, 100)
                raise ModelFileError(
                    f"the operator {called} is not computed here, so its float64 result is not known; write that "
                    "part of the network in other operators, and convert it again"
                )
            if operator.name not in (_WHILE, _IF):
                continue
            inner = _graphs_of(operator)
            if max(inner) >= len(file.graphs):
                raise ModelFileError(
                    f"a loop's body, or a branch, is a graph that does not exist; there are {len(file.graphs)}"
                )
            if min(inner) <= number:
                raise ModelFileError("a loop's body, or a branch, is a graph before its own, so it might call itself")
            sizes[number] += sum(sizes[graph] for graph in inner)
        limits.require_operations(sizes[number])


def activations_of(file: TfliteFile) -> Activations:
    """How the file quantises what its operators give and take.

    Raises ModelFileError for quantised tensors of which it is not known what an operator makes.
    """
    ways: set[Activations] = set()
    for graph in file.graphs:
        in_each_call = [_quantises_in_each_call(operator, graph) for operator in graph.operators]
        fixed = [_has_fixed_range(tensor) for tensor in graph.tensors]
        ways |= {"dynamic"} if any(in_each_call) else set()
        ways |= {"static"} if any(fixed) else set()
    if len(ways) > 1:
        raise ModelFileError(f"it quantises by ranges of its own and by those of each call; {UNQUANTISED}")
    return ways.pop() if ways else ""


def _quantises_in_each_call(operator: Operator, graph: Graph) -> bool:
    """Whether an operator quantises what it is given by the range of each call. Raises ModelFileError."""
    inside = [graph.tensors[number] for number in (*operator.inputs, *operator.outputs) if number >= 0]
    if operator.name in (*WEIGHTED, *RECURRENT):
        _require_scales(inside)
    if takes_its_own_range(operator, graph):
        return True
    if operator.name in RECURRENT:
        for place, number in enumerate(operator.inputs):
            is_constant = number >= 0 and graph.tensors[number].data is not None
            if is_constant and not may_have_zero_point(operator, place):
                _require_no_zero_point(graph.tensors[number])
        return has_own_range(operator, graph)
    first = next((tensor for tensor in inside if tensor.is_quantised), None)
    if first is not None and operator.name not in _QUANTISED_OPERATORS:
        raise ModelFileError(
            f"{first.called} is quantised: {first.dtype} of a scale and a zero point, and {operator.name} is "
            f"not computed here of such; {UNQUANTISED}"
        )
    return False


def _has_fixed_range(tensor: Tensor) -> bool:
    """Whether a tensor that is no constant has a range that the file fixes. Raises ModelFileError."""
    if tensor.data is None:
        return tensor.range is not None
    if tensor.is_quantised and tensor.dtype not in _QUANTISED_TYPES:
        raise ModelFileError(f"{tensor.called} is quantised: {tensor.dtype} with a scale; {UNQUANTISED}")
    if tensor.dtype in _BIASES:
        _require_no_zero_point(tensor)
    return False


def _require_no_zero_point(tensor: Tensor) -> None:
    """Raises ModelFileError for a bias, or for weights of a recurrent operator, that is not 0 where its bytes are."""
    if tensor.quantisation is not None and tensor.quantisation.zeros.any():
        raise ModelFileError(f"{tensor.called} has a zero point, which LiteRT takes for 0; {UNQUANTISED}")


def _require_scales(tensors: Sequence[Tensor]) -> None:
    """Raises ModelFileError where one of them has a scale, and a constant of whole numbers has none."""
    whole = [tensor for tensor in tensors if tensor.data is not None and tensor.data.dtype.kind in "iu"]
    bare = next((tensor for tensor in whole if not tensor.is_quantised), None)
    if bare is not None and any(tensor.is_quantised for tensor in tensors):
        raise ModelFileError(
            f"{bare.called} is {bare.dtype} without a scale, beside arrays that have one; {UNQUANTISED}"
        )


def _graphs_of(operator: Operator) -> tuple[int, int]:
    """The condition and the body of a loop, or both branches."""
    options = operator.options
    if operator.name == _IF:
        return options.ThenSubgraphIndex(), options.ElseSubgraphIndex()
    return options.CondSubgraphIndex(), options.BodySubgraphIndex()


def _terms(name: str, options: Any, inputs: Sequence[Any], result: np.ndarray) -> int:
    """Products that each element of a sum adds up."""
    if name in ("FULLY_CONNECTED", "BATCH_MATMUL"):
        return int(inputs[0].shape[-1]) if name == "BATCH_MATMUL" else int(inputs[1].shape[1])
    if name == "CONV_2D":
        return math.prod(map(int, inputs[1].shape[1:]))
    if name == "DEPTHWISE_CONV_2D":
        return math.prod(map(int, inputs[1].shape[1:3]))
    if name == "AVERAGE_POOL_2D":
        return int(options.FilterHeight() * options.FilterWidth())
    if name == "TRANSPOSE_CONV":
        return math.prod(map(int, inputs[1].shape[1:]))
    if name == "CUMSUM":
        return int(inputs[0].shape[int(np.ravel(inputs[1])[0])])
    if name == "RESIZE_BILINEAR":
        return max(map(int, inputs[0].shape[1:3]))
    return int(inputs[0].size) // max(1, result.size)


def _squares(operator: Operator, compute: Compute, inputs: Sequence[Any], terms: int) -> np.ndarray:
    """The sum of the squares of the terms, without biases and activation. The operator is linear in its inputs."""
    if operator.name == "RESIZE_BILINEAR":  # A place is computed too, and is as many times less exact as it is large.
        return np.full_like(compute(operator.options, inputs)[0], 6 * terms * np.square(inputs[0]).max(initial=0.0))
    squared = [np.square(inputs[0]), *inputs[1:2]]
    if operator.name == "TRANSPOSE_CONV":
        sizes, weights, x = inputs[:3]
        return compute(_WithoutActivation(operator.options), [sizes, np.square(weights), np.square(x)])[0]
    if operator.name in ("SUM", "CUMSUM", "MEAN", "AVERAGE_POOL_2D"):
        options = _WithoutActivation(operator.options) if operator.name == "AVERAGE_POOL_2D" else operator.options
        squares = compute(options, squared)[0]
        return squares if operator.name in ("SUM", "CUMSUM") else squares / max(1, terms)
    squared = [np.square(array) for array in inputs[:2]]
    return np.abs(compute(_WithoutActivation(operator.options), squared)[0])


class _WithoutActivation:
    """The options of an operator whose result stays as it is."""

    def __init__(self, options: Any) -> None:
        self._options = options

    def __getattr__(self, name: str) -> Callable[..., Any]:
        option: Callable[..., Any] = getattr(self._options, name)
        return (lambda: 0) if name == "FusedActivationFunction" else option
