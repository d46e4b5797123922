"""How the result of each node of a graph is rounded in an arithmetic.

Operators that move or choose elements are exact. A sum of products has the rounding of its partial sums: the sum of the
squares of its terms comes from the operator itself, fed squares. Any other operator counts as one operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rnnbench.model_files.formats.onnx.fused import MOVE_AXIS
from rnnbench.model_files.operator_rounding import Kind, rounded_result
from rnnbench.rnn import Arithmetic

Run = Callable[..., Sequence[np.ndarray]]
EXACT = frozenset(
    (
        *("Identity", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Gather", "GatherElements", "GatherND"),
        *("Split", "Concat", "Flatten", "Expand", "Tile", "Pad", "Constant", "ConstantOfShape", "Cast", "CastLike"),
        *("Relu", "Neg", "Abs", "Max", "Min", "Clip", "Where", "Sign", "Floor", "Ceil", "Round", "MaxPool", "TopK"),
        *("ReduceMax", "ReduceMin", "ScatterElements", "ScatterND", "Trilu", "Dropout", "ReverseSequence", "EyeLike"),
        *("If", "Loop", "Scan", "DepthToSpace", "SpaceToDepth", "Compress", "OneHot", "GlobalMaxPool", "Scatter"),
        MOVE_AXIS,
    )
)
"""Operators that give elements of what they get, and those whose inner nodes round."""
_CASTS = ("Cast", "CastLike")
_TRANSFORMS = ("DFT", "STFT")
_RESAMPLED = ("Resize", "Upsample")
_ACTIVATIONS = frozenset(
    (
        *("Sigmoid", "Tanh", "Softmax", "LogSoftmax", "Exp", "Log", "Erf", "Gelu", "Softplus", "Softsign"),
        *("Elu", "Selu", "GroupNormalization", "MeanVarianceNormalization", "RMSNormalization"),
        *("Sin", "Cos", "Swish", "HardSwish", "Mish", "LayerNormalization", "InstanceNormalization", "Pow"),
    )
)


def rounding(node: Any, run: Run, arithmetic: Arithmetic, *, narrows: bool = False) -> Run:
    """`run`, which computes the node, with its results rounded. `narrows`: a cast rounds them to a narrower type."""
    if node.op_type in EXACT and not (narrows and node.op_type in _CASTS):
        return run

    def rounded(*inputs: Any, **options: Any) -> Sequence[np.ndarray]:
        return tuple(_round(node, run, arithmetic, inputs, output) for output in run(*inputs, **options))

    return rounded


def _round(node: Any, run: Run, arithmetic: Arithmetic, inputs: Sequence[Any], output: Any) -> Any:
    if not isinstance(output, np.ndarray) or output.dtype.kind != "f":
        return output
    terms = _terms(node, inputs, output)
    kind: Kind = "sum" if terms > 1 else "activation" if node.op_type in _ACTIVATIONS else "operation"
    return rounded_result(arithmetic, output, kind, terms, lambda: _squares(node, run, inputs, output.shape))


def _terms(node: Any, inputs: Sequence[Any], output: np.ndarray) -> int:
    """Products that each element of the result adds up; 1 for other operators."""
    operator = node.op_type
    if operator == "MatMul":
        return int(inputs[0].shape[-1])
    if operator == "Gemm":
        return math.isqrt(int(inputs[0].size) * int(inputs[1].size) // max(1, output.size))
    if operator == "Conv":
        return math.prod(map(int, inputs[1].shape[1:]))
    if operator == "ConvTranspose":
        return int(inputs[1].shape[0]) * math.prod(map(int, inputs[1].shape[2:]))
    if operator in ("ReduceSum", "ReduceMean", "AveragePool", "GlobalAveragePool"):
        return int(inputs[0].size) // max(1, output.size)
    if operator in _RESAMPLED:
        between = any(attribute.name == "mode" and attribute.s != b"nearest" for attribute in node.attribute)
        return max(inputs[0].shape) if between else 1
    if operator == "CumSum":
        return int(inputs[0].shape[int(np.ravel(inputs[1])[0])])
    if operator == "DFT":
        return int(inputs[0].shape[_transformed_axis(node, inputs)])
    if operator == "STFT":
        window, length = (*inputs, None, None)[2:4]
        return int(length if window is None else len(window))
    if operator == "Einsum":
        return max((int(size) for array in inputs for size in array.shape), default=1)
    return 1


def _transformed_axis(node: Any, inputs: Sequence[Any]) -> int:
    """The axis of a DFT. It is an attribute before version 20, and an input from there on."""
    named = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), -2)
    return int(np.ravel(inputs[2])[0]) if len(inputs) > 2 and inputs[2] is not None else int(named)


def _squares(node: Any, run: Run, inputs: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
    """The sum of the squares of the terms, without biases. The operator is linear in each of these inputs."""
    operator = node.op_type
    if operator in _RESAMPLED:  # A place is computed too, and is as many times less exact as it is large.
        return np.full(shape, 6 * max(inputs[0].shape) * np.square(inputs[0]).max(initial=0.0))
    if operator in _TRANSFORMS:
        return _squares_of_transform(node, run, inputs, shape)
    if operator in ("MatMul", "Einsum"):
        return run(*(np.square(array) for array in inputs))[0]
    if operator in ("Gemm", "Conv", "ConvTranspose"):
        return np.abs(run(np.square(inputs[0]), np.square(inputs[1]))[0])
    squares = run(np.square(inputs[0]), *inputs[1:])[0]
    return squares if operator in ("ReduceSum", "CumSum") else squares / max(1, inputs[0].size // max(1, squares.size))


def _squares_of_transform(node: Any, run: Run, inputs: Sequence[Any], shape: tuple[int, ...]) -> np.ndarray:
    """Each term is an element times a number of absolute value 1, so all results have the sum of the same squares: the
    first frequency of the squared elements."""
    x, *others = inputs
    if node.op_type == "STFT" and len(others) > 1 and others[1] is not None:
        others[1] = np.square(others[1])  # The window.
    axis = -2 if node.op_type == "STFT" else _transformed_axis(node, inputs)
    squares = np.abs(np.take(run(np.square(x), *others)[0], [0], axis).sum(-1, keepdims=True))
    is_inverse = any(attribute.name == "inverse" and attribute.i for attribute in node.attribute)
    return np.broadcast_to(squares / _terms(node, inputs, squares) if is_inverse else squares, shape)
