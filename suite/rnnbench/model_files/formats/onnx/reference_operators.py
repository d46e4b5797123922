"""Operators that ONNX's reference computes otherwise than the standard says, or not at all.

Loop: the reference takes a condition that is left out for false, and joins the scanned outputs along an axis that they
have, instead of along a new one. DequantizeLinear: it has no form before version 19 of the operators.
Scan: it goes along axis 0 alone, and forward alone.
ConvTranspose: `conv_transpose` says why.
Optional: it gives a list, which OptionalGetElement hands on as it is.
BatchNormalization before version 14: it normalises by the mean and the variance of the call, as in training.
Softmax, LogSoftmax before version 13: it takes the named axis alone, without those that follow.
Source: onnx/reference/ops/op_*.py of each operator (onnx 1.23), and the text of the operators.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.onnx.conv_transpose import conv_transpose
from rnnbench.model_files.formats.onnx.file import require_onnx

_FIRST_DEQUANTIZE, _FIRST_TRAINING_MODE, _FIRST_SOFTMAX_OF_AN_AXIS = 19, 14, 13


def reference_operators(opset: int) -> list[Any]:
    """Classes that replace the reference's own, for a version of ONNX's operators."""
    loop = require_onnx("onnx.reference.ops.op_loop").Loop
    transpose = require_onnx("onnx.reference.ops.op_conv_transpose").ConvTranspose
    operator = require_onnx("onnx.reference.op_run").OpRun
    classes = [
        type("Loop", (loop,), {"op_domain": "", "_run": _loop, "passes": _Passes()}),
        type("ConvTranspose", (transpose,), {"op_domain": "", "_run": conv_transpose}),
        type("Optional", (operator,), {"op_domain": "", "_run": _optional}),
        _scan_class(require_onnx("onnx.reference.ops.op_scan").Scan),
    ]
    if opset < _FIRST_SOFTMAX_OF_AN_AXIS:
        classes += [type(name, (operator,), {"op_domain": "", "_run": _softmax}) for name in ("Softmax", "LogSoftmax")]
    if opset < _FIRST_TRAINING_MODE:
        classes.append(type("BatchNormalization", (operator,), {"op_domain": "", "_run": _normalised}))
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
    scale, bias, mean, variance = (row.reshape(-1, *(1,) * (x.ndim - 2)) for row in rows)
    return (scale * (x - mean) / np.sqrt(variance + np.asarray(epsilon, x.dtype)) + bias,)


def _softmax(self: Any, x: Any, **options: Any) -> tuple[Any, ...]:
    """The softmax of a matrix: an axis and all that follow are one."""
    axis = next((attribute.i for attribute in self.onnx_node.attribute if attribute.name == "axis"), 1)
    rows = x.reshape(math.prod(x.shape[: axis if axis >= 0 else x.ndim + axis]), -1)
    rows = rows - rows.max(axis=1, keepdims=True)
    total = np.exp(rows).sum(axis=1, keepdims=True)
    result = rows - np.log(total) if self.onnx_node.op_type == "LogSoftmax" else np.exp(rows) / total
    return (result.reshape(x.shape),)


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
