"""Which axis of an array is time, and which the batch: followed from recurrent operators, else told by sizes' names."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnbench.model_files.description import Dim
from rnnbench.model_files.flow import OUTERMOST, Flow, Maker, Value


class Axes(NamedTuple):
    """Which axis of an array is time, and which the batch. None where it has no such axis, or it is not known."""

    time: int | None = None
    batch: int | None = None


_Move = Callable[[int], int | None]


class _Moves(NamedTuple):
    """What an operator does with axes."""

    to_input: _Move
    """The axis of the input that an axis of the output is. None where it is none."""
    to_output: _Move
    """The other way round."""


_SAME_AXES = frozenset(
    (
        *("Identity", "Cast", "Dropout", "LayerNormalization", "BatchNormalization", "MatMul", "Add", "Sub", "Mul"),
        *("Div", "Relu", "Tanh", "Sigmoid", "Sqrt", "Exp", "Log", "Neg", "Abs", "Clip", "LeakyRelu", "Elu", "Gelu"),
        *("Softplus", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger"),
    )
)
"""Operators whose output has the leading axes of their first input, MatMul with a weight matrix included."""
_PARTS = frozenset(("Slice", "Split"))
"""Operators whose outputs are parts of their first input, as the states of one layer are of those of all. Of steps they
may take some only."""
_TIME = re.compile(r"^(?:t|times?|timesteps?|steps?|seq|seq_?len(?:gth)?|sequence(?:_length)?|frames?|length)\d*$")
_BATCH = re.compile(r"^(?:b|n|batch|batch_?size)\d*$")
_X, _H, _C = 0, 5, 6
"""Indices of the inputs of a recurrent operator."""
_Y = 0
"""Index of its output that has all steps."""


class AxisSearch:
    """Follows the axes of recurrent operators to the inputs and outputs of the graph.

    `weights` are the names of its initializers, `integers` the small ones of them and of its constants, by name.
    """

    def __init__(self, flow: Flow, weights: Collection[str], integers: dict[str, np.ndarray]) -> None:
        self._flow, self._weights, self._integers = flow, weights, integers
        self._made_of: dict[Value, list[tuple[Maker, Value]]] = {}
        """For each value, the values that are made of it, and how."""
        for value, maker in flow.makers.items():
            for source in maker.inputs:
                if source is not None:
                    self._made_of.setdefault(source, []).append((maker, value))
        self.found: dict[str, Axes] = {}

    def run(self) -> dict[str, Axes]:
        """Axes by name, of the outermost values that reach a recurrent operator or are reached from its `Y`."""
        for operator in self._flow.recurrent:
            batch_first = any(a.name == "layout" and a.i == 1 for a in operator.node.attribute)
            for index, axes in ((_X, Axes(0, 1)), (_H, Axes(None, 1)), (_C, Axes(None, 1))):
                if index in operator.inputs:
                    self._backward(operator.inputs[index], _swapped(axes) if batch_first else axes)
            if _Y in operator.outputs:
                self._forward(operator.outputs[_Y], Axes(1, 0) if batch_first else Axes(0, 2))
        return self.found

    def _backward(self, value: Value, axes: Axes) -> None:
        """Towards the inputs, as long as it is known where each axis comes from."""
        seen: set[Value] = set()
        current: Value | None = value
        while current is not None and current not in seen and axes != Axes():
            seen.add(current)
            self._note(current, axes)
            maker = self._flow.makers.get(current)
            current = self._source(maker.inputs) if maker else None
            moves = self._moves(maker, axes) if maker and current else None
            axes = _moved(axes, moves.to_input) if moves else Axes()

    def _forward(self, value: Value, axes: Axes) -> None:
        """Towards the outputs."""
        seen, waiting = {value}, [(value, axes)]
        while waiting:
            current, axes = waiting.pop()
            self._note(current, axes)
            for maker, output in self._made_of.get(current, ()):
                moves = self._moves(maker, axes)
                after = _moved(axes, moves.to_output) if moves else Axes()
                if self._source(maker.inputs) == current and output not in seen and after != Axes():
                    seen.add(output)
                    waiting.append((output, after))

    def _note(self, value: Value, axes: Axes) -> None:
        if value.graph == OUTERMOST:
            self.found.setdefault(value.name, axes)

    def _source(self, inputs: Sequence[Value | None]) -> Value | None:
        """The first input that is no weight: a bias may be the first operand of an addition."""
        return next((value for value in inputs if value is not None and value.name not in self._weights), None)

    def _moves(self, maker: Maker, axes: Axes) -> _Moves | None:
        """What the node does with axes; None where that is not known."""
        node, inputs = maker.node, maker.inputs
        if node.op_type in _SAME_AXES or (node.op_type in _PARTS and axes.time is None):
            return _Moves(lambda axis: axis, lambda axis: axis)
        attributes = {attribute.name: attribute for attribute in node.attribute}
        if node.op_type == "Transpose" and "perm" in attributes:
            order = list(attributes["perm"].ints)
            return _Moves(
                lambda axis: order[axis] if axis < len(order) else None,
                lambda axis: order.index(axis) if axis in order else None,
            )
        second = inputs[1] if len(inputs) > 1 else None
        integers = self._integers.get(second.name) if second is not None else None
        if node.op_type == "Reshape" and integers is not None:
            # A size of 0 stands for the one that is there.
            return _moves_of_leading_axes(next((i for i, size in enumerate(integers) if size != 0), len(integers)))
        if node.op_type not in ("Squeeze", "Unsqueeze"):
            return None
        return _moves_of_unit_axes(node.op_type, _unit_axes(attributes, integers))


def _unit_axes(attributes: dict[str, Any], integers: np.ndarray | None) -> list[int] | None:
    """The axes of one element that a Squeeze takes away or an Unsqueeze adds: an attribute, or an input in later
    versions of the operators."""
    if "axes" in attributes:
        return [*attributes["axes"].ints]
    return None if integers is None else [int(axis) for axis in integers]


def _moves_of_leading_axes(kept: int) -> _Moves:
    def move(axis: int) -> int | None:
        return axis if axis < kept else None

    return _Moves(move, move)


def _moves_of_unit_axes(operator: str, axes: Sequence[int] | None) -> _Moves | None:
    if axes is None or any(axis < 0 for axis in axes):
        return None
    if operator == "Unsqueeze":
        return _Moves(lambda axis: _before_adding(axis, axes), lambda axis: _after_adding(axis, axes))
    return _Moves(lambda axis: _after_adding(axis, axes), lambda axis: _before_adding(axis, axes))


def axes_by_name(shape: tuple[Dim, ...] | None) -> Axes:
    """Axes whose sizes have names such as `seq_len` and `batch_size`. None where none or several have."""
    names = [(axis, dim.lower()) for axis, dim in enumerate(shape or ()) if isinstance(dim, str)]
    time, batch = ([axis for axis, name in names if pattern.match(name)] for pattern in (_TIME, _BATCH))
    return Axes(time[0] if len(time) == 1 else None, batch[0] if len(batch) == 1 else None)


def _swapped(axes: Axes) -> Axes:
    """The axes of an operator whose first two axes have changed places."""
    return _moved(axes, lambda axis: 1 - axis)


def _moved(axes: Axes, move: _Move) -> Axes:
    return Axes(*(None if axis is None else move(axis) for axis in axes))


def _before_adding(axis: int, added: Sequence[int]) -> int | None:
    """The axis before `added` were added, which are axes of the result."""
    return None if axis in added else axis - sum(1 for other in added if other < axis)


def _after_adding(axis: int, added: Sequence[int]) -> int:
    """The axis after `added` were added."""
    for other in sorted(added):
        axis += other <= axis
    return axis
