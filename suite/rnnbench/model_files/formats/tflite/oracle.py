"""The oracle of a TFLite file: what it gives in float64, or in another arithmetic. NumPy computes its operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.tflite.file import UNQUANTISED, Operator, Tensor, TfliteFile, read_tflite
from rnnbench.model_files.formats.tflite.lstm import LSTM, sequence_lstm
from rnnbench.model_files.formats.tflite.operators import ACTIVATIONS, MOVES, OPERATIONS, SUMS, Compute, cast
from rnnbench.model_files.operator_rounding import Kind, rounded_result
from rnnbench.outside_text import describe_error, safe_text
from rnnbench.rnn import Arithmetic

_COMPUTED: dict[str, Compute] = {**MOVES, **SUMS, **ACTIVATIONS, **OPERATIONS}
_WHILE = "WHILE"
_CAST = "CAST"


class TfliteOracle:
    """A TFLite file in an arithmetic (`formats.Oracle`). Its variables are zero at the beginning of each call."""

    def __init__(self, path: Path) -> None:
        """Raises ModelFileError for a file that is not read, or has an operator that is not computed here."""
        self._name = str(path)
        self._file = read_tflite(path)
        _refuse(self._file)
        self._use(Arithmetic())

    def in_arithmetic(self, arithmetic: Arithmetic) -> TfliteOracle:
        """The same file in another arithmetic. The file is not read again."""
        other = copy(self)
        other._use(arithmetic)
        return other

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """One call: every output by name. Raises as `formats.Oracle.run` does."""
        tensors = self._file.graphs[self._file.main].tensors
        if inputs.keys() != self._file.inputs.keys():
            raise ValueError(f"expected the inputs {list(self._file.inputs)}, got {list(inputs)}")
        given = {number: self._cast(name, tensors[number], inputs[name]) for name, number in self._file.inputs.items()}
        self._passes = 0
        try:
            with np.errstate(all="ignore"):
                values = self._run(self._file.main, given, list(self._file.outputs.values()))
        except (ModelFileError, MemoryError):
            raise
        except Exception as error:
            raise ModelFileError(f"{self._name}: it cannot be computed: {describe_error(error)[:300]}") from error
        return dict(zip(self._file.outputs, values, strict=True))

    def _use(self, arithmetic: Arithmetic) -> None:
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
        assert tensor.data is not None
        return self._arithmetic.cast(tensor.data) if tensor.data.dtype.kind == "f" else tensor.data

    def _cast(self, name: str, tensor: Tensor, array: np.ndarray) -> np.ndarray:
        array = np.asarray(array)
        fits = len(tensor.sizes) == array.ndim
        if not fits or any(size not in (-1, own) for size, own in zip(tensor.sizes, array.shape, strict=True)):
            shown = ["any" if size < 0 else size for size in tensor.sizes]
            raise ValueError(f"{name}: expected the shape {shown}, got {list(array.shape)}")
        if tensor.dtype.startswith("float"):
            return self._arithmetic.cast(array)
        return array.astype(tensor.dtype, casting="same_kind", copy=False)

    def _run(self, number: int, given: Mapping[int, np.ndarray], wanted: Sequence[int]) -> list[np.ndarray]:
        """The tensors `wanted` of a graph whose inputs are `given`."""
        graph = self._file.graphs[number]
        values: dict[int, np.ndarray] = {**self._constants[number], **given}
        for operator in graph.operators:
            inputs = [None if index < 0 else values.get(index) for index in operator.inputs]
            outputs = self._operator(operator, inputs, [graph.tensors[index] for index in operator.outputs])
            values |= zip(operator.outputs, outputs, strict=True)
        return [values[index] for index in wanted]

    def _operator(self, operator: Operator, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> Sequence[np.ndarray]:
        if operator.name == _WHILE:
            return self._while(operator.options, inputs)
        if operator.name == LSTM:
            return (sequence_lstm(self._arithmetic, operator.options, inputs),)
        if operator.name == _CAST:
            return (cast(inputs[0], outputs[0].dtype),)
        compute = _COMPUTED[operator.name]
        results = compute(operator.options, inputs)
        if operator.name in MOVES:
            return results
        return [self._rounded(operator, compute, inputs, result) for result in results]

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
        terms = _terms(operator.name, inputs, result) if kind == "sum" else 1
        return rounded_result(self._arithmetic, result, kind, terms, lambda: _squares(operator, compute, inputs, terms))


def _refuse(file: TfliteFile) -> None:
    """Raises ModelFileError for what has no float64 result here."""
    for graph in file.graphs:
        for tensor in graph.tensors:
            if tensor.is_quantised:
                raise ModelFileError(
                    f"{tensor.name} is quantised: {tensor.dtype} of a scale and a zero point; {UNQUANTISED}"
                )
    for number, graph in enumerate(file.graphs):
        for operator in graph.operators:
            if operator.name not in (*_COMPUTED, _CAST, _WHILE, LSTM):
                called = safe_text(operator.name, 100)
                raise ModelFileError(f"the operator {called} is not computed here, so its float64 result is not known")
            if operator.name == _WHILE and max(_graphs_of(operator.options)) >= len(file.graphs):
                raise ModelFileError(f"a loop's body is a graph that there is not; there are {len(file.graphs)}")
            if operator.name == _WHILE and min(_graphs_of(operator.options)) <= number:
                raise ModelFileError("a loop's body is a graph before the loop's own, so it might call itself")


def _graphs_of(options: Any) -> tuple[int, int]:
    return options.CondSubgraphIndex(), options.BodySubgraphIndex()


def _terms(name: str, inputs: Sequence[Any], result: np.ndarray) -> int:
    """Products that each element of a sum adds up."""
    if name in ("FULLY_CONNECTED", "BATCH_MATMUL"):
        return int(inputs[0].shape[-1]) if name == "BATCH_MATMUL" else int(inputs[1].shape[1])
    if name == "CONV_2D":
        return math.prod(map(int, inputs[1].shape[1:]))
    if name == "DEPTHWISE_CONV_2D":
        return math.prod(map(int, inputs[1].shape[1:3]))
    return int(inputs[0].size) // max(1, result.size)


def _squares(operator: Operator, compute: Compute, inputs: Sequence[Any], terms: int) -> np.ndarray:
    """The sum of the squares of the terms, without biases and activation. The operator is linear in its inputs."""
    squared = [np.square(inputs[0]), *inputs[1:2]]
    if operator.name in ("SUM", "MEAN"):
        squares = compute(operator.options, squared)[0]
        return squares if operator.name == "SUM" else squares / max(1, terms)
    squared = [np.square(array) for array in inputs[:2]]
    return np.abs(compute(_WithoutActivation(operator.options), squared)[0])


class _WithoutActivation:
    """The options of an operator whose result stays as it is."""

    def __init__(self, options: Any) -> None:
        self._options = options

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self._options, name)
        return (lambda: 0) if name == "FusedActivationFunction" else found
