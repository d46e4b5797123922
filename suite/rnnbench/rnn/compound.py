"""Compound networks: several programs, and a loop in the host that calls them and decides by their outputs.

Each program is a network. A backend builds it like any other network, and the suite joins the sessions
(`backends/shared/compound.py`). If the loop is in the program, a backend builds the compound as one program.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from rnnbench.rnn.network import LayerSpec, Network, WeightSpec
from rnnbench.rnn.primitives import LayerBody, Primitives, V
from rnnbench.rnn.weights import Weights

Arrays = Mapping[str, np.ndarray]


class Part(NamedTuple):
    """A program of a compound network."""

    name: str
    network: Network
    rate: int | None
    """Its steps per step of the compound; None if the loop calls it step by step, as often as it decides."""


class Stream(Protocol):
    """A session of a part, as the loop sees it."""

    def step(self, x: np.ndarray) -> np.ndarray:
        """y [n, batch, width] of x [n, batch, input]."""
        ...

    def get_state(self) -> Arrays: ...
    def set_state(self, state: Arrays) -> None: ...


class LoopPrimitives(Protocol):
    """The primitives for a loop in the program. A route that has them declares the primitive `while`.

    Arrays are the backend's. Carried values are nested tuples and mappings of arrays, whose shapes do not change.
    """

    arrays: Any
    """NumPy's functions for the backend's arrays: `where`, `argmax`, `concat`, … The arrays have operators and indices,
    and `asarray` with a dtype casts them."""

    def run(self, part: str, x: Any, state: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any]]:
        """y [n, batch, width] of a part over x [n, batch, input], and its state after it."""
        ...

    def each(self, body: Callable[[Any, Any], tuple[Any, Any]], carried: Any, x: Any) -> tuple[Any, Any]:
        """Call `body(carried, item)` → (carried, result) for every item. Returns the last carried, and all results."""
        ...

    def repeat(self, going: Callable[[Any], Any], body: Callable[[Any], Any], carried: Any) -> Any:
        """Replace `carried` by `body(carried)` while `going(carried)` holds. Returns the last one."""
        ...


class CompoundNetwork(Network):
    """A network of several programs. A part's weights and states begin with the part's name: `encoder1_lstm1_h`."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """Its programs, in the order in which a step needs them first."""

    @property
    @abstractmethod
    def carried(self) -> Mapping[str, int]:
        """The size of each array [1, batch, size] that the loop itself keeps from step to step."""

    @abstractmethod
    def advance(
        self, streams: Mapping[str, Stream], x: np.ndarray, carried: Arrays
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The loop: y [n, batch, width] of x [n, batch, input], and the new `carried`. `streams` keep their states."""

    @property
    def in_program(self) -> bool:
        """Whether the loop is in the program. A backend then builds the compound as one program."""
        return False

    def advance_in_program(self, loop: LoopPrimitives, x: Any, state: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """As `advance`, for a loop in the program: y, and every array of the state by the compound's names.

        Only families whose `in_program` may be true implement it.
        """
        raise TypeError(f"{self.network}: its loop is in the host")

    def state_shapes(self, batch: int) -> dict[str, tuple[int, int, int]]:
        of_parts = {
            f"{part.name}_{name}": shape
            for part in self.parts
            for name, shape in part.network.state_shapes(batch).items()
        }
        return {**of_parts, **{name: (1, batch, size) for name, size in self.carried.items()}}

    @property
    def graph(self) -> tuple[LayerSpec, ...]:
        """The layers of all parts, part by part. The sources of a layer are indices within its own part."""
        return tuple(layer for part in self.parts for layer in part.network.graph)

    def body(self, ops: Primitives[V], weights: Weights, index: int) -> LayerBody[V]:
        for part in self.parts:
            if index < len(part.network.graph):
                return part.network.body(ops, self.weights_of(part, weights), index)
            index -= len(part.network.graph)
        raise IndexError(f"{self.network} has {len(self.graph)} layers")

    def weight_specs(self) -> Iterator[WeightSpec]:
        for part in self.parts:
            for spec in part.network.weight_specs():
                yield spec._replace(name=f"{part.name}_{spec.name}")

    def weights_of(self, part: Part, weights: Weights) -> Weights:
        """The part's own weights."""
        return part.network.as_weights(self.arrays_of(part, weights.arrays))

    def arrays_of(self, part: Part, arrays: Mapping[str, V]) -> dict[str, V]:
        """The part's arrays, by its own names."""
        names = ((name, f"{part.name}_{name}") for name in _array_names(part.network))
        return {own: arrays[name] for own, name in names if name in arrays}


@cache
def _array_names(network: Network) -> tuple[str, ...]:
    """The names of all states and weights of a network."""
    return (*network.state_shapes(1), *(spec.name for spec in network.weight_specs()))


def side_by_side(xp: Any, x: Any, steps: int) -> Any:
    """Join every `steps` steps of x [n·steps, batch, size] into one: [n, batch, steps·size] (time stacking).

    `xp` is the library of x, with NumPy's `reshape` and `swapaxes`.
    """
    total, batch, size = x.shape
    stacked = xp.swapaxes(xp.reshape(x, (total // steps, steps, batch, size)), 1, 2)
    return xp.reshape(stacked, (total // steps, batch, steps * size))


def one_after_the_other(xp: Any, x: Any, steps: int) -> Any:
    """The inverse of `side_by_side`: x [n, batch, steps·size] as [n·steps, batch, size]."""
    number, batch, size = x.shape
    parts = xp.swapaxes(xp.reshape(x, (number, batch, steps, size // steps)), 1, 2)
    return xp.reshape(parts, (number * steps, batch, size // steps))


def joined(parts: Sequence[tuple[Part, Mapping[str, V]]]) -> dict[str, V]:
    """The arrays of all parts by the compound's names."""
    return {f"{part.name}_{name}": array for part, arrays in parts for name, array in arrays.items()}
