"""What flows where in an ONNX graph, inner graphs included, through operators that only move or rename data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Value = tuple[int, str]
"""A value of the graph: the number of its graph, 0 for the outermost, and its name there."""
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
    "ScatterElements": slice(0, 3, 2),
    "ScatterND": slice(0, 3, 2),
    "SequenceConstruct": slice(None),
    "SequenceInsert": slice(0, 2),
    "Where": slice(1, 3),
}
"""Operators whose outputs are elements of several inputs, and which."""
_OF_SIZES = frozenset(("Shape", "Size", "ConstantOfShape"))
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


@dataclass(frozen=True)
class Carried:
    """A state that an operator takes and gives. A value is None where the operator does without."""

    operator: str
    node: str
    before: Value | None
    after: Value | None


@dataclass
class Flow:
    """The graph as edges. `before[v]` are the values that v is made of by moving data, `after[v]` those made of v."""

    before: dict[Value, list[Value]] = field(default_factory=lambda: defaultdict(list))
    after: dict[Value, list[Value]] = field(default_factory=lambda: defaultdict(list))
    carried: list[Carried] = field(default_factory=list)
    recurrent: list[tuple[Any, dict[int, Value], dict[int, Value]]] = field(default_factory=list)
    """Each recurrent operator with its inputs and its outputs by index."""
    made_by: dict[Value, tuple[Any, list[Value | None]]] = field(default_factory=dict)
    """The node that makes a value, and its inputs."""

    def sources(self, value: Value) -> Iterator[str]:
        """Names of the outermost values that `value` is made of by moving data, itself included."""
        return _reached(value, self.before)

    def computed_from(self, value: Value) -> Iterator[str]:
        """Names of the outermost values that `value` is computed from by any operators, itself included."""
        return _reached(value, self._computed)

    @cached_property
    def _computed(self) -> dict[Value, list[Value]]:
        """What each value is computed from, but for sizes: zeros of x's batch are none of x."""
        edges = {
            made: [source for source in inputs if source]
            for made, (node, inputs) in self.made_by.items()
            if node.op_type not in _OF_SIZES
        }
        for value, sources in self.before.items():
            edges.setdefault(value, []).extend(sources)
        return edges

    def targets(self, value: Value) -> Iterator[str]:
        """Names of the outermost values that are made of `value` by moving data, itself included."""
        return _reached(value, self.after)


def flow_of(graph: Any) -> Flow:
    """The flow of a GraphProto."""
    flow = Flow()
    _Builder(flow).graph(graph, {})
    return flow


def _reached(value: Value, edges: dict[Value, list[Value]]) -> Iterator[str]:
    seen, waiting = {value}, [value]
    while waiting:
        there = waiting.pop()
        if there[0] == 0:
            yield there[1]
        for following in edges.get(there, ()):
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
            names[value.name] = (number, value.name)
        for node in graph.node:
            for name in node.output:
                names[name] = (number, name)
            self._node(node, names)
        return names

    def _node(self, node: Any, names: dict[str, Value]) -> None:
        inputs = [names.get(name) if name else None for name in node.input]
        outputs = [names.get(name) if name else None for name in node.output]
        self._flow.made_by |= {output: (node, inputs) for output in outputs if output}
        for source in inputs[_MOVE_OTHERS.get(node.op_type, slice(node.op_type in MOVES))]:
            for output in outputs:
                self._move(source, output)
        for before, after in _STATES.get(node.op_type, ()):
            self._carry(node, _at(inputs, before), _at(outputs, after))
        if node.op_type in RECURRENT:
            given, made = ({i: value for i, value in enumerate(values) if value} for values in (inputs, outputs))
            self._flow.recurrent.append((node, given, made))
        for attribute in node.attribute:
            if attribute.HasField("g"):
                self._inner(node, attribute.g, inputs, outputs, names)

    def _inner(
        self, node: Any, graph: Any, inputs: list[Value | None], outputs: list[Value | None], names: dict[str, Value]
    ) -> None:
        """An If's branch, or the body of a Loop or Scan, whose first inputs and outputs are states."""
        inside = self.graph(graph, names)
        given = [inside.get(value.name) for value in graph.input]
        made = [inside.get(value.name) for value in graph.output]
        if node.op_type == "If":
            for source, output in zip(made, outputs, strict=False):
                self._move(source, output)
        if node.op_type == "Loop":
            states, skipped = max(len(given) - 2, 0), (2, 1)
        elif node.op_type == "Scan":
            scanned = next((a.i for a in node.attribute if a.name == "num_scan_inputs"), 0)
            states, skipped = max(len(given) - scanned, 0), (0, 0)
        else:
            return
        for index in range(states):
            before, after = _at(inputs, index + skipped[0]), _at(outputs, index)
            self._move(_at(made, index + skipped[1]), after)
            self._move(before, _at(given, index + skipped[0]))
            self._carry(node, before, after)
        for index in range(states, len(inputs) - skipped[0]):
            self._move(_at(inputs, index + skipped[0]), _at(given, index + skipped[0]))
        for index in range(states, len(outputs)):
            self._move(_at(made, index + skipped[1]), _at(outputs, index))

    def _carry(self, node: Any, before: Value | None, after: Value | None) -> None:
        self._flow.carried.append(Carried(node.op_type, node.name, before, after))

    def _move(self, source: Value | None, target: Value | None) -> None:
        if source is not None and target is not None:
            self._flow.before[target].append(source)
            self._flow.after[source].append(target)


def _at(values: list[Value | None], index: int) -> Value | None:
    return values[index] if 0 <= index < len(values) else None
