"""Arrays that an ONNX file quantises by the ranges that they have, as `onnxruntime.quantization.quantize_dynamic` does.

The oracle has such an array in float. DynamicQuantizeLinear gives x itself, the scale 1 and the zero point 0.
MatMulInteger and ConvInteger multiply it by the file's whole numbers. The nodes that follow, such as the product with
the scales, stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.onnx.file import require_onnx
from rnnbench.model_files.formats.onnx.recurrent_operators import recurrent_operator
from rnnbench.model_files.formats.onnx.tensors import all_nodes, graphs
from rnnbench.outside_text import safe_text
from rnnbench.rnn import Arithmetic

Run = Callable[..., tuple[np.ndarray, ...]]
QUANTIZE, LSTM = "DynamicQuantizeLinear", "DynamicQuantizeLSTM"
LSTM_DOMAIN = "com.microsoft"
PRODUCTS = ("MatMulInteger", "ConvInteger")
_DEQUANTIZE = "DequantizeLinear"
MOVES = ("Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Gather", "Flatten")
_BIAS_ROUNDS = ("Cast", "Floor")
_TAKERS_OF_VALUES = frozenset((operator, 0) for operator in (*PRODUCTS, *MOVES, _DEQUANTIZE))
_TAKERS_OF_SCALES = frozenset(((_DEQUANTIZE, 1), ("Mul", 0), ("Mul", 1)))
_TAKERS_OF_ZEROS = frozenset((operator, 2) for operator in (*PRODUCTS, _DEQUANTIZE))
"""Operators into which each output of a DynamicQuantizeLinear may go, and as which input."""
_LSTM_INPUTS = 8
"""Inputs of DynamicQuantizeLSTM that an LSTM has, too. Scale and zero point of W and of R follow."""
_ADVICE = (
    "files are read as onnxruntime.quantization.quantize_dynamic writes them, or quantize_static in the format QDQ; or "
    "export it in float32"
)


def is_dynamic(node: Any) -> bool:
    """Whether the node quantises an operand by the range that it has."""
    return is_own(node, QUANTIZE) or is_dynamic_lstm(node)


def is_dynamic_lstm(node: Any) -> bool:
    return bool(node.op_type == LSTM and node.domain == LSTM_DOMAIN)


def is_own(node: Any, *operators: str) -> bool:
    """Whether it is one of these operators of ONNX's own."""
    return node.op_type in operators and node.domain in ("", "ai.onnx")


def own_ranges(model: Any) -> frozenset[str]:
    """Names of the values in bytes that a DynamicQuantizeLinear makes, and of what is moved from them.

    Raises ModelFileError where they, their scales or zero points go into other nodes than those that are computed here.
    """
    nodes = [*all_nodes(model)]
    values, scales, zeros = (dict[str, str]() for _ in range(3))
    for node in nodes:
        if is_own(node, QUANTIZE):
            for names, name in zip((values, scales, zeros), node.output, strict=False):
                names[name] = node.output[0]
        elif is_own(node, *MOVES) and node.input[0] in values:
            values[node.output[0]] = values[node.input[0]]
    for node in nodes:
        if is_own(node, *PRODUCTS) and node.input[0] not in values:
            raise ModelFileError(f"{node.op_type} of something else than DynamicQuantizeLinear makes; {_ADVICE}")
        for place, name in enumerate(node.input):
            takers_of = ((values, _TAKERS_OF_VALUES), (scales, _TAKERS_OF_SCALES), (zeros, _TAKERS_OF_ZEROS))
            takers = [operators for names, operators in takers_of if name in names]
            is_taker = any((node.op_type, place) in operators for operators in takers) and is_own(node, node.op_type)
            if takers and not (is_taker and _is_of_one(node, values, zeros)):
                raise ModelFileError(
                    f"what DynamicQuantizeLinear makes goes into {safe_text(node.op_type, 80)} as input {place}; "
                    f"{_ADVICE}"
                )
    ends = {value.name for graph in graphs(model) for value in graph.output}
    if ends & (values.keys() | scales.keys() | zeros.keys()):
        raise ModelFileError(f"what a DynamicQuantizeLinear makes is an output; {_ADVICE}")
    return frozenset(values)


def whole_biases(model: Any) -> frozenset[str]:
    """Names of the values on the way of a bias to whole numbers, in steps of the product that it is added to.

    So quantisers of ONNX Runtime 1.5 to 1.7 write it: Add(ConvInteger(…), Reshape(Cast(Floor(Div(bias, scale))))).
    """
    makers = {name: node for node in all_nodes(model) for name in node.output}
    uses = Counter(name for node in all_nodes(model) for name in node.input)
    found = set[str]()
    for node in all_nodes(model):
        if is_own(node, "Add") and any(name in makers and is_own(makers[name], *PRODUCTS) for name in node.input):
            for name in node.input:
                while name in makers and uses[name] == 1 and is_own(makers[name], *_BIAS_ROUNDS, *MOVES):
                    found.update(makers[name].output if is_own(makers[name], *_BIAS_ROUNDS) else ())
                    name = makers[name].input[0]
    return frozenset(found)


def _is_of_one(node: Any, values: dict[str, str], zeros: dict[str, str]) -> bool:
    """Whether a product, or a DequantizeLinear, has the zero point of the same DynamicQuantizeLinear as the value."""
    if not is_own(node, *PRODUCTS, _DEQUANTIZE) or node.input[0] not in values:
        return True
    return zeros.get([*node.input, "", ""][2]) == values[node.input[0]]


def quantise(arithmetic: Arithmetic) -> Run:
    """DynamicQuantizeLinear: x, in int8's arithmetic rounded to 8 bits of its range, with the scale 1 and the zero
    point 0."""

    def run(x: np.ndarray, **options: Any) -> tuple[np.ndarray, ...]:
        values = arithmetic.quantised(x.reshape(1, -1), None).reshape(x.shape)
        return values, np.ones((), arithmetic.carrier), np.zeros((), arithmetic.carrier)

    return run


def product(node: Any, arithmetic: Arithmetic) -> Run:
    """MatMulInteger or ConvInteger, a node of ONNX's evaluator, of the values that `quantise` gives."""
    kind = arithmetic.carrier

    def run(
        x: np.ndarray, weight: np.ndarray, zero: Any = None, weight_zero: Any = None, **options: Any
    ) -> tuple[np.ndarray, ...]:
        if node.onnx_node.op_type == "MatMulInteger":
            return ((x @ _centred(weight, weight_zero, kind)).astype(kind, copy=False),)
        if weight_zero is not None and np.ndim(weight_zero):
            weight_zero = weight_zero.reshape(-1, *(1,) * (weight.ndim - 1))
        convolve = require_onnx("onnx.reference.ops.op_conv")._conv_implementation
        attributes = (node.auto_pad, node.dilations, node.group, node.kernel_shape, node.pads, node.strides)
        return (convolve(x, _centred(weight, weight_zero, kind), None, *attributes).astype(kind, copy=False),)

    return run


def _centred(weight: np.ndarray, zero: np.ndarray | None, kind: np.dtype) -> np.ndarray:
    return weight.astype(kind) if zero is None else weight.astype(kind) - np.asarray(zero).astype(kind)


def dynamic_lstm(proto: Any, arithmetic: Arithmetic, attributes: dict[str, Any]) -> Run:
    """DynamicQuantizeLSTM: an LSTM whose W [directions, input, 4·hidden] and R are whole numbers. In int8's arithmetic
    its x and h are quantised by the ranges that they have.

    Source: ContribOperators.md of ONNX Runtime.
    """
    plain = type(proto)()
    plain.CopyFrom(proto)
    plain.op_type, plain.domain = "LSTM", ""
    del plain.input[_LSTM_INPUTS:]
    run_plain = recurrent_operator(plain, arithmetic, attributes)

    def run(x: np.ndarray, w: np.ndarray, r: np.ndarray, *rest: Any, **options: Any) -> tuple[np.ndarray, ...]:
        w_scale, w_zero, r_scale, r_zero = rest[_LSTM_INPUTS - 3 :]
        w, r = (
            (_centred(whole, _rows(zero), arithmetic.carrier) * _rows(scale)).swapaxes(1, 2)
            for whole, scale, zero in ((w, w_scale, w_zero), (r, r_scale, r_zero))
        )
        return run_plain(x, w, r, *rest[: _LSTM_INPUTS - 4])

    return run


def _rows(scale: np.ndarray) -> np.ndarray:
    """One value, one a direction, or one a direction and gate row, beside a matrix [directions, input, 4·hidden]."""
    scale = np.asarray(scale)
    return scale.reshape(scale.shape[0] if scale.ndim else 1, 1, scale.shape[1] if scale.ndim > 1 else 1)
