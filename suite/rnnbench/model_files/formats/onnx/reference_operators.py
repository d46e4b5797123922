"""Operators that ONNX's reference computes otherwise than the standard says, or not at all.

Loop: the reference takes a condition that is left out for false, and joins the scanned outputs along an axis that they
have, instead of along a new one. DequantizeLinear: it has no form before version 19 of the operators.
Scan: it goes along axis 0 alone, and forward alone.
ConvTranspose: `conv_transpose` says why. `array_operators`, `window_operators` and `resampling` have further operators.
Optional: it gives a list, which OptionalGetElement hands on as it is.
BatchNormalization before version 14: it normalises by the mean and the variance of the call, as in training.
Softmax, LogSoftmax, Hardmax before version 13: it takes the named axis alone, without those that follow.
CumSum: its axis has to be an array without axes. STFT: x has to have an axis for the parts of complex numbers.
GlobalMaxPool: with one axis of places, it takes the channels for these.
GroupNormalization, MeanVarianceNormalization: functions, which it computes in float32 or not at all.
LpNormalization: of the numbers themselves, and not of their absolute values, where p is 1.
Source: onnx/reference/ops/op_*.py of each operator (onnx 1.23), and the text of the operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.onnx.array_operators import (
    gathered,
    inserted,
    one_hot,
    padded,
    parted,
    scattered,
    squeezed,
    unsqueezed,
)
from rnnbench.model_files.formats.onnx.conv_transpose import conv_transpose
from rnnbench.model_files.formats.onnx.file import require_onnx
from rnnbench.model_files.formats.onnx.resampling import resampled, resize_class
from rnnbench.model_files.formats.onnx.window_operators import lp_pool, max_pool, normalised_beside

_FIRST_DEQUANTIZE, _FIRST_TRAINING_MODE, _FIRST_OF_AN_AXIS, _FIRST_RESIZE_WITH_PLACES = 19, 14, 13, 11


def reference_operators(opset: int) -> list[Any]:
    """Classes that replace the reference's own, for a version of ONNX's operators."""
    loop = require_onnx("onnx.reference.ops.op_loop").Loop
    transpose = require_onnx("onnx.reference.ops.op_conv_transpose").ConvTranspose
    operator = require_onnx("onnx.reference.op_run").OpRun
    classes = [
        type("Loop", (loop,), {"op_domain": "", "_run": _loop, "passes": _Passes()}),
        type("SequenceMap", (loop,), {"op_domain": "", "__init__": operator.__init__, "_run": _sequence_map}),
        type("ConvTranspose", (transpose,), {"op_domain": "", "_run": conv_transpose}),
        _scan_class(require_onnx("onnx.reference.ops.op_scan").Scan),
        _class_of("CumSum", require_onnx("onnx.reference.ops.op_cum_sum").CumSum, _cumulated),
        _class_of("STFT", require_onnx("onnx.reference.ops.op_stft").STFT, _short_transform),
    ]
    functions: dict[str, Callable[..., Any]] = {
        "Optional": _optional,
        "GatherElements": gathered,
        "Pad": padded,
        "Split": parted,
        "SequenceInsert": inserted,
        "MaxPool": max_pool,
        "LpPool": lp_pool,
        "LRN": normalised_beside,
        "LpNormalization": _lp_normalised,
        "GlobalMaxPool": _global_max_pool,
        "OneHot": one_hot,
        "GroupNormalization": _group_normalised,
        "MeanVarianceNormalization": _mean_and_variance,
    }
    if opset < _FIRST_RESIZE_WITH_PLACES:
        functions |= {"Resize": resampled, "Upsample": resampled, "Scatter": scattered}
    else:
        classes.append(resize_class(require_onnx("onnx.reference.ops.op_resize").Resize))
    if opset < _FIRST_OF_AN_AXIS:
        functions |= {"Squeeze": squeezed, "Unsqueeze": unsqueezed}
        functions |= dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), _softmax)
    if opset < _FIRST_TRAINING_MODE:
        functions["BatchNormalization"] = _normalised
    classes += [type(name, (operator,), {"op_domain": "", "_run": run}) for name, run in functions.items()]
    if opset < _FIRST_DEQUANTIZE:
        forms = require_onnx("onnx.reference.ops.op_dequantize_linear")
        newest = max(int(name.rpartition("_")[2]) for name in vars(forms) if name.startswith("DequantizeLinear_"))
        classes.append(type("DequantizeLinear", (getattr(forms, f"DequantizeLinear_{newest}"),), {"op_domain": ""}))
    return classes


def _optional(self: Any, value: Any = None, **options: Any) -> tuple[Any, ...]:
    return (value,)


def _normalised(self: Any, x: Any, *rows: Any, epsilon: float = 1e-5, **options: Any) -> tuple[Any, ...]:
    """By the mean and variance that are given. With further outputs it would be training."""
    if any(self.onnx_node.output[1:]):
        raise ModelFileError("BatchNormalization in training is not computed here")
    if options.get("spatial", 1) == 0:
        raise ModelFileError(
            "BatchNormalization of each element (spatial = 0) is not computed here; export the network with opset 9 or "
            "later"
        )
    scale, bias, mean, variance = (row.reshape(-1, *(1,) * (x.ndim - 2)) for row in rows)
    return (scale * (x - mean) / np.sqrt(variance + np.asarray(epsilon, x.dtype)) + bias,)


def _softmax(self: Any, x: Any, **options: Any) -> tuple[Any, ...]:
    """The softmax of a matrix: an axis and all that follow are one. The hardmax has 1 at the first largest element."""
    axis = next((attribute.i for attribute in self.onnx_node.attribute if attribute.name == "axis"), 1)
    rows = x.reshape(math.prod(x.shape[: axis if axis >= 0 else x.ndim + axis]), -1)
    if self.onnx_node.op_type == "Hardmax":
        largest = rows.argmax(axis=1)[:, None] == np.arange(rows.shape[1])
        return (largest.astype(x.dtype).reshape(x.shape),)
    rows = rows - rows.max(axis=1, keepdims=True)
    total = np.exp(rows).sum(axis=1, keepdims=True)
    result = rows - np.log(total) if self.onnx_node.op_type == "LogSoftmax" else np.exp(rows) / total
    return (result.reshape(x.shape),)


def _class_of(name: str, reference: Any, run: Callable[..., Any]) -> Any:
    """The reference's class, whose method is called by `run`."""
    return type(name, (reference,), {"op_domain": "", "_run": lambda self, *a, **o: run(reference._run, self, *a, **o)})


def _cumulated(compute: Any, self: Any, x: Any, axis: Any, **options: Any) -> Any:
    return compute(self, x, np.reshape(axis, ()), **options)


def _short_transform(compute: Any, self: Any, x: Any, *others: Any, **options: Any) -> Any:
    """Of real numbers. By the standard each is an array of one element; torch's exporter leaves that axis out."""
    return compute(self, x[..., None] if x.ndim == 2 else x, *others, **options)


def _global_max_pool(self: Any, x: Any) -> tuple[Any, ...]:
    return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


def _group_normalised(
    self: Any, x: Any, scale: Any, bias: Any, *, num_groups: int, epsilon: float = 1e-5, **options: Any
) -> tuple[Any, ...]:
    rows = x.reshape(x.shape[0], num_groups, -1)
    off = rows - rows.mean(-1, keepdims=True)
    scaled = (off / np.sqrt(np.square(off).mean(-1, keepdims=True) + np.asarray(epsilon, x.dtype))).reshape(x.shape)
    scale, bias = (row.reshape(-1, *(1,) * (x.ndim - 2)) for row in (scale, bias))
    return (scaled * scale + bias,)


def _mean_and_variance(self: Any, x: Any, *, axes: Sequence[int]) -> tuple[Any, ...]:
    off = x - x.mean(tuple(axes), keepdims=True)
    return (off / (np.sqrt(np.square(off).mean(tuple(axes), keepdims=True)) + np.asarray(1e-9, x.dtype)),)


def _lp_normalised(self: Any, x: Any, *, axis: int = -1, p: int = 2) -> tuple[Any, ...]:
    norm = np.power(np.power(np.abs(x), p).sum(axis=axis, keepdims=True), 1 / p)
    return (np.where(norm == 0, 0, x / norm),)


class _Passes:
    """The passes of a Loop and of all Loops inside it."""

    def __init__(self) -> None:
        self._done = self._depth = 0

    @contextmanager
    def of_a_loop(self) -> Iterator[None]:
        self._done = self._done if self._depth else 0
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def count(self) -> None:
        """Before each pass. Raises ModelFileError where there are too many."""
        if self._done == limits.PASSES:
            raise ModelFileError(
                f"a Loop makes more than {limits.PASSES:,} passes in one call, with those of the Loops inside it; that "
                "many are not computed"
            )
        self._done += 1


def _loop(self: Any, trips: Any, condition: Any, *states: Any, context: Any = None, **options: Any) -> tuple[Any, ...]:
    """`trips` passes, or as long as the condition holds. Either may be left out (None)."""
    options = {name: options[name] for name in ("attributes", "bindings") if name in options}
    held, scanned = list(states), list[list[Any]]()
    goes_on, passes = condition is None or bool(np.all(condition)), 0
    with self.passes.of_a_loop():
        while goes_on and (trips is None or passes < int(np.max(trips))):
            self.passes.count()
            body_inputs = zip(self.body.input_names, (np.array(passes, np.int64), np.array(True), *held), strict=True)
            got = self._run_body({**(context or {}), **dict(body_inputs)}, **options)
            goes_on = condition is None or bool(np.all(got[0]))
            held = list(got[1 : 1 + len(states)])
            scanned.append(list(got[1 + len(states) :]))
            passes += 1
    sides = [np.stack(values) for values in zip(*scanned, strict=True)] if scanned else _nothing(self, len(states))
    return (*held, *sides)


def _sequence_map(self: Any, sequence: Any, *others: Any, context: Any = None, **options: Any) -> tuple[Any, ...]:
    """The body of each element, with the same element of other sequences, or with an array that is the same for all.

    The reference knows no values of the graphs around it, and sequences beside the first one in few cases.
    """
    options = {name: options[name] for name in ("attributes", "bindings") if name in options}
    results = []
    for place, element in enumerate(sequence):
        given = (element, *(other[place] if isinstance(other, list) else other for other in others))
        inputs = dict(zip(self.body.input_names, given, strict=True))
        results.append(self._run_body({**(context or {}), **inputs}, **options))
    return tuple([result[output] for result in results] for output in range(len(self.body.output_names)))


def _scan_class(reference: Any) -> Any:
    """The reference's Scan, of arrays whose scanned axis comes first and whose first pass is at its beginning."""
    operator = require_onnx("onnx.reference.op_run").OpRun

    def initialise(self: Any, node: Any, parameters: Any) -> None:
        operator.__init__(self, node, parameters)
        settings = {attribute.name: list(attribute.ints) for attribute in node.attribute}
        self.scan_settings = {
            end: (settings.get(f"scan_{end}_axes", []), settings.get(f"scan_{end}_directions", []))
            for end in ("input", "output")
        }
        self.scan_input_axes = self.scan_input_directions = None
        self.scan_output_axes = self.scan_output_directions = None
        self.input_axes_, self.input_directions_ = ([0] * self.num_scan_inputs for _ in range(2))
        self.input_names, self.output_names = self.body.input_names, self.body.output_names

    def run(self: Any, *values: Any, **options: Any) -> tuple[Any, ...]:
        states = len(values) - self.num_scan_inputs
        scanned = [_scanned(value, index, *self.scan_settings["input"]) for index, value in enumerate(values[states:])]
        results = reference._run(self, *values[:states], *scanned, **options)
        scanned_results = [
            _scanned(value, index, *self.scan_settings["output"], back=True)
            for index, value in enumerate(results[states:])
        ]
        return (*results[:states], *scanned_results)

    return type("Scan", (reference,), {"op_domain": "", "__init__": initialise, "_run": run})


def _scanned(value: Any, index: int, axes: list[int], directions: list[int], *, back: bool = False) -> Any:
    """The array with the axis of the passes as the first, in their order; `back`: from there to its own place."""
    axis = axes[index] if index < len(axes) else 0
    turned = index < len(directions) and directions[index] == 1
    if back:
        return np.moveaxis(value[::-1] if turned else value, 0, axis)
    value = np.moveaxis(value, axis, 0)
    return value[::-1] if turned else value


def _nothing(operator: Any, states: int) -> list[np.ndarray]:
    """The scanned outputs of no pass at all."""
    (body,) = (attribute.g for attribute in operator.onnx_node.attribute if attribute.name == "body")
    dtype_of = require_onnx().helper.tensor_dtype_to_np_dtype
    types = [value.type.tensor_type for value in body.output[1 + states :]]
    return [np.zeros((0, *(dim.dim_value for dim in kind.shape.dim)), dtype_of(kind.elem_type)) for kind in types]
