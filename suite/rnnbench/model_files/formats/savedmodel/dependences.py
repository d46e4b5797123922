"""Which arguments each result of a SavedModel's function is computed from, and of which it is made by moving data.

A loop or a branch computes each of its results from all that it takes. A variable is computed from all that is written
into it, before it is read or after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from graphlib import CycleError, TopologicalSorter
from operator import or_
from typing import Any, NamedTuple

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.tensorflow_graph import ASSIGNMENTS, CALLS, CHOICES

_MOVES = frozenset(
    (
        *("Identity", "IdentityN", "ReadVariableOp", "StopGradient", "Cast", "EnsureShape", "Reshape", "Squeeze"),
        *("ExpandDims", "Transpose", "StridedSlice", "Slice", "Split", "SplitV", "Pack", "Unpack", "ConcatV2", "Tile"),
        *("GatherV2", "GatherNd", "ReverseV2", "BroadcastTo", "Pad", "PadV2", "MirrorPad", "Select", "SelectV2"),
        *("Roll", "TensorScatterUpdate"),
    )
)
"""Operations whose results are elements of what they get."""
_RESOURCE = 20
"""The type of an argument that is a variable (DT_RESOURCE in types.proto)."""


class _Sources(NamedTuple):
    """A bit for each argument of a function."""

    computed: int = 0
    """Those that a value is computed from."""
    moved: int = 0
    """Those whose elements it has."""


@dataclass(frozen=True)
class _Function:
    results: list[_Sources]
    written: Mapping[int, int]
    """By the place of an argument that is a variable: what is computed of its new value, as bits of arguments."""


class Dependences:
    """Of functions of a graph, by name. They do not call themselves."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self._functions = functions
        self._known: dict[str, _Function] = {}

    def results(self, name: str) -> list[tuple[list[int], list[int]]]:
        """For each result, the places of the arguments that it is computed from, and of which it has elements."""
        return [([*_places(made.computed)], [*_places(made.moved)]) for made in self._of(name).results]

    def written(self, name: str) -> dict[int, list[int]]:
        """By the place of a variable that a call changes: the places of arguments that it is computed from then."""
        return {place: [*_places(bits)] for place, bits in self._of(name).written.items()}

    def _of(self, name: str) -> _Function:
        if name not in self._known:
            self._known[name] = _Walk(self._functions[name], self._of).function()
        return self._known[name]


class _Walk:
    """Through the nodes of one function."""

    def __init__(self, function: Any, of: Any) -> None:
        self._function, self._of = function, of
        self._arguments = {argument.name: place for place, argument in enumerate(function.signature.input_arg)}
        self._values = {name: _Sources(1 << place, 1 << place) for name, place in self._arguments.items()}
        self._variables = {each.name for each in function.signature.input_arg if each.type == _RESOURCE}
        self._results: dict[tuple[str, int], _Sources] = {}
        """What each result of a call is made of."""

    def function(self) -> _Function:
        nodes, start = [*self._in_order()], dict(self._values)
        while True:  # What is written into a variable counts where it was read before, too.
            for node in nodes:
                self._visit(node)
            written = {name: self._values[name].computed for name in self._arguments}
            if all(self._values[name] == start[name] for name in start):
                break
            start = {name: self._values[name] for name in start}
        function = self._function
        return _Function(
            [self._of_value(function.ret[result.name]) for result in function.signature.output_arg],
            {place: written[name] for name, place in self._arguments.items() if written[name] != 1 << place},
        )

    def _in_order(self) -> Iterator[Any]:
        nodes = {node.name: node for node in self._function.node_def}
        before = {name: {_node_of(value) for value in node.input} & nodes.keys() for name, node in nodes.items()}
        try:
            yield from (nodes[name] for name in TopologicalSorter(before).static_order())
        except CycleError as error:
            raise ModelFileError("operations of its graph wait for each other") from error

    def _visit(self, node: Any) -> None:
        inputs = [value for value in node.input if not value.startswith("^")]
        given = [self._of_value(value) for value in inputs]
        if node.op in CALLS:
            self._call(node, inputs, given)
            return
        computed = _union(source.computed for source in given)
        self._values[node.name] = _Sources(computed, _union(s.moved for s in given) if node.op in _MOVES else 0)
        for variable in inputs[:1] if node.op in ASSIGNMENTS else inputs if node.op in CHOICES else ():
            self._write(variable, computed)

    def _call(self, node: Any, inputs: list[str], given: list[_Sources]) -> None:
        called = self._of(node.attr["f"].func.name)

        def computed(bits: int) -> int:
            return _union(given[place].computed for place in _places(bits))

        for place, made in enumerate(called.results):
            moved = _union(given[source].moved for source in _places(made.moved))
            self._results[node.name, place] = _Sources(computed(made.computed), moved)
        for place, bits in called.written.items():
            self._write(inputs[place], computed(bits))

    def _write(self, variable: str, computed: int) -> None:
        name = _node_of(variable)
        if name in self._variables:
            held = self._values[name]
            self._values[name] = _Sources(held.computed | computed, held.moved)

    def _of_value(self, value: str) -> _Sources:
        """Of a value as a function names it: an argument, or `node:output:0`."""
        name, _, result = value.partition(":")
        place = result.rpartition(":")[2]
        if place.isdigit() and (name, int(place)) in self._results:
            return self._results[name, int(place)]
        return self._values.get(name, _Sources())


def _node_of(value: str) -> str:
    return value.removeprefix("^").partition(":")[0]


def _union(bits: Iterator[int]) -> int:
    return reduce(or_, bits, 0)


def _places(bits: int) -> Iterator[int]:
    return (place for place in range(bits.bit_length()) if bits >> place & 1)
