"""The interface of a kind of layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.network import WeightSpec
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V

Activation = Literal["linear", "relu", "sigmoid", "silu", "tanh"]
Arrays = Mapping[str, np.ndarray]


class LayerCost(NamedTuple):
    """What a layer reads and does, as `LayerSpec` has it."""

    hoistable_weights: int = 0
    """Elements of the weights that its projection reads."""
    step_weights: int = 0
    """Elements of the weights that each step reads."""
    operations: int = 0
    """Arithmetic operations of one step for a batch of 1: a multiply-add is two, an activation one."""


class LayerKind(ABC):
    """A layer with its sizes. Arrays have short names here; a network puts the layer's name before them."""

    if TYPE_CHECKING:

        @property
        def input(self) -> int:
            """Size of its input: a field or a property of each kind."""

        @property
        def width(self) -> int:
            """Size of y: a field or a property of each kind."""

    @property
    def projected(self) -> int:
        """Size of the projection that `LayerBody.project` gives."""
        return self.width

    @property
    def states(self) -> dict[str, int]:
        """The size of each array [batch, size] of its state, by name. A layer that is only its projection has none."""
        return {}

    @property
    def is_linear(self) -> bool:
        """Whether its state is linear in itself: its body is a `LinearBody`."""
        return False

    @property
    def has_operator(self) -> bool:
        """Whether libraries have an operator for all of its steps: its body is an `OperatorBody`."""
        return False

    @property
    @abstractmethod
    def cost(self) -> LayerCost:
        """What the layer reads and does."""

    def weight_specs(self) -> Iterator[WeightSpec]:
        """Its weight arrays."""
        return iter(())

    def pinning_rows(self, weights: Arrays, units: np.ndarray) -> np.ndarray | None:
        """The weights [units, input] from x to the gate that keeps the state, 1 where all is kept, in these units.

        None if it has no such gate.
        """
        return None

    @abstractmethod
    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        """Its equations over a backend's primitives."""

    @abstractmethod
    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        """The reference: y [steps, batch, width], and each array of the state after each step [steps, batch, size]."""


class Projection(LayerBody[V]):
    """The body of a layer without a state: y is a function of x."""

    def __init__(self, of_x: Callable[[V], V]) -> None:
        self._of_x = of_x

    def project(self, x: V) -> V:
        return self._of_x(x)

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        return projected, state


def activated(ops: MorePrimitives[V], activation: Activation, x: V) -> V:
    """An activation over primitives."""
    if activation == "linear":
        return x
    if activation == "silu":
        return ops.mul(x, ops.sigmoid(x))
    return {"relu": ops.relu, "sigmoid": ops.sigmoid, "tanh": ops.tanh}[activation](x)


def activated_reference(a: Arithmetic, activation: Activation, x: np.ndarray) -> np.ndarray:
    """An activation in plain NumPy."""
    match activation:
        case "linear":
            return x
        case "relu":
            rectified: np.ndarray = np.maximum(x, 0)
            return rectified
        case "sigmoid":
            return a.activated(1 / (1 + np.exp(-x)))
        case "silu":
            return a(x * activated_reference(a, "sigmoid", x))
        case "tanh":
            return a.activated(np.tanh(x))


ACTIVATION_OPERATIONS: Mapping[Activation, int] = {"linear": 0, "relu": 1, "sigmoid": 1, "silu": 2, "tanh": 1}
"""Operations on each value: an activation counts as one."""
