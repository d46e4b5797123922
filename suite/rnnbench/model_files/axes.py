"""Which axis of an array is time, and which the batch: followed from recurrent operators, else told by sizes' names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from rnnbench.model_files.description import Dim
from rnnbench.model_files.flow import Flow, Value

Axes = tuple[int | None, int | None]
"""The axes of time and of the batch."""
_KEEPS_ALL = frozenset(
    (
        *(
            "Identity",
            "Cast",
            "Dropout",
            "LayerNormalization",
            "BatchNormalization",
            "MatMul",
            "Add",
            "Sub",
            "Mul",
            "Div",
        ),
        *(
            "Relu",
            "Tanh",
            "Sigmoid",
            "Sqrt",
            "Exp",
            "Log",
            "Neg",
            "Abs",
            "Clip",
            "LeakyRelu",
            "Elu",
            "Gelu",
            "Softplus",
            "QuantizeLinear",
            "DequantizeLinear",
            "DynamicQuantizeLinear",
            "MatMulInteger",
        ),
    )
)
"""Operators whose output has the leading axes of their first input, MatMul with a weight matrix included."""
_TIME = re.compile(r"^(?:t|times?|timesteps?|steps?|seq|seq_?len(?:gth)?|sequence(?:_length)?|frames?|length)\d*$")
_BATCH = re.compile(r"^(?:b|n|batch|batch_?size)\d*$")
_X, _H, _C = 0, 5, 6


class AxisSearch:
    """Follows the axes of recurrent operators to the inputs and outputs of the graph.

    `weights` are the names of its initializers, `integers` the small ones of them and of its constants, by name.
    """

    def __init__(self, flow: Flow, weights: Collection[str], integers: dict[str, np.ndarray]) -> None:
        self._flow, self._weights, self._integers = flow, weights, integers
        self._made_of: dict[Value, list[tuple[Any, list[Value | None], Value]]] = {}
        for value, (node, inputs) in flow.made_by.items():
            for source in inputs:
                if source is not None:
                    self._made_of.setdefault(source, []).append((node, inputs, value))
        self.found: dict[str, Axes] = {}

    def run(self) -> dict[str, Axes]:
        """Axes by name, of the outermost values that reach a recurrent operator or are reached from its `Y`."""
        for node, inputs, outputs in self._flow.recurrent:
            batch_first = any(a.name == "layout" and a.i == 1 for a in node.attribute)
            for index, axes in ((_X, (0, 1)), (_H, (None, 1)), (_C, (None, 1))):
                if index in inputs:
                    self._back(inputs[index], _swapped(axes) if batch_first else axes)
            if 0 in outputs:
                self._on(outputs[0], (1, 0) if batch_first else (0, 2))
        return self.found

    def _back(self, value: Value, axes: Axes) -> None:
        """Towards the inputs, as long as it is known where each axis comes from."""
        seen: set[Value] = set()
        current: Value | None = value
        while current is not None and current not in seen and axes != (None, None):
            seen.add(current)
            self._note(current, axes)
            node, inputs = self._flow.made_by.get(current, (None, []))
            source = self._source(inputs)
            axes = _moved(axes, self._order(node, inputs), back=True) if source and node is not None else (None, None)
            current = source

    def _on(self, value: Value, axes: Axes) -> None:
        """Towards the outputs."""
        seen, waiting = {value}, [(value, axes)]
        while waiting:
            current, axes = waiting.pop()
            self._note(current, axes)
            for node, inputs, output in self._made_of.get(current, ()):
                after = _moved(axes, self._order(node, inputs), back=False)
                if self._source(inputs) == current and output not in seen and after != (None, None):
                    seen.add(output)
                    waiting.append((output, after))

    def _note(self, value: Value, axes: Axes) -> None:
        if value[0] == 0:
            self.found.setdefault(value[1], axes)

    def _source(self, inputs: list[Value | None]) -> Value | None:
        """The first input that is no weight: a bias may be the first operand of an addition."""
        return next((value for value in inputs if value is not None and value[1] not in self._weights), None)

    def _order(self, node: Any, inputs: list[Value | None]) -> _Order | None:
        """What the node does with axes; None where that is not known."""
        if node.op_type in _KEEPS_ALL:
            return lambda axis: axis, lambda axis: axis
        attributes = {attribute.name: attribute for attribute in node.attribute}
        named = inputs[1] if len(inputs) > 1 else None
        listed = self._integers.get(named[1]) if named is not None else None
        if node.op_type == "Transpose" and "perm" in attributes:
            order = list(attributes["perm"].ints)
            return lambda axis: order[axis] if axis < len(order) else None, lambda axis: _index(order, axis)
        if node.op_type == "Reshape" and listed is not None:
            kept = next((i for i, size in enumerate(listed) if size != 0), len(listed))
            return (lambda axis: axis if axis < kept else None,) * 2
        moved = [*attributes["axes"].ints] if "axes" in attributes else None if listed is None else listed.tolist()
        if node.op_type not in ("Squeeze", "Unsqueeze") or moved is None or any(axis < 0 for axis in moved):
            return None
        gone, come = (lambda axis: _without(axis, moved)), (lambda axis: _with(axis, moved))
        return (gone, come) if node.op_type == "Unsqueeze" else (come, gone)


_Move = Callable[[int], int | None]
_Order = tuple[_Move, _Move]
"""The axis of the input that an axis of the output is, and the other way round. None where there is none."""


def axes_by_name(shape: tuple[Dim, ...] | None) -> Axes:
    """Axes whose sizes have names such as `seq_len` and `batch_size`. None where none or several have."""
    names = [(axis, dim.lower()) for axis, dim in enumerate(shape or ()) if isinstance(dim, str)]
    time, batch = ([axis for axis, name in names if pattern.match(name)] for pattern in (_TIME, _BATCH))
    return time[0] if len(time) == 1 else None, batch[0] if len(batch) == 1 else None


def _swapped(axes: Axes) -> Axes:
    time, batch = (None if axis is None else 1 - axis for axis in axes)
    return time, batch


def _moved(axes: Axes, order: _Order | None, *, back: bool) -> Axes:
    if order is None:
        return None, None
    move = order[0] if back else order[1]
    time, batch = (None if axis is None else move(axis) for axis in axes)
    return time, batch


def _index(order: list[int], axis: int) -> int | None:
    return order.index(axis) if axis in order else None


def _without(axis: int, added: Sequence[int]) -> int | None:
    """The axis before `added` were added, which are axes of the result."""
    return None if axis in added else axis - sum(1 for one in added if one < axis)


def _with(axis: int, added: Sequence[int]) -> int:
    """The axis after `added` were added."""
    for one in sorted(added):
        axis += int(one) <= axis
    return axis
