"""The flow of a graph: which values are made of which, through operators that only move or rename data.

`flow_of` builds it of an ONNX graph, inner graphs included. Formats with other graphs build their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

OUTERMOST = 0
"""The number of the outermost graph."""
MOVES = frozenset(
    [
        "Identity",
        "Reshape",
        "Squeeze",
        "Unsqueeze",
        "Transpose",
        "Slice",
        "Gather",
        "Split",
        "Cast",
        "Flatten",
        "Expand",
        "QuantizeLinear",
        "DequantizeLinear",
        "SplitToSequence",
        "SequenceAt",
        "SequenceErase",
        "ConcatFromSequence",
        "Optional",
        "OptionalGetElement",
    ]
)
"""Operators whose outputs are elements of their first input. To quantise them is to move them, too."""
_MOVE_OTHERS: dict[str, slice] = {
    "Concat": slice(None),
    "QLinearConcat": slice(2, None, 3),
    "Scatter": slice(0, 3, 2),
    "ScatterElements": slice(0, 3, 2),
    "ScatterND": slice(0, 3, 2),
    "SequenceConstruct": slice(None),
    "SequenceInsert": slice(0, 2),
    "Where": slice(1, 3),
}
"""Operators whose outputs are elements of several inputs, and which."""
_SIZE_OPERATORS = frozenset(("Shape", "Size", "ConstantOfShape"))
RECURRENT = frozenset(("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"))
_STATES: dict[str, tuple[tuple[int, int], ...]] = {
    "LSTM": ((5, 1), (6, 2)),
    "DynamicQuantizeLSTM": ((5, 1), (6, 2)),
    "GRU": ((5, 1),),
    "RNN": ((5, 1),),
    "LinearAttention": ((3, 1),),
    "CausalConvWithState": ((3, 1),),
}
"""Index of the input that has the initial state, and of the output that has the final one, by operator."""


class Value(NamedTuple):
    """A value of an ONNX graph, or of what another format has in its place."""

    graph: int
    """The number of its graph. The outermost one is OUTERMOST."""
    name: str


@dataclass(frozen=True)
class OperatorState:
    """A state that an operator takes and gives. A value is None where the operator does without."""

    operator: str
    node: str
    before: Value | None
    after: Value | None


@dataclass(frozen=True)
class RecurrentOperator:
    """A recurrent operator with its inputs and outputs by index."""

    node: Any
    inputs: Mapping[int, Value]
    outputs: Mapping[int, Value]


@dataclass(frozen=True)
class Maker:
    """The node that makes a value, and its inputs. One that is left out is None."""

    node: Any
    inputs: Sequence[Value | None]


@dataclass
class Flow:
    """The graph as edges between its values."""

    moved_from: dict[Value, list[Value]] = field(default_factory=lambda: defaultdict(list))
    """The values that a value is made of by moving data."""
    moved_to: dict[Value, list[Value]] = field(default_factory=lambda: defaultdict(list))
    """The values that are made of a value by moving data."""
    states: list[OperatorState] = field(default_factory=list)
    recurrent: list[RecurrentOperator] = field(default_factory=list)
    makers: dict[Value, Maker] = field(default_factory=dict)
    knows_moves: bool = False
    """Whether all ways by which data moves are in it: then what is made by no such way is computed."""

    def move(self, source: Value | None, target: Value | None) -> None:
        """Note that `target` is made of `source` by moving data. Nothing where either is left out."""
        if source is not None and target is not None:
            self.moved_from[target].append(source)
            self.moved_to[source].append(target)

    def sources(self, value: Value) -> Iterator[str]:
        """Names of the outermost values that `value` is made of by moving data, itself included."""
        return _reached(value, self.moved_from)

    def computed_from(self, value: Value) -> Iterator[str]:
        """Names of the outermost values that `value` is computed from by any operators, itself included."""
        return _reached(value, self._computed)

    @cached_property
    def _computed(self) -> dict[Value, list[Value]]:
        """What each value is computed from. Sizes do not count: zeros as many as x has rows are not computed from x."""
        edges = {
            value: [source for source in maker.inputs if source]
            for value, maker in self.makers.items()
            if maker.node.op_type not in _SIZE_OPERATORS
        }
        for value, sources in self.moved_from.items():
            edges.setdefault(value, []).extend(sources)
        return edges

    def targets(self, value: Value) -> Iterator[str]:
        """Names of the outermost values that are made of `value` by moving data, itself included."""
        return _reached(value, self.moved_to)


def flow_of(graph: Any) -> Flow:
    """The flow of a GraphProto."""
    flow = Flow(knows_moves=True)
    _Builder(flow).graph(graph, {})
    return flow


def _reached(value: Value, edges: dict[Value, list[Value]]) -> Iterator[str]:
    seen, waiting = {value}, [value]
    while waiting:
        current = waiting.pop()
        if current.graph == OUTERMOST:
            yield current.name
        for following in edges.get(current, ()):
            if following not in seen:
                seen.add(following)
                waiting.append(following)


class _Builder:
    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._graphs = 0

    def graph(self, graph: Any, outer: dict[str, Value]) -> dict[str, Value]:
        """Add its nodes; returns its values by name, those of the graphs around it included."""
        number = self._graphs
        self._graphs += 1
        names = dict(outer)
        for value in (*graph.input, *graph.initializer):
            names[value.name] = Value(number, value.name)
        for node in graph.node:
            for name in node.output:
                names[name] = Value(number, name)
            self._node(node, names)
        return names

    def _node(self, node: Any, names: dict[str, Value]) -> None:
        inputs = [names.get(name) if name else None for name in node.input]
        outputs = [names.get(name) if name else None for name in node.output]
        self._flow.makers |= {output: Maker(node, inputs) for output in outputs if output}
        for source in inputs[_MOVE_OTHERS.get(node.op_type, slice(node.op_type in MOVES))]:
            for output in outputs:
                self._flow.move(source, output)
        for before, after in _STATES.get(node.op_type, ()):
            self._carry(node, _at(inputs, before), _at(outputs, after))
        if node.op_type in RECURRENT:
            inputs_by_index, outputs_by_index = (
                {i: value for i, value in enumerate(values) if value} for values in (inputs, outputs)
            )
            self._flow.recurrent.append(RecurrentOperator(node, inputs_by_index, outputs_by_index))
        for attribute in node.attribute:
            if attribute.HasField("g"):
                self._inner(node, attribute.g, inputs, outputs, names)

    def _inner(
        self, node: Any, graph: Any, inputs: list[Value | None], outputs: list[Value | None], names: dict[str, Value]
    ) -> None:
        """An If's branch, or the body of a Loop or Scan, whose first inputs and outputs are states."""
        inside = self.graph(graph, names)
        inner_inputs = [inside.get(value.name) for value in graph.input]
        inner_outputs = [inside.get(value.name) for value in graph.output]
        if node.op_type == "If":
            for source, output in zip(inner_outputs, outputs, strict=False):
                self._flow.move(source, output)
        if node.op_type == "Loop":
            states, first_input, first_output = max(len(inner_inputs) - 2, 0), 2, 1
        elif node.op_type == "Scan":
            scanned = next((a.i for a in node.attribute if a.name == "num_scan_inputs"), 0)
            states, first_input, first_output = max(len(inner_inputs) - scanned, 0), 0, 0
        else:
            return
        for index in range(states):
            before, after = _at(inputs, index + first_input), _at(outputs, index)
            self._flow.move(_at(inner_outputs, index + first_output), after)
            self._flow.move(before, _at(inner_inputs, index + first_input))
            self._carry(node, before, after)
        for index in range(states, len(inputs) - first_input):
            self._flow.move(_at(inputs, index + first_input), _at(inner_inputs, index + first_input))
        for index in range(states, len(outputs)):
            self._flow.move(_at(inner_outputs, index + first_output), _at(outputs, index))

    def _carry(self, node: Any, before: Value | None, after: Value | None) -> None:
        self._flow.states.append(OperatorState(node.op_type, node.name, before, after))


def _at(values: list[Value | None], index: int) -> Value | None:
    return values[index] if 0 <= index < len(values) else None
