"""The graph of a `.pt2` file as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnbench.model_files.description import Dim
from rnnbench.rnn import DTYPES as NUMBER_FORMATS

DTYPES = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    12: "bool",
    13: "bfloat16",
}
"""`ScalarType` of the schema, as far as NumPy has it, and bfloat16, whose values are float32 in NumPy."""
UNREAD = {9: "complex32", 10: "complex64", 11: "complex128", 28: "uint16"}
"""Others of it, whose names a user knows."""


@dataclass(frozen=True)
class Ref:
    """A value of the graph, by its name."""

    name: str


@dataclass(frozen=True)
class Kind:
    """A type of elements, by its number in the schema."""

    number: int


@dataclass(frozen=True)
class Pt2Node:
    """A call of an operator in the graph of a `.pt2` file."""

    operator: str
    """The name in ATen, such as `addmm`; else a branch or loop (`scan`), or a number from sizes (`_operator.mul`)."""
    overload: str
    """The variant of an operator of ATen; empty for the others."""
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    outputs: tuple[str, ...]
    gives_list: bool = False
    """Whether it gives its outputs as a list."""

    @property
    def graphs(self) -> tuple[Pt2Graph, ...]:
        """Its branches, or the condition and the body of its loop."""
        return tuple(argument for argument in self.args if isinstance(argument, Pt2Graph))

    def takes(self) -> Iterator[str]:
        """Names of the values among its arguments."""
        return values_in([*self.args, *self.kwargs.values()])


@dataclass(frozen=True)
class Pt2Graph:
    """A graph in a node: a branch, or the condition or body of a loop. It uses no values but its inputs."""

    nodes: tuple[Pt2Node, ...]
    inputs: tuple[str | None, ...]
    """A number that is the same in every call has no name."""
    outputs: tuple[Any, ...]
    """Refs, and numbers that are the same in every call."""


@dataclass(frozen=True)
class Pt2Array:
    """An input or output: its own name, the value of the graph that it is, and its shape."""

    name: str
    value: str
    shape: tuple[Dim, ...]
    dtype: str


@dataclass(frozen=True)
class Pt2File:
    """A `.pt2` file of torch.export: its graph, its weights, and the arrays of a call."""

    nodes: tuple[Pt2Node, ...]
    weights: Mapping[str, np.ndarray]
    """Parameters, buffers and constants by the values of the graph that they are."""
    inputs: tuple[Pt2Array, ...]
    outputs: tuple[Pt2Array, ...]
    states: tuple[tuple[Pt2Array, Pt2Array], ...]
    """Buffers that a call changes: before and after it."""
    shared: frozenset[str]
    """Values of outputs in the memory of an input, a weight or a state."""
    producer: str
    types: Mapping[str, str]
    """The types of elements of all values."""

    @property
    def all_nodes(self) -> Iterator[Pt2Node]:
        """Its nodes, and those of its branches and loops."""
        return all_nodes(self.nodes)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights as the file has them."""
        types = ((array, NUMBER_FORMATS.get(self.types[value])) for value, array in self.weights.items())
        return sum(array.size * (kind or array.dtype).itemsize for array, kind in types)


def all_nodes(nodes: Iterable[Pt2Node]) -> Iterator[Pt2Node]:
    """The nodes, and those of the graphs in them."""
    for node in nodes:
        yield node
        for graph in node.graphs:
            yield from all_nodes(graph.nodes)


def values_in(arguments: Iterable[Any]) -> Iterator[str]:
    """Names of the values among arguments, those in lists in lists included."""
    for argument in arguments:
        if isinstance(argument, list | tuple):
            yield from values_in(argument)
        elif isinstance(argument, Ref):
            yield argument.name
