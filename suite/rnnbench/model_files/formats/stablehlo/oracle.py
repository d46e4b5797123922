"""The oracle of a module of StableHLO: what it gives in float64, or in another arithmetic. NumPy computes it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.description import require_names, require_shape
from rnnbench.model_files.errors import ModelFileError, computing
from rnnbench.model_files.file_arrays import FLOATS
from rnnbench.model_files.formats.format import Oracle
from rnnbench.model_files.formats.stablehlo.file import read_stablehlo
from rnnbench.model_files.formats.stablehlo.graph import CONSTANT, MlirArray, Node, Region, numbers
from rnnbench.model_files.formats.stablehlo.operations import (
    ACTIVATIONS,
    COMPUTED,
    MOVES,
    SUMS,
    computed_type,
    reduction,
)
from rnnbench.model_files.operator_rounding import Kind, rounded_result
from rnnbench.rnn import Arithmetic

Values = Sequence[np.ndarray]
_REDUCTIONS = ("stablehlo.reduce", "stablehlo.reduce_window")


class StablehloOracle(Oracle):
    """A module in an arithmetic."""

    def __init__(self, path: Path) -> None:
        """Raises ModelFileError for a file that is not read; MissingExtraError without a parser."""
        self._name = str(path)
        self._file = read_stablehlo(path)
        self._inputs = (*self._file.inputs, *(before for before, _ in self._file.states))
        self._results = (*self._file.outputs, *(after for _, after in self._file.states))
        is_wide = any(array.dtype == "float64" for array in (*self._inputs, *self._results))
        self._narrow = ("bfloat16", "float16", "float32") if is_wide else ("bfloat16", "float16")
        self._passes = 0
        self.use(Arithmetic())

    def use(self, arithmetic: Arithmetic) -> None:
        self._arithmetic = arithmetic
        self._narrowed = {dtype: arithmetic.narrowed(dtype) for dtype in self._narrow}

    def weights(self) -> Iterator[tuple[str, np.ndarray]]:
        for function in self._file.functions.values():
            for node in function.all_nodes():
                if node.kind == CONSTANT:
                    value = node.attributes["value"]
                    yield f"a constant of the shape {list(value.shape)}", value

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        require_names((array.name for array in self._inputs), inputs)
        arrays = [self._cast(array, np.asarray(inputs[array.name])) for array in self._inputs]
        self._passes = 0
        with computing(self._name), np.errstate(all="ignore"):
            results = self._called(self._file.entry, arrays)
        # NumPy's views of an input or a constant are not the caller's to write.
        return {array.name: np.array(value) for array, value in zip(self._results, results, strict=True)}

    def _cast(self, array: MlirArray, value: np.ndarray) -> np.ndarray:
        require_shape(array.name, array.shape, value)
        if array.dtype in FLOATS:
            return self._arithmetic.cast(value)
        return value.astype(array.dtype, casting="same_kind", copy=False)

    def _called(self, name: str, values: Values) -> Values:
        return self._run(self._file.functions[name], values, {})

    def _run(self, region: Region, arguments: Values, outer: Mapping[int, np.ndarray]) -> Values:
        """The results of a body, which may use the values around it."""
        values = {**outer, **dict(zip(region.arguments, arguments, strict=True))}
        for node in region.nodes:
            outputs = self._outputs(node, [values[number] for number in node.inputs], values)
            values |= zip(node.outputs, outputs, strict=True)
        return [values[number] for number in region.results]

    def _outputs(self, node: Node, inputs: Values, values: Mapping[int, np.ndarray]) -> Values:
        if node.kind == "stablehlo.reduce" and not reduction(node):
            return self._folded(node, inputs, values)
        if node.kind in COMPUTED:
            return [self._computed(node, inputs)]
        if node.kind == CONSTANT:
            value = node.attributes["value"]
            return [self._arithmetic.cast(value) if value.dtype.kind == "f" else value]
        if node.kind == "stablehlo.while":
            return self._while(node, inputs, values)
        if node.kind == "stablehlo.if":
            return self._run(node.regions[0 if bool(inputs[0]) else 1], [], values)
        if node.kind == "stablehlo.case":
            last = len(node.regions) - 1
            chosen = int(inputs[0]) if 0 <= int(inputs[0]) <= last else last
            return self._run(node.regions[chosen], [], values)
        if node.kind in ("func.call", "stablehlo.composite"):
            return self._called(node.attributes["callee" if node.kind == "func.call" else "decomposition"], inputs)
        return inputs  # optimization_barrier

    def _while(self, node: Node, state: Values, values: Mapping[int, np.ndarray]) -> Values:
        condition, body = node.regions
        while bool(self._run(condition, state, values)[0]):
            self._pass()
            state = self._run(body, state, values)
        return state

    def _folded(self, node: Node, inputs: Values, values: Mapping[int, np.ndarray]) -> Values:
        """A reduction of several arrays or by several operations, such as an argmax: one element after the other."""
        (body,), count, over = node.regions, len(inputs) // 2, node.attributes["dimensions"]
        kept = [axis for axis in range(inputs[0].ndim) if axis not in over]
        shape = [inputs[0].shape[axis] for axis in kept]
        rows = [array.transpose([*over, *kept]).reshape(-1, *shape) for array in inputs[:count]]
        results = list(inputs[count:])
        for elements in zip(*rows, strict=True):
            self._pass()
            results = list(self._run(body, [*results, *elements], values))
        return [np.broadcast_to(result, shape) for result in results]

    def _pass(self) -> None:
        self._passes += 1
        if self._passes > limits.PASSES:
            raise ModelFileError(f"its loops take more than {limits.PASSES:,} passes in one call")

    def _computed(self, node: Node, inputs: Values) -> np.ndarray:
        result = np.asarray(COMPUTED[node.kind](node, inputs))
        if result.dtype.kind != "f":
            return result.astype(computed_type(node.types[0].dtype), copy=False)
        narrowed = self._narrowed.get(node.types[0].dtype)
        if node.kind in MOVES and (narrowed is None or node.kind != "stablehlo.convert"):
            return result
        kind: Kind = "operation"
        if node.kind in ACTIVATIONS:
            kind = "activation"
        elif node.kind in SUMS:
            if node.kind in _REDUCTIONS and reduction(node) != "stablehlo.add":
                return result
            kind = "sum"
        terms = _terms(node, inputs, result) if kind == "sum" else 1
        return rounded_result(narrowed or self._arithmetic, result, kind, terms, lambda: _squares(node, inputs))


def _terms(node: Node, inputs: Values, result: np.ndarray) -> int:
    """Products or numbers that each element of a sum adds up."""
    if node.kind == "stablehlo.dot":
        return int(inputs[0].shape[-1])
    if node.kind == "stablehlo.dot_general":
        dims = numbers(node.attributes["dot_dimension_numbers"], "lhs_contracting_dimensions")
        return math.prod(inputs[0].shape[axis] for axis in dims)
    if node.kind == "stablehlo.convolution":
        features = node.attributes["dimension_numbers"].partition("->")[2].strip("[]>").split(",")
        outputs: int = result.shape[[name.strip() for name in features].index("f")]
        return int(inputs[1].size) // max(1, outputs)
    if node.kind == "stablehlo.reduce_window":
        return math.prod(node.attributes["window_dimensions"])
    return int(inputs[0].size) // max(1, result.size)


def _squares(node: Node, inputs: Values) -> np.ndarray:
    """The sum of the squares of the terms: these operations are linear in what they sum."""
    if node.kind in _REDUCTIONS:
        return np.asarray(COMPUTED[node.kind](node, [np.square(inputs[0]), np.zeros_like(inputs[1])]))
    return np.asarray(COMPUTED[node.kind](node, [np.square(array) for array in inputs]))
