"""Operators that stand for several of ONNX's own, and the nodes that they stand for.

ONNX Runtime's optimiser writes most of them, and `quantize_static` in the format QOperator the quantised ones. A
quantised operator is its operands dequantised, the operator in float, and its result quantised.
Source: docs/ContribOperators.md of ONNX Runtime, and the text of QLinearMatMul and QLinearConv.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.onnx.file import require_onnx
from rnnbench.model_files.formats.onnx.tensors import all_nodes, graphs
from rnnbench.outside_text import safe_text

MICROSOFT = "com.microsoft"
_OPSET = 13
"""Version of ONNX's own operators, of a file that has none of them."""
INTERNAL, MOVE_AXIS = "rnnbench", "MoveAxis"
"""The domain and the name of an operator that only the oracle has: `move_axis`."""
_GELU_TANH = 0.044715
_SQUARED_SLOPE = 2 / np.pi
_ACTIVATION = "activation"
_SOFTMAX_OF_AN_AXIS = 13
"""Version of ONNX's operators from which on a Softmax is along one axis."""


def in_own_operators(model: Any) -> Any:
    """A ModelProto with ONNX's own operators in place of fused ones: a copy, where it has any. Others stay as they are.

    Raises ModelFileError for a form of a fused operator that is not computed here.
    """
    if not any(_of(node) in _EXPANSIONS for node in all_nodes(model)):
        return model
    copy = type(model)()
    copy.CopyFrom(model)
    make_opset = require_onnx().helper.make_opsetid
    copy.opset_import.append(make_opset(INTERNAL, 1))
    if all(entry.domain not in ("", "ai.onnx") for entry in copy.opset_import):
        copy.opset_import.append(make_opset("", _OPSET))
    for graph in graphs(copy):
        nodes = [own for node in graph.node for own in _own_nodes(node)]
        del graph.node[:]
        graph.node.extend(nodes)
    return copy


def move_axis(self: Any, x: np.ndarray, *, source: int, to: int) -> tuple[np.ndarray]:
    """A Transpose that moves one axis, of an array of any rank. A vector stays as it is."""
    return (np.moveaxis(x, source, to) if x.ndim > 1 else x,)


def _of(node: Any) -> tuple[str, str]:
    return "" if node.domain == "ai.onnx" else node.domain, node.op_type


def _own_nodes(node: Any) -> list[Any]:
    expand = _EXPANSIONS.get(_of(node))
    if expand is None:
        return [node]
    nodes = _Nodes(node)
    expand(nodes)
    return nodes.made


class _Nodes:
    """The nodes that one fused node stands for."""

    def __init__(self, node: Any) -> None:
        self.made: list[Any] = []
        self.input = [*node.input, *[""] * 16]
        self.count = len(node.input)
        self.output = list(node.output)
        get = require_onnx().helper.get_attribute_value
        self.attributes = {attribute.name: get(attribute) for attribute in node.attribute}
        self._called = f"{node.domain}.{node.op_type}" if node.domain else node.op_type

    def name(self, part: str) -> str:
        """A name for a value inside."""
        return f"{self.output[0]}#{part}"

    def add(self, operator: str, *inputs: str, domain: str = "", result: str = "", **attributes: Any) -> str:
        """A node of ONNX's own operators. Returns the name of its first result."""
        name = result or self.name(str(len(self.made)))
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        self.made.append(require_onnx().helper.make_node(operator, given, [name], domain=domain, **attributes))
        return name

    def move_axis(self, x: str, source: int, to: int) -> str:
        return self.add(MOVE_AXIS, x, domain=INTERNAL, source=source, to=to)

    def end(self, name: str) -> None:
        """`name` is the result of the fused node."""
        self.add("Identity", name, result=self.output[0])

    def number(self, value: float) -> str:
        onnx = require_onnx()
        return self.add("Constant", value=onnx.numpy_helper.from_array(np.float32(value)))

    def refuse(self, what: str) -> ModelFileError:
        called = safe_text(self._called, 80)
        return ModelFileError(f"{called} with {what} is not computed here; save the network before it is optimised")

    def taken(self, *names: str, **defaults: Any) -> dict[str, Any]:
        """These attributes, for a node of ONNX's own. The others must be in `defaults`, and have that value."""
        for name, value in self.attributes.items():
            if name not in names and (name not in defaults or value != defaults[name]):
                raise self.refuse(f"{safe_text(name, 40)} = {safe_text(str(value), 40)}")
        return {name: self.attributes[name] for name in names if name in self.attributes}


def _activated(nodes: _Nodes, x: str, name: bytes, numbers: Sequence[float]) -> str:
    """The activation of a fused operator; `numbers` are its parameters, in the order of its attributes."""
    match name.decode("utf-8", "replace"), len(numbers):
        case "", _:
            return x
        case ("Relu" | "Sigmoid" | "Tanh" | "Softplus" | "Softsign") as operator, _:
            return nodes.add(operator, x)
        case ("LeakyRelu" | "Elu" | "ThresholdedRelu") as operator, 1 | 2 | 3:
            return nodes.add(operator, x, alpha=numbers[0])
        case "HardSigmoid", 2 | 3:
            return nodes.add("HardSigmoid", x, alpha=numbers[0], beta=numbers[1])
        case "Clip", 2:
            return nodes.add("Min", nodes.add("Max", x, nodes.number(numbers[0])), nodes.number(numbers[1]))
        case other, _:
            raise nodes.refuse(f"the activation {safe_text(other, 40)}")


def _fused_matmul(nodes: _Nodes) -> None:
    flags = nodes.taken("transA", "transB", "transBatchA", "transBatchB", "alpha")
    operands = []
    for name, side in zip(nodes.input, "AB", strict=False):
        operand = nodes.move_axis(name, 0, -2) if flags.get(f"transBatch{side}") else name
        operands.append(nodes.move_axis(operand, -1, -2) if flags.get(f"trans{side}") else operand)
    y = nodes.add("MatMul", *operands)
    alpha = flags.get("alpha", 1.0)
    nodes.end(y if alpha == 1 else nodes.add("Mul", y, nodes.number(alpha)))


def _fused_gemm(nodes: _Nodes) -> None:
    numbers = [nodes.attributes.pop(f"activation_{name}", 0.0) for name in ("alpha", "beta", "gamma")]
    activation = nodes.attributes.pop(_ACTIVATION, b"")
    own = nodes.taken("alpha", "beta", "transA", "transB")
    nodes.end(_activated(nodes, nodes.add("Gemm", *nodes.input[:3], **own), activation, numbers))


def _fused_conv(nodes: _Nodes) -> None:
    activation, numbers = nodes.attributes.pop(_ACTIVATION, b""), nodes.attributes.pop("activation_params", [])
    own = nodes.taken("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    y = nodes.add("Conv", *nodes.input[:3], **own)
    y = nodes.add("Add", y, nodes.input[3]) if nodes.input[3] else y
    nodes.end(_activated(nodes, y, activation, numbers))


def _gelu(nodes: _Nodes) -> None:
    """x/2 · (1 + erf(x/√2)); x is the sum of the inputs."""
    nodes.taken()
    x = _sum(nodes, nodes.input[:2])
    erf = nodes.add("Erf", nodes.add("Div", x, nodes.add("Sqrt", nodes.number(2))))
    nodes.end(_half_of(nodes, x, erf))


def _fast_gelu(nodes: _Nodes) -> None:
    """x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))); x is the sum of the inputs."""
    nodes.taken()
    x = _sum(nodes, nodes.input[:2])
    cube = nodes.add("Mul", nodes.add("Mul", nodes.add("Mul", x, x), x), nodes.number(_GELU_TANH))
    inner = nodes.add("Mul", nodes.add("Add", x, cube), nodes.add("Sqrt", nodes.number(_SQUARED_SLOPE)))
    nodes.end(_half_of(nodes, x, nodes.add("Tanh", inner)))


def _half_of(nodes: _Nodes, x: str, y: str) -> str:
    """x/2 · (1 + y)."""
    return nodes.add("Mul", nodes.add("Mul", x, nodes.number(0.5)), nodes.add("Add", y, nodes.number(1)))


def _quick_gelu(nodes: _Nodes) -> None:
    """x · sigmoid(αx)."""
    alpha = nodes.taken("alpha").get("alpha", 1.702)
    x = nodes.input[0]
    nodes.end(nodes.add("Mul", x, nodes.add("Sigmoid", nodes.add("Mul", x, nodes.number(alpha)))))


def _sum(nodes: _Nodes, names: Sequence[str]) -> str:
    first, *others = filter(None, names)
    for other in others:
        first = nodes.add("Add", first, other)
    return first


def _skip_layer_norm(nodes: _Nodes) -> None:
    x, skip, gamma, beta, bias = nodes.input[:5]
    _skip_norm(nodes, "LayerNormalization", (x, skip, bias), (gamma, beta))


def _skip_rms_norm(nodes: _Nodes) -> None:
    x, skip, gamma, bias = nodes.input[:4]
    _skip_norm(nodes, "RMSNormalization", (x, skip, bias), (gamma,))


def _skip_norm(nodes: _Nodes, operator: str, terms: Sequence[str], rows: Sequence[str]) -> None:
    """The fourth result is the sum. The second and third are of training."""
    epsilon = nodes.taken("epsilon").get("epsilon", 1e-12)
    results = [*nodes.output, "", "", ""]
    if any(results[1:3]):
        raise nodes.refuse("a mean as a result")
    total = _sum(nodes, terms)
    nodes.end(nodes.add(operator, total, *rows, axis=-1, epsilon=epsilon))
    if results[3]:
        nodes.add("Identity", total, result=results[3])


def _dynamic_matmul(nodes: _Nodes) -> None:
    """DynamicQuantizeMatMul: x, the weights, their scale and zero point, a bias."""
    nodes.taken()
    x, weight, scale, zero, bias = nodes.input[:5]
    names = [nodes.name(part) for part in ("bytes", "scale", "zero")]
    nodes.made.append(require_onnx().helper.make_node("DynamicQuantizeLinear", [x], names))
    _integer_product(nodes, (names[0], weight, names[1], scale, names[2], zero, bias))


def _integer_matmul(nodes: _Nodes) -> None:
    """MatMulIntegerToFloat: two operands, their scales, their zero points, a bias."""
    nodes.taken()
    _integer_product(nodes, nodes.input[:7])


def _integer_product(nodes: _Nodes, names: Sequence[str]) -> None:
    a, b, a_scale, b_scale, a_zero, b_zero, bias = names
    product = nodes.add("MatMulInteger", a, b, a_zero, b_zero)
    real = nodes.add("Cast", product, to=require_onnx().TensorProto.FLOAT)
    y = nodes.add("Mul", real, nodes.add("Mul", a_scale, b_scale))
    nodes.end(nodes.add("Add", y, bias) if bias else y)


def _real(nodes: _Nodes, place: int, axis: int = 1) -> str:
    """An operand, whose whole numbers, scale and zero point are the inputs from `place` on."""
    return nodes.add("DequantizeLinear", *nodes.input[place : place + 3], axis=axis)


def _quantise(nodes: _Nodes, value: str, scale: str, zero: str) -> None:
    nodes.add("QuantizeLinear", value, scale, zero, result=nodes.output[0])


def _quantised_of_one(operator: str, *attributes: str) -> Callable[[_Nodes], None]:
    def expand(nodes: _Nodes) -> None:
        own = nodes.taken(*attributes)
        _quantise(nodes, nodes.add(operator, _real(nodes, 0), **own), *nodes.input[3:5])

    return expand


def _quantised_of_two(operator: str) -> Callable[[_Nodes], None]:
    def expand(nodes: _Nodes) -> None:
        nodes.taken()
        a, b = _real(nodes, 0), _real(nodes, 3, axis=-1)
        _quantise(nodes, nodes.add(operator, a, b), *nodes.input[6:8])

    return expand


def _quantised_softmax(nodes: _Nodes) -> None:
    own = nodes.taken("axis", "opset")
    if own.pop("opset", 0) < _SOFTMAX_OF_AN_AXIS and own.get("axis", 1) != -1:
        raise nodes.refuse("a softmax over several axes")
    x = _real(nodes, 0)
    _quantise(nodes, nodes.add("Softmax", x, axis=own.get("axis", -1)), *nodes.input[3:5])


def _quantised_concat(nodes: _Nodes) -> None:
    own = nodes.taken("axis")
    parts = [_real(nodes, place) for place in range(2, nodes.count, 3)]
    _quantise(nodes, nodes.add("Concat", *parts, **own), *nodes.input[:2])


def _quantised_conv(nodes: _Nodes) -> None:
    """QLinearConv: the bias has whole numbers, in steps of the product of both scales."""
    channels_last = nodes.attributes.pop("channels_last", 0)
    own = nodes.taken("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    x, weight, bias = _real(nodes, 0), _real(nodes, 3, axis=0), nodes.input[8]
    if bias:
        bias = nodes.add("DequantizeLinear", bias, nodes.add("Mul", nodes.input[1], nodes.input[4]), axis=0)
    y = nodes.add("Conv", nodes.move_axis(x, -1, 1) if channels_last else x, weight, bias, **own)
    _quantise(nodes, nodes.move_axis(y, 1, -1) if channels_last else y, *nodes.input[6:8])


def _quantised_gemm(nodes: _Nodes) -> None:
    """QGemm: the bias has whole numbers, in steps of α and both scales. Without a scale, its result is in float."""
    own = nodes.taken("alpha", "transA", "transB")
    a, b = _real(nodes, 0), _real(nodes, 3, axis=0 if own.get("transB") else 1)
    bias, y_scale, y_zero = nodes.input[6:9]
    if bias:
        scale = nodes.add("Mul", nodes.input[1], nodes.input[4])
        scale = nodes.add("Mul", scale, nodes.number(own["alpha"])) if own.get("alpha", 1.0) != 1 else scale
        bias = nodes.add("DequantizeLinear", bias, scale, axis=-1)
    y = nodes.add("Gemm", a, b, bias, **own)
    if y_scale:
        _quantise(nodes, y, y_scale, y_zero)
    else:
        nodes.end(y)


_EXPANSIONS: dict[tuple[str, str], Callable[[_Nodes], None]] = {
    ("", "QLinearConv"): _quantised_conv,
    ("", "QLinearMatMul"): _quantised_of_two("MatMul"),
    (MICROSOFT, "QLinearConv"): _quantised_conv,
    (MICROSOFT, "QLinearAdd"): _quantised_of_two("Add"),
    (MICROSOFT, "QLinearMul"): _quantised_of_two("Mul"),
    (MICROSOFT, "QLinearSigmoid"): _quantised_of_one("Sigmoid"),
    (MICROSOFT, "QLinearLeakyRelu"): _quantised_of_one("LeakyRelu", "alpha"),
    (MICROSOFT, "QLinearSoftmax"): _quantised_softmax,
    (MICROSOFT, "QLinearConcat"): _quantised_concat,
    (MICROSOFT, "QGemm"): _quantised_gemm,
    (MICROSOFT, "DynamicQuantizeMatMul"): _dynamic_matmul,
    (MICROSOFT, "MatMulIntegerToFloat"): _integer_matmul,
    (MICROSOFT, "FusedMatMul"): _fused_matmul,
    (MICROSOFT, "FusedGemm"): _fused_gemm,
    (MICROSOFT, "FusedConv"): _fused_conv,
    (MICROSOFT, "Gelu"): _gelu,
    (MICROSOFT, "BiasGelu"): _gelu,
    (MICROSOFT, "FastGelu"): _fast_gelu,
    (MICROSOFT, "QuickGelu"): _quick_gelu,
    (MICROSOFT, "SkipLayerNormalization"): _skip_layer_norm,
    (MICROSOFT, "SkipSimplifiedLayerNormalization"): _skip_rms_norm,
}
