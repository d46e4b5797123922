"""StableHLO's operations in NumPy, for the oracle: what each computes from its inputs and attributes.

Source: https://github.com/openxla/stablehlo/blob/main/docs/spec.md. Floats are float64 wherever the file has floats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.file_arrays import FLOATS
from rnnbench.model_files.formats.stablehlo.graph import CONSTANT, Node, numbers
from rnnbench.model_files.formats.stablehlo.indexing import dynamic_slice, dynamic_update, gather, scatter
from rnnbench.model_files.formats.stablehlo.windows import convolution, reduced_windows
from rnnbench.model_files.truncated_division import divided_towards_zero

Array = np.ndarray
Compute = Callable[[Node, Sequence[Array]], Array]


def computed_type(dtype: str) -> np.dtype:
    """The type in which a value of the file is computed."""
    return np.dtype("float64" if dtype in FLOATS else dtype)


def _plain(compute: Callable[..., Any]) -> Compute:
    return lambda node, inputs: np.asarray(compute(*inputs))


def _special(name: str) -> Compute:
    """A function of `scipy.special`, whose import takes longer than reading most files."""
    return lambda node, inputs: np.asarray(getattr(import_module("scipy.special"), name)(*inputs))


def _logical(boolean: Callable[..., Any], bitwise: Callable[..., Any]) -> Compute:
    return lambda node, inputs: np.asarray((boolean if inputs[0].dtype == bool else bitwise)(*inputs))


def _divide(one: Array, other: Array) -> Array:
    """Towards zero for integers. Where the divisor is zero, the result is up to an implementation."""
    return np.asarray(one / other) if one.dtype.kind == "f" else divided_towards_zero(one, other)


def _remainder(one: Array, other: Array) -> Array:
    return np.asarray(np.fmod(one, other if one.dtype.kind == "f" else np.where(other == 0, 1, other)))


def _round_away(x: Array) -> Array:
    return np.asarray(np.trunc(x + np.copysign(0.5, x)))


_COMPARED: dict[str, Callable[..., Any]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _compare(node: Node, inputs: Sequence[Array]) -> Array:
    match = re.search(r"comparison_direction (\w\w)>", node.attributes["comparison_direction"])
    if match is None or "TOTALORDER" in str(node.attributes.get("compare_type")):
        raise ModelFileError("a comparison in another order than that of numbers is not computed here")
    return np.asarray(_COMPARED[match[1]](*inputs))


def _select(node: Node, inputs: Sequence[Array]) -> Array:
    return np.asarray(np.where(*inputs))


def _clamp(node: Node, inputs: Sequence[Array]) -> Array:
    low, x, high = inputs
    return np.asarray(np.minimum(np.maximum(x, low), high))


def _convert(node: Node, inputs: Sequence[Array]) -> Array:
    (x,), target = inputs, node.types[0].dtype
    return x != 0 if target == "bool" else x.astype(computed_type(target))


def _broadcast(node: Node, inputs: Sequence[Array]) -> Array:
    (x,), shape = inputs, node.types[0].shape
    aligned = [1] * len(shape)
    for axis, place in enumerate(node.attributes["broadcast_dimensions"]):
        aligned[place] = x.shape[axis]
    order = np.argsort(node.attributes["broadcast_dimensions"])
    return np.broadcast_to(x.transpose(order).reshape(aligned), shape)


def _iota(node: Node, inputs: Sequence[Array]) -> Array:
    (type_,), axis = node.types, node.attributes["iota_dimension"]
    shape = [size if place == axis else 1 for place, size in enumerate(type_.shape)]
    return np.broadcast_to(np.arange(type_.shape[axis]).astype(computed_type(type_.dtype)).reshape(shape), type_.shape)


def _slice(node: Node, inputs: Sequence[Array]) -> Array:
    bounds = (node.attributes[key] for key in ("start_indices", "limit_indices", "strides"))
    return inputs[0][tuple(slice(*bound) for bound in zip(*bounds, strict=True))]


def _pad(node: Node, inputs: Sequence[Array]) -> Array:
    x, value = inputs
    low, inner = node.attributes["edge_padding_low"], node.attributes["interior_padding"]
    wide = tuple(max(0, (size - 1) * (gap + 1) + 1) for size, gap in zip(x.shape, inner, strict=True))
    spaced = np.full(wide, value, x.dtype)
    spaced[tuple(slice(None, None, gap + 1) for gap in inner)] = x
    padded = np.full(node.types[0].shape, value, x.dtype)
    ends = [(max(0, first), max(0, -first)) for first in low]
    lengths = [min(n - to, size - begin) for (to, begin), n, size in zip(ends, padded.shape, wide, strict=True)]
    if all(length > 0 for length in lengths):
        target = tuple(slice(to, to + length) for (to, _), length in zip(ends, lengths, strict=True))
        source = tuple(slice(begin, begin + length) for (_, begin), length in zip(ends, lengths, strict=True))
        padded[target] = spaced[source]
    return padded


def _dot_general(node: Node, inputs: Sequence[Array]) -> Array:
    dims = node.attributes["dot_dimension_numbers"]
    sides = []
    for x, side in zip(inputs, ("lhs", "rhs"), strict=True):
        batch, summed = numbers(dims, f"{side}_batching_dimensions"), numbers(dims, f"{side}_contracting_dimensions")
        free = [axis for axis in range(x.ndim) if axis not in (*batch, *summed)]
        shapes = [[x.shape[axis] for axis in axes] for axes in (batch, free, summed)]
        flat = [int(np.prod(shape)) for shape in shapes]
        sides.append(x.transpose([*batch, *free, *summed]).reshape(flat))
    first, second = sides
    return np.asarray(first @ second.transpose(0, 2, 1)).reshape(node.types[0].shape)


def _dot(node: Node, inputs: Sequence[Array]) -> Array:
    return np.asarray(inputs[0] @ inputs[1])


_REDUCED: dict[str, Callable[..., Any]] = {
    "stablehlo.add": np.add,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.multiply": np.multiply,
    "stablehlo.and": np.logical_and,
    "stablehlo.or": np.logical_or,
}


def reduction(node: Node) -> str:
    """The one operation that a reduction applies to one array; empty where its body is another one.

    Raises ModelFileError for a body that does not compute each element by itself.
    """
    (body,) = node.regions
    if others := sorted({inner.kind for inner in body.nodes} - ELEMENTWISE):
        raise ModelFileError(f"a reduction by a body with {others[0]} is not computed here")
    simple = len(body.nodes) == 1 and len(node.inputs) == 2 and set(body.nodes[0].inputs) == set(body.arguments)
    if not simple or body.nodes[0].kind not in _REDUCED or body.results != body.nodes[0].outputs:
        return ""
    return body.nodes[0].kind


def _reduce(node: Node, inputs: Sequence[Array]) -> Array:
    kind = reduction(node)
    function, (x, start) = _REDUCED[kind], inputs
    if x.dtype.kind in "iu" and kind in ("stablehlo.and", "stablehlo.or"):
        raise ModelFileError("a reduction of the bits of integers is not computed here")
    reduced = function.reduce(x, axis=node.attributes["dimensions"], initial=None if x.size else start)  # type: ignore[attr-defined]
    return np.asarray(function(reduced, start)).astype(x.dtype)


def _reduce_window(node: Node, inputs: Sequence[Array]) -> Array:
    """A sum or another reduction of each window, as `jnp.cumsum` is lowered."""
    kind = reduction(node)
    if not kind or (inputs[0].dtype.kind in "iu" and kind in ("stablehlo.and", "stablehlo.or")):
        raise ModelFileError("a reduction of windows by another operation than a sum or its like is not computed here")
    return reduced_windows(node, _REDUCED[kind], *inputs)


def _hlo(table: dict[str, Compute]) -> dict[str, Compute]:
    return {f"stablehlo.{name}": compute for name, compute in table.items()}


MOVES: dict[str, Compute] = _hlo(
    {
        "reshape": lambda node, inputs: inputs[0].reshape(node.types[0].shape),
        "transpose": lambda node, inputs: inputs[0].transpose(node.attributes["permutation"]),
        "reverse": lambda node, inputs: np.flip(inputs[0], node.attributes["dimensions"]),
        "concatenate": lambda node, inputs: np.concatenate(inputs, node.attributes["dimension"]),
        "broadcast_in_dim": _broadcast,
        "slice": _slice,
        "dynamic_slice": dynamic_slice,
        "dynamic_update_slice": dynamic_update,
        "pad": _pad,
        "gather": gather,
        "scatter": scatter,
        "iota": _iota,
        "select": _select,
        "clamp": _clamp,
        "convert": _convert,
        "maximum": _plain(np.maximum),
        "minimum": _plain(np.minimum),
        "negate": _plain(np.negative),
        "abs": _plain(np.abs),
        "sign": _plain(lambda x: np.where(x == 0, x, np.sign(x))),
        "floor": _plain(np.floor),
        "ceil": _plain(np.ceil),
        "round_nearest_even": _plain(np.rint),
        "round_nearest_afz": _plain(_round_away),
    }
)
"""Operations that give elements of what they get, or are exact."""
SUMS: dict[str, Compute] = _hlo(
    {
        "dot_general": _dot_general,
        "dot": _dot,
        "convolution": convolution,
        "reduce": _reduce,
        "reduce_window": _reduce_window,
    }
)
ACTIVATIONS: dict[str, Compute] = {
    **_hlo(
        {
            "logistic": _special("expit"),
            "tanh": _plain(np.tanh),
            "exponential": _plain(np.exp),
            "exponential_minus_one": _plain(np.expm1),
            "log": _plain(np.log),
            "log_plus_one": _plain(np.log1p),
            "power": _plain(np.power),
            "sine": _plain(np.sin),
            "cosine": _plain(np.cos),
            "tan": _plain(np.tan),
            "atan2": _plain(np.arctan2),
        }
    ),
    **{
        f"chlo.{name}": _plain(compute)
        for name, compute in {
            "sinh": np.sinh,
            "cosh": np.cosh,
            "tan": np.tan,
            "asin": np.arcsin,
            "acos": np.arccos,
            "atan": np.arctan,
            "asinh": np.arcsinh,
            "acosh": np.arccosh,
            "atanh": np.arctanh,
        }.items()
    },
    "chlo.erf": _special("erf"),
    "chlo.erf_inv": _special("erfinv"),
    "chlo.lgamma": _special("gammaln"),
    "chlo.digamma": _special("digamma"),
    "chlo.erfc": _special("erfc"),
}
OPERATIONS: dict[str, Compute] = {
    **_hlo(
        {
            "add": _plain(np.add),
            "subtract": _plain(np.subtract),
            "multiply": _plain(np.multiply),
            "divide": _plain(_divide),
            "remainder": _plain(_remainder),
            "sqrt": _plain(np.sqrt),
            "rsqrt": _plain(lambda x: 1 / np.sqrt(x)),
            "cbrt": _plain(np.cbrt),
            "compare": _compare,
            "and": _logical(np.logical_and, np.bitwise_and),
            "or": _logical(np.logical_or, np.bitwise_or),
            "xor": _logical(np.logical_xor, np.bitwise_xor),
            "not": _logical(np.logical_not, np.bitwise_not),
            "is_finite": _plain(np.isfinite),
        }
    ),
    "chlo.square": _plain(np.square),
}
COMPUTED = {**MOVES, **SUMS, **ACTIVATIONS, **OPERATIONS}
ELEMENTWISE = frozenset(
    (
        *(*ACTIVATIONS, *OPERATIONS, CONSTANT),
        *(f"stablehlo.{name}" for name in ("select", "clamp", "convert", "maximum", "minimum", "negate", "abs")),
        *(f"stablehlo.{name}" for name in ("sign", "floor", "ceil", "round_nearest_even", "round_nearest_afz")),
    )
)
"""Operations that compute each element of their result of the same element of what they get."""
CONTROL = frozenset(
    (
        *("func.call", "func.return", "stablehlo.return", "stablehlo.while", "stablehlo.if", "stablehlo.case"),
        *("stablehlo.composite", "stablehlo.optimization_barrier", CONSTANT),
    )
)
GLOBALS = frozenset(("ml_program.global_load", "ml_program.global_load_const", "ml_program.global_store"))
READ = COMPUTED.keys() | CONTROL | GLOBALS
"""Operations that compute and do nothing else, or use a global: a module with others is not read."""
