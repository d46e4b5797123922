"""LiteRT's operators in NumPy, for the oracle: what each computes from its inputs and options.

Sources: tensorflow/lite/schema/schema.fbs (options), and tensorflow/lite/kernels/internal/reference (what is computed).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from rnnbench.model_files.formats.tflite.activation import activated
from rnnbench.model_files.formats.tflite.schema import require_schema
from rnnbench.model_files.formats.tflite.spatial import (
    batch_to_space,
    depth_to_space,
    resized_bilinear,
    resized_nearest,
    reversed_sequences,
    space_to_batch,
    space_to_depth,
)
from rnnbench.model_files.formats.tflite.windows import (
    average_pool_2d,
    conv_2d,
    depthwise_conv_2d,
    max_pool_2d,
    transpose_conv,
)
from rnnbench.model_files.truncated_division import divided_towards_zero

Array = np.ndarray
Compute = Callable[[Any, Sequence[Any]], Sequence[Array]]
"""Options and inputs (None for one that is left out) to outputs."""


def _single_output(compute: Callable[..., Array]) -> Compute:
    return lambda options, inputs: (compute(*inputs),)


def _sigmoid(x: Array) -> Array:
    result: Array = 0.5 * (np.tanh(0.5 * x) + 1)
    return result


def _with_activation(compute: Callable[[Array, Array], Array]) -> Compute:
    return lambda options, inputs: (activated(options.FusedActivationFunction(), compute(inputs[0], inputs[1])),)


def _fully_connected(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    x, weights, bias = (*inputs, None)[:3]
    lead = x.shape[:-1] if options.KeepNumDims() else (x.size // weights.shape[1],)
    y = x.reshape(-1, weights.shape[1]) @ weights.T
    y = y.reshape(*lead, weights.shape[0])
    return (activated(options.FusedActivationFunction(), y if bias is None else y + bias),)


def _batch_matmul(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    a, b = inputs
    a = np.swapaxes(a, -1, -2) if options.AdjX() else a
    return (a @ (np.swapaxes(b, -1, -2) if options.AdjY() else b),)


def _softmax(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    x = inputs[0] * options.Beta()
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return (powers / powers.sum(axis=-1, keepdims=True),)


def _reduced(reduce: Callable[..., Array]) -> Compute:
    def compute(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
        axes = tuple(int(axis) for axis in np.atleast_1d(inputs[1]))
        return (np.asarray(reduce(inputs[0], axis=axes, keepdims=bool(options.KeepDims()))),)

    return compute


def _split(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    return np.split(inputs[1], options.NumSplits(), int(inputs[0]))


def _split_v(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    x, sizes, axis = inputs[0], [int(size) for size in inputs[1]], int(inputs[2])
    rest = x.shape[axis] - sum(size for size in sizes if size >= 0)
    ends = np.cumsum([rest if size < 0 else size for size in sizes])[:-1]
    return np.split(x, ends, axis)


def _strided_slice(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    x, *bounds = inputs
    if options.Offset():
        bounds[1] = bounds[0] + bounds[1]
    index: list[Any] = []
    for axis, (begin, end, step) in enumerate(zip(*(bound.tolist() for bound in bounds), strict=True)):
        bit = 1 << axis
        if options.EllipsisMask() & bit:
            index.append(...)
        elif options.NewAxisMask() & bit:
            index.append(None)
        elif options.ShrinkAxisMask() & bit:
            index.append(int(begin))
        else:
            first = None if options.BeginMask() & bit else begin
            index.append(slice(first, None if options.EndMask() & bit else end, step))
    return (x[tuple(index)],)


def _slice(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    x, begins, sizes = inputs
    pairs = zip(begins.tolist(), sizes.tolist(), strict=True)
    return (x[tuple(slice(begin, None if size < 0 else begin + size) for begin, size in pairs)],)


def _reshape(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    shape = inputs[1] if len(inputs) > 1 and inputs[1] is not None else options.NewShapeAsNumpy()
    return (inputs[0].reshape([int(size) for size in np.atleast_1d(shape)]),)


def _squeeze(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    axes = tuple(options.SqueezeDims(i) for i in range(min(options.SqueezeDimsLength(), inputs[0].ndim)))
    return (np.squeeze(inputs[0], axes or None),)


def _concatenation(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    return (activated(options.FusedActivationFunction(), np.concatenate(inputs, options.Axis())),)


def _unpack(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    axis = options.Axis()
    return [np.take(inputs[0], index, axis) for index in range(inputs[0].shape[axis])]


def _gather(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    x, places = inputs
    count = options.BatchDims() + (places.ndim if options.BatchDims() < 0 else 0)
    if not count:
        return (np.take(x, places, options.Axis()),)
    axis = options.Axis() % x.ndim - count
    rows = zip(*(array.reshape(-1, *array.shape[count:]) for array in (x, places)), strict=True)
    taken = np.stack([np.take(row, chosen, axis) for row, chosen in rows])
    return (taken.reshape(*x.shape[:count], *taken.shape[1:]),)


def _gather_nd(x: Array, places: Array) -> Array:
    result: Array = x[tuple(np.moveaxis(places, -1, 0))]
    return result


def _place_of(find: Callable[..., Array]) -> Compute:
    """ARG_MAX and its like, whose axis is an input and whose type is an option."""

    def compute(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
        wide = options.OutputType() == require_schema().TensorType.INT64
        return (find(inputs[0], int(np.ravel(inputs[1])[0])).astype(np.int64 if wide else np.int32),)

    return compute


def _cumulated(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    x, axis = inputs[0], int(np.ravel(inputs[1])[0])
    x = np.flip(x, axis) if options.Reverse() else x
    total = np.cumsum(x, axis, dtype=x.dtype)
    total = total - x if options.Exclusive() else total
    return (np.flip(total, axis) if options.Reverse() else total,)


def _mirror_pad(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    mode: Literal["reflect", "symmetric"] = "symmetric"
    if options.Mode() == require_schema().MirrorPadMode.REFLECT:
        mode = "reflect"
    return (np.pad(inputs[0], [tuple(map(int, side)) for side in inputs[1]], mode=mode),)


def _one_hot(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    places, depth, on, off = inputs
    axis = options.Axis() if options.Axis() >= 0 else places.ndim
    there = np.expand_dims(places, axis) == np.arange(int(depth)).reshape([-1, *[1] * (places.ndim - axis)])
    return (np.where(there, on, off),)


def cast(x: Array, dtype: str) -> Array:
    """As LiteRT's CAST, which goes by the type of the tensor that it gives: its options may be left out."""
    # A float keeps the arithmetic's type: rounding it is the arithmetic's business.
    return x if dtype.startswith("float") and x.dtype.kind == "f" else x.astype(dtype)


def _dynamic_update_slice(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    x, update, starts = inputs
    result = x.copy()
    firsts = [min(max(int(s), 0), size - part) for s, size, part in zip(starts, x.shape, update.shape, strict=True)]
    result[tuple(slice(first, first + size) for first, size in zip(firsts, update.shape, strict=True))] = update
    return (result,)


def _scattered(indices: Array, updates: Array, shape: Array) -> Array:
    """Zeros with updates at their indices; those at the same one are added."""
    result: Array = np.zeros([int(size) for size in shape], updates.dtype)
    np.add.at(result, tuple(np.moveaxis(indices, -1, 0)), updates)
    return result


def _divided(a: Array, b: Array) -> Array:
    """Towards zero for whole numbers."""
    return np.asarray(a / b) if a.dtype.kind == "f" else divided_towards_zero(a, b)


def _chosen(condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition, a, b)


def _selected(condition: Array, a: Array, b: Array) -> Array:
    """The older form of a choice: a condition of one axis chooses whole rows."""
    return _chosen(condition.reshape(-1, *[1] * (a.ndim - 1)) if condition.ndim == 1 else condition, a, b)


def _largest(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    """The `count` largest of the last axis, the largest first, and their places. Of equal ones, the first is first."""
    x, count = inputs[0], int(np.ravel(inputs[1])[0])
    places = np.argsort(-x, axis=-1, kind="stable")[..., :count]
    return np.take_along_axis(x, places, -1), places.astype(np.int32)


def _erf(x: Array) -> Array:
    from scipy.special import erf

    result: Array = erf(x)
    return result


def _gelu(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    (x,) = inputs
    if options.Approximate():
        return (0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),)
    return (0.5 * x * (1 + _erf(x / np.sqrt(2))),)


MOVES: dict[str, Compute] = {
    "RESHAPE": _reshape,
    "SQUEEZE": _squeeze,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "STRIDED_SLICE": _strided_slice,
    "SLICE": _slice,
    "CONCATENATION": _concatenation,
    "PACK": lambda options, inputs: (np.stack(inputs, options.Axis()),),
    "UNPACK": _unpack,
    "GATHER": _gather,
    "DYNAMIC_UPDATE_SLICE": _dynamic_update_slice,
    "TRANSPOSE": _single_output(lambda x, order: x.transpose([int(axis) for axis in order])),
    "EXPAND_DIMS": _single_output(lambda x, axis: np.expand_dims(x, int(np.ravel(axis)[0]))),
    "SHAPE": _single_output(lambda x: np.array(x.shape, np.int32)),
    "FILL": _single_output(lambda shape, value: np.full([int(size) for size in shape], value)),
    "RANGE": _single_output(lambda first, end, step: np.arange(first, end, step)),
    "ZEROS_LIKE": _single_output(np.zeros_like),
    "BROADCAST_TO": _single_output(lambda x, shape: np.broadcast_to(x, [int(size) for size in shape])),
    "TILE": _single_output(lambda x, times: np.tile(x, [int(count) for count in times])),
    "REVERSE_V2": _single_output(lambda x, axes: np.flip(x, tuple(int(axis) for axis in axes))),
    "PAD": _single_output(lambda x, sides: np.pad(x, [tuple(map(int, side)) for side in sides])),
    "PADV2": _single_output(
        lambda x, sides, value: np.pad(
            x, [tuple(map(int, side)) for side in sides], constant_values=float(np.ravel(value)[0])
        )
    ),
    "RELU": _single_output(lambda x: np.maximum(x, 0)),
    "RELU6": _single_output(lambda x: np.clip(x, 0, 6)),
    "RELU_N1_TO_1": _single_output(lambda x: np.clip(x, -1, 1)),
    "NEG": _single_output(np.negative),
    "ABS": _single_output(np.abs),
    "MAXIMUM": _single_output(np.maximum),
    "MINIMUM": _single_output(np.minimum),
    "MAX_POOL_2D": max_pool_2d,
    "REDUCE_MAX": _reduced(np.max),
    "REDUCE_MIN": _reduced(np.min),
    "SCATTER_ND": _single_output(_scattered),
    "GATHER_ND": _single_output(_gather_nd),
    "EMBEDDING_LOOKUP": _single_output(lambda places, table: table[places]),
    "ONE_HOT": _one_hot,
    "ARG_MAX": _place_of(np.argmax),
    "ARG_MIN": _place_of(np.argmin),
    "REDUCE_ANY": _reduced(np.any),
    "REDUCE_ALL": _reduced(np.all),
    "RANK": _single_output(lambda x: np.array(np.ndim(x), np.int32)),
    "BROADCAST_ARGS": _single_output(
        lambda a, b: np.array(np.broadcast_shapes(tuple(map(int, a)), tuple(map(int, b))), a.dtype)
    ),
    "MIRROR_PAD": _mirror_pad,
    "SPACE_TO_BATCH_ND": _single_output(space_to_batch),
    "BATCH_TO_SPACE_ND": _single_output(batch_to_space),
    "RESIZE_NEAREST_NEIGHBOR": resized_nearest,
    "REVERSE_SEQUENCE": reversed_sequences,
    "DEPTH_TO_SPACE": depth_to_space,
    "SPACE_TO_DEPTH": space_to_depth,
    "TOPK_V2": _largest,
    "FLOOR": _single_output(np.floor),
    "CEIL": _single_output(np.ceil),
    "ROUND": _single_output(np.rint),
    "SIGN": _single_output(np.sign),
    "RELU_0_TO_1": _single_output(lambda x: np.clip(x, 0, 1)),
    "SELECT": _single_output(_selected),
    "SELECT_V2": _single_output(_chosen),
    "LESS": _single_output(np.less),
    "LESS_EQUAL": _single_output(np.less_equal),
    "GREATER": _single_output(np.greater),
    "GREATER_EQUAL": _single_output(np.greater_equal),
    "EQUAL": _single_output(np.equal),
    "NOT_EQUAL": _single_output(np.not_equal),
    "LOGICAL_AND": _single_output(np.logical_and),
    "LOGICAL_OR": _single_output(np.logical_or),
    "LOGICAL_NOT": _single_output(np.logical_not),
    "DEQUANTIZE": _single_output(lambda x: x),
    "QUANTIZE": _single_output(lambda x: x),
}
"""Operators that give elements of what they get, or are exact."""
SUMS: dict[str, Compute] = {
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    "CONV_2D": conv_2d,
    "DEPTHWISE_CONV_2D": depthwise_conv_2d,
    "SUM": _reduced(np.sum),
    "MEAN": _reduced(np.mean),
    "AVERAGE_POOL_2D": average_pool_2d,
    "TRANSPOSE_CONV": transpose_conv,
    "CUMSUM": _cumulated,
    "RESIZE_BILINEAR": resized_bilinear,
}
"""Sums of products."""
ACTIVATIONS: dict[str, Compute] = {
    "LOGISTIC": _single_output(_sigmoid),
    "TANH": _single_output(np.tanh),
    "SOFTMAX": _softmax,
    "LOG_SOFTMAX": _single_output(
        lambda x: x - x.max(-1, keepdims=True) - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True))
    ),
    "EXP": _single_output(np.exp),
    "LOG": _single_output(np.log),
    "SIN": _single_output(np.sin),
    "COS": _single_output(np.cos),
    "POW": _single_output(np.power),
    "ELU": _single_output(lambda x: _chosen(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "GELU": _gelu,
    "HARD_SWISH": _single_output(lambda x: x * np.clip(x + 3, 0, 6) / 6),
}
OPERATIONS: dict[str, Compute] = {
    "ADD": _with_activation(np.add),
    "SUB": _with_activation(np.subtract),
    "MUL": _with_activation(np.multiply),
    "DIV": _with_activation(_divided),
    "FLOOR_DIV": _single_output(np.floor_divide),
    "FLOOR_MOD": _single_output(np.mod),
    "SQUARED_DIFFERENCE": _single_output(lambda a, b: np.square(a - b)),
    "SQUARE": _single_output(np.square),
    "SQRT": _single_output(np.sqrt),
    "RSQRT": _single_output(lambda x: 1 / np.sqrt(x)),
    "PRELU": _single_output(lambda x, slope: np.where(x > 0, x, slope * x)),
    "REDUCE_PROD": _reduced(np.prod),
    "ADD_N": lambda options, inputs: (np.sum(inputs, axis=0),),
    "L2_NORMALIZATION": _single_output(lambda x: x / np.maximum(np.sqrt(np.square(x).sum(-1, keepdims=True)), 1e-6)),
    "LEAKY_RELU": lambda options, inputs: (np.where(inputs[0] > 0, inputs[0], options.Alpha() * inputs[0]),),
}
"""One operation for each element."""
