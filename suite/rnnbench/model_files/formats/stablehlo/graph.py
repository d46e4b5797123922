"""A module of StableHLO as plain values: functions of operations, without the parser's objects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnbench.rnn import DTYPES as NUMBER_FORMATS

DTYPES = {
    "bf16": "bfloat16",
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "i1": "bool",
}
"""Types of elements by MLIR's names, as far as NumPy has them, and bfloat16, whose values are float32 in NumPy."""


@dataclass(frozen=True)
class TensorType:
    """Sizes of a tensor, and MLIR's name of the type of its elements."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Node:
    """An operation. Values are numbers, each made once in its function."""

    kind: str
    """With its dialect: `stablehlo.add`."""
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    types: tuple[TensorType, ...]
    """The types of its outputs."""
    attributes: Mapping[str, Any]
    """Numbers, texts, tuples and arrays; what is StableHLO's own as MLIR writes it."""
    regions: tuple[Region, ...] = ()


@dataclass(frozen=True)
class Region:
    """The body of a function, or of an operation such as a loop."""

    arguments: tuple[int, ...]
    nodes: tuple[Node, ...]
    results: tuple[int, ...]

    def all_nodes(self) -> Iterator[Node]:
        """All nodes, those of inner regions included."""
        for node in self.nodes:
            yield node
            for region in node.regions:
                yield from region.all_nodes()


@dataclass(frozen=True)
class MlirArray:
    """An input, output or state of the module's function."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    path: tuple[str, ...] = ()
    """Its place in the tree of arguments or of results that JAX tells: `carry, 0` of `carry[0]`."""


@dataclass(frozen=True)
class StablehloFile:
    """A module of StableHLO: its functions, and the arrays of the one that is called."""

    functions: Mapping[str, Region]
    """By name. All of them are pure: globals that a call changes are arguments and results of `entry`."""
    entry: str
    inputs: tuple[MlirArray, ...]
    """The first arguments of `entry`. The states before the call are the others."""
    outputs: tuple[MlirArray, ...]
    states: tuple[tuple[MlirArray, MlirArray], ...]
    """Globals that a call changes: before and after it."""
    starts: frozenset[str]
    """States whose globals have values that are not zero."""
    text: str
    """The functions as MLIR, all private."""

    @property
    def weight_bytes(self) -> int:
        return sum(
            node.attributes["value"].size * itemsize(node.types[0].dtype)
            for function in self.functions.values()
            for node in function.all_nodes()
            if node.kind == CONSTANT and not is_splat(node.attributes["value"])
        )


CONSTANT = "stablehlo.constant"


def itemsize(dtype: str) -> int:
    """Bytes of an element in the file."""
    return NUMBER_FORMATS[dtype].itemsize if dtype in NUMBER_FORMATS else np.dtype(dtype).itemsize


def is_splat(array: np.ndarray) -> bool:
    """Whether the array is one element that is repeated, as the parser gives it: no memory was allocated for it."""
    return all(stride == 0 or size <= 1 for size, stride in zip(array.shape, array.strides, strict=True))


def numbers(attribute: str, name: str) -> tuple[int, ...]:
    """A list in an attribute that only StableHLO knows: `#stablehlo.dot<lhs_contracting_dimensions = [1], …>`."""
    match = re.search(rf"\b{name} = \[([\d, ]*)\]", attribute)
    return tuple(int(number) for number in match[1].split(",") if number.strip()) if match else ()
