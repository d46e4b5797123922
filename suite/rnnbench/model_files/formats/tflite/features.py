"""What a TFLite file contains that runtimes are known to get wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from rnnbench.model_files.description import Feature
from rnnbench.model_files.formats.tflite.graph import Graph, Operator, Tensor, TfliteFile
from rnnbench.model_files.formats.tflite.lstm import RECURRENT_WEIGHTS
from rnnbench.model_files.formats.tflite.lstm_ranges import BOTH, LSTMS, SEQUENCE, is_basic
from rnnbench.model_files.formats.tflite.recurrent import states_of
from rnnbench.model_files.formats.tflite.schema import require_schema
from rnnbench.model_files.traits import SEVEN_BITS, Operation, dependences, reached, sources

_PRODUCTS = frozenset(("FULLY_CONNECTED", "BATCH_MATMUL"))
_ELEMENTWISE = frozenset(
    (
        *("QUANTIZE", "DEQUANTIZE", "ADD", "SUB", "MUL", "DIV", "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM"),
        *("ABS", "NEG"),
        *("RELU", "RELU6", "RELU_N1_TO_1", "LEAKY_RELU", "PRELU", "ELU", "LOGISTIC", "TANH", "HARD_SWISH", "GELU"),
        *("SQRT", "RSQRT", "SQUARE", "EXP", "LOG", "SOFTMAX"),
    )
)
"""Operators that the runtime computes in one kernel with the products around them."""
_SHAPES = frozenset(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"))
"""Operators that give their first input in another shape."""
_CONVOLVED = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 0, "TRANSPOSE_CONV": 2}
"""Index of the data in the inputs of each convolution."""
_BIAS = 2
"""Index of the bias in the inputs of FULLY_CONNECTED."""


def depends_of(file: TfliteFile) -> dict[str, tuple[str, ...]]:
    """The inputs that each output is computed from."""
    graph = file.graphs[file.main]
    inputs = {name: str(number) for name, number in file.inputs.items()}
    outputs = {name: _output_value(graph, number) for name, number in file.outputs.items()}
    return dependences(_operations(graph), inputs, outputs)


def _output_value(graph: Graph, number: int) -> str:
    """The value that an output is. Of an operator's own state, it is the one that the operator leaves."""
    return f"{number} after" if graph.tensors[number].is_variable else str(number)


def _operations(graph: Graph) -> Iterator[Operation]:
    """A loop or branch gives what depends on all that it takes."""
    for operator in graph.operators:
        states = [number for number in operator.inputs if number >= 0 and graph.tensors[number].is_variable]
        gives = [_output_value(graph, number) for number in (*operator.outputs, *states)]
        yield Operation([str(number) for number in operator.inputs], gives)


def _second_products(graph: Graph) -> set[int]:
    """What a product gives of another one's result, with operators of elements between, where one has no bias."""
    makers = {output: operator for operator in graph.operators for output in operator.outputs}
    numbers = set[int]()
    for operator in graph.operators:
        if not _is_quantised_product(operator, graph):
            continue
        waiting, seen = [number for number in operator.inputs if number >= 0], set[int]()
        while waiting:
            number = waiting.pop()
            before = makers.get(number)
            if before is None or number in seen:
                continue
            seen.add(number)
            if _is_quantised_product(before, graph):
                numbers.update(() if _has_bias(before) and _has_bias(operator) else operator.outputs)
            elif before.name in _ELEMENTWISE:
                waiting += before.inputs
    return numbers


def _is_quantised_product(operator: Operator, graph: Graph) -> bool:
    return operator.name in _PRODUCTS and graph.tensors[operator.inputs[0]].is_quantised


def _has_bias(operator: Operator) -> bool:
    return len(operator.inputs) > _BIAS and operator.inputs[_BIAS] >= 0


def _of_8_bits(graph: Graph) -> set[int]:
    """What products and convolutions of a quantised array by bytes beyond 64 give."""
    numbers = set[int]()
    for operator in graph.operators:
        if operator.name in {*_PRODUCTS, *_CONVOLVED}:
            taken = [graph.tensors[number] for number in operator.inputs if number >= 0]
            if any(map(_has_large_bytes, taken)) and any(each.is_quantised and each.data is None for each in taken):
                numbers.update(operator.outputs)
    return numbers


def _has_large_bytes(tensor: Tensor) -> bool:
    if tensor.data is None or tensor.quantisation is None or tensor.dtype not in ("int8", "uint8"):
        return False
    return bool((np.abs(tensor.data.astype(np.int16) - tensor.quantisation.zeros[0]) > SEVEN_BITS).any())


def _of_16_bits(graph: Graph) -> set[int]:
    """The arrays with a scale in int16 that are no constants, and no operator's own state."""
    return {
        number
        for number, tensor in enumerate(graph.tensors)
        if tensor.is_quantised and tensor.dtype == "int16" and tensor.data is None and not tensor.is_variable
    }


def _convolutions_of_outputs(graph: Graph) -> set[int]:
    """What convolutions give of a value that is an output too, but for its shape."""
    makers = {
        str(output): (operator.name, str(operator.inputs[0]))
        for operator in graph.operators
        for output in operator.outputs
    }
    kept = {value for end in graph.outputs for value, _ in sources(str(end), makers, _SHAPES)}
    numbers = set[int]()
    for operator in graph.operators:
        if operator.name in _CONVOLVED:
            way = sources(str(operator.inputs[_CONVOLVED[operator.name]]), makers, {*_SHAPES, "TRANSPOSE"})
            # A value that nothing makes is an input.
            if any(value in kept and between for value, between in way):
                numbers.update(operator.outputs)
    return numbers


def _merged_directions(graph: Graph) -> set[int]:
    """The result and states of an LSTM of both directions with one array of several rows, which come before steps."""
    numbers = set[int]()
    for operator in graph.operators:
        if operator.name == BOTH and operator.options.MergeOutputs() and not operator.options.TimeMajor():
            rows = graph.tensors[operator.inputs[0]].sizes[0]
            numbers.update(() if rows == 1 else (*operator.outputs, *states_of(operator)))
    return numbers


def _directions_of_rnn(graph: Graph) -> set[int]:
    """The results and states of an RNN of both directions in the forms whose arrays are taken wrongly.

    These are the time first with whole weights; an auxiliary input with weights and another size than x, but for float
    weights with the rows first; and an auxiliary input without weights, with the rows first.
    """
    numbers = set[int]()
    for operator in graph.operators:
        if operator.name == "BIDIRECTIONAL_SEQUENCE_RNN":
            x, weight, (beside, *of_beside) = (
                operator.inputs[0],
                operator.inputs[1],
                (*operator.inputs[9:11], -1, -1)[:2],
            )
            first, whole = bool(operator.options.TimeMajor()), graph.tensors[weight].dtype != "float32"
            weighted = beside >= 0 and of_beside[0] >= 0
            other = weighted and graph.tensors[beside].shape[-1] != graph.tensors[x].shape[-1]
            if (whole and first) or (other and (whole or first)) or (beside >= 0 and not weighted and not first):
                numbers.update((*operator.outputs, *states_of(operator)))
    return numbers


def _activations_of_lstms(graph: Graph) -> set[int]:
    """The results and states of LSTM operators without an activation, or in whole numbers with another than tanh.

    The basic kernel has a tanh in any case.
    """
    kinds, numbers = require_schema().ActivationFunctionType, set[int]()
    for operator in graph.operators:
        if operator.name in LSTMS and not is_basic(operator):
            chosen, whole = operator.options.FusedActivationFunction(), graph.tensors[operator.inputs[0]].is_quantised
            if chosen == kinds.NONE or (whole and chosen != kinds.TANH):
                numbers.update((*operator.outputs, *states_of(operator)))
    return numbers


def _whole_diagonals(graph: Graph) -> set[int]:
    """The results and states of LSTM operators with diagonal recurrent weights of whole numbers."""
    numbers = set[int]()
    for operator in graph.operators:
        if operator.name == SEQUENCE:
            weights = [graph.tensors[number] for number in operator.inputs[RECURRENT_WEIGHTS] if number >= 0]
            if any(len(weight.shape) == 1 and weight.is_quantised for weight in weights):
                numbers.update((*operator.outputs, *states_of(operator)))
    return numbers


_FOUND: Mapping[str, Callable[[Graph], set[int]]] = {
    "quantised-products": _second_products,
    "eight-bit-products": _of_8_bits,
    "two-byte-arrays": _of_16_bits,
    "convolution-of-an-output": _convolutions_of_outputs,
    "merged-directions": _merged_directions,
    "rnn-directions": _directions_of_rnn,
    "lstm-activation": _activations_of_lstms,
    "whole-diagonals": _whole_diagonals,
}
"""The arrays of a graph that have a trait."""


def features_of(file: TfliteFile) -> Iterator[Feature]:
    """Products of quantised arrays, arrays of 16 bits, convolutions of outputs, both directions, and rings.

    A ring is an output that is a slice of an input with other values behind it.
    """
    graph = file.graphs[file.main]
    for name, numbers_in in _FOUND.items():
        inside = any(numbers_in(other) for other in file.graphs if other is not graph)
        outputs = {output: _output_value(graph, number) for output, number in file.outputs.items()}
        values = set(map(str, numbers_in(graph)))
        if arrays := tuple(outputs) if inside else reached(_operations(graph), values, outputs):
            yield Feature(name, arrays)
    makers = {output: operator for operator in graph.operators for output in operator.outputs}
    rings = set[int]()
    for number in file.outputs.values():
        operator = makers.get(number)
        if operator is not None and operator.name == "CONCATENATION":
            parts = [makers.get(number) for number in operator.inputs]
            rings |= {part.inputs[0] for part in parts if part is not None and part.name in ("SLICE", "STRIDED_SLICE")}
    if arrays := tuple(name for name, number in file.inputs.items() if number in rings):
        yield Feature("ring", arrays)
