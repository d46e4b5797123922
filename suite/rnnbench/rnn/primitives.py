"""The primitives that a backend implements for its values: an SSA name, a Relax expression, a NumPy array.

Cells and layers are written once over them. A backend that authors programs gets every network from here, looped and
unrolled, and decides how to loop, keep state and compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from rnnbench.rnn.quantised import Range

V = TypeVar("V")

# Primitives of `MorePrimitives` by what needs them. An adapter declares those that its routes have (`Probe.authors`).

LINEAR_PRIMITIVES = frozenset({"cumsum", "einsum", "exp", "log_sigmoid", "reshape", "rows", "stacked"})
"""Only layers whose state is linear in itself need these."""
LAYER_PRIMITIVES = LINEAR_PRIMITIVES | {"columns", "concat", "div", "mean", "sqrt"}
"""With these a route has every layer. `while`, the loop around the parts of a compound network, is apart."""
LIBRARY_OPERATORS = frozenset({"causal_convolution", "linear_attention"})
"""Operators of a library for all steps of a layer. Time `fused` needs them."""


class Primitives(Protocol[V]):
    """The operations of a backend. Values are [rows, columns]; constants are [columns] or [rows, columns]."""

    def constant(self, array: np.ndarray) -> V: ...
    def matmul(self, x: V, weight: V) -> V:
        """x [rows, k] by weight [k, n], giving [rows, n]."""
        ...

    def add(self, a: V, b: V) -> V:
        """b has a's shape, or is a constant [columns] for every row. The same holds for `mul`."""
        ...

    def sub(self, a: V, b: V) -> V: ...
    def mul(self, a: V, b: V) -> V: ...
    def sigmoid(self, x: V) -> V: ...
    def tanh(self, x: V) -> V: ...
    def relu(self, x: V) -> V: ...
    def clip(self, x: V, bound: float) -> V: ...
    def split(self, x: V, parts: int) -> list[V]:
        """Equal parts along the columns."""
        ...


class QuantisingPrimitives(Primitives[V], Protocol[V]):
    """The additional primitive for products of static 8-bit operands (`int8_static`)."""

    def quantised(self, x: V, operand: Range) -> V:
        """The nearest values of the range's 8 bits. Beyond its ends x saturates."""
        ...


class MorePrimitives(Primitives[V], Protocol[V]):
    """Operations that stacks of cells do not need. An adapter names those that its route has (`Probe.authors`)."""

    def concat(self, parts: Sequence[V]) -> V:
        """Values with equally many rows, side by side along the columns."""
        ...

    def columns(self, x: V, start: int, stop: int) -> V:
        """The columns from `start` up to `stop`."""
        ...

    def div(self, a: V, b: V) -> V:
        """b has a's shape."""
        ...

    def sqrt(self, x: V) -> V: ...
    def mean(self, x: V) -> V:
        """The mean of each row, in all of its columns: x's shape."""
        ...

    # For many steps at once (`linear.py`). Values may have any rank; operands of `add` and `mul` have the same shape.

    def exp(self, x: V) -> V: ...
    def log_sigmoid(self, x: V) -> V:
        """log σ(x) = −log(1 + e⁻ˣ), finite for every finite x."""
        ...

    def cumsum(self, x: V) -> V:
        """Each row of the first axis added to all rows before it."""
        ...

    def rows(self, x: V, start: int, stop: int) -> V:
        """x[start:stop] along the first axis."""
        ...

    def stacked(self, parts: Sequence[V]) -> V:
        """Values one after the other along the first axis."""
        ...

    def reshape(self, x: V, *shape: int) -> V:
        """The same elements in the same order. One size may be −1, which stands for the rest."""
        ...

    def einsum(self, equation: str, a: V, b: V) -> V:
        """`numpy.einsum` of two values. A value has each letter once. A letter that the output lacks is in both values.
        `Contraction` has the parts of an equation."""
        ...

    # A library's operators, which compute all steps of a layer, for time `fused`.

    def linear_attention(
        self, terms: tuple[V, V, V, V], state: V, sizes: AttentionSizes, steps: int, batch: int
    ) -> tuple[V, V]:
        """S' = exp(g)·S + kᵀ·v and y = q·S' of each head, for q, k, v, g in `terms`: y and the state after the call.

        q, k [steps·batch, heads·keys]; v, y [steps·batch, heads·values]; g has the columns of k, or one a head. The
        state is [batch, heads·keys·values].
        """
        ...

    def causal_convolution(self, x: V, ring: V, kernel: CausalKernel, steps: int, batch: int) -> tuple[V, V]:
        """A convolution over time of each channel of x [steps·batch, channels]: y, as x, and the ring after the call.

        The ring is the steps before the call side by side, the oldest first: [batch, (taps − 1)·channels].
        """
        ...


class WithOperators:
    """The primitives that are Python's own operators and slices, for frameworks whose arrays have them."""

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def sub(self, a: Any, b: Any) -> Any:
        return a - b

    def mul(self, a: Any, b: Any) -> Any:
        return a * b

    def div(self, a: Any, b: Any) -> Any:
        return a / b

    def columns(self, x: Any, start: int, stop: int) -> Any:
        return x[:, start:stop]

    def rows(self, x: Any, start: int, stop: int) -> Any:
        return x[start:stop]


@runtime_checkable
class ConvolvingPrimitives(Protocol[V]):
    """The additional primitive of a route whose runtime calls a kernel for each operation: one convolution instead of a
    product, and the slices that it reads, for each frequency."""

    def convolution(self, x: V, weight: np.ndarray, bias: np.ndarray, frequencies: int) -> V:
        """A `valid` convolution over taps and frequencies of x [rows, taps·frequencies·channels], over all of the taps.

        weight [filters, channels, taps, span], bias [filters]; y [rows, (frequencies − span + 1)·filters].
        """
        ...


class WindowSizes(NamedTuple):
    """The sizes of `WindowPrimitives.windows`: of x, and of the kernel of a convolution over it."""

    taps: int
    frequencies: int
    channels: int
    span: int

    @property
    def places(self) -> int:
        return self.frequencies - self.span + 1

    @property
    def seen(self) -> int:
        """Values of x that one y sees."""
        return self.taps * self.span * self.channels


@runtime_checkable
class WindowPrimitives(Protocol[V]):
    """The additional primitive of a route that computes such a convolution best as one product."""

    def windows(self, x: V, sizes: WindowSizes) -> V:
        """What the kernel sees at each place, one below the other: [rows·places, taps·span·channels].

        x [rows, taps·frequencies·channels].
        """
        ...


@runtime_checkable
class FramePrimitives(Protocol):
    """The primitives of a route that computes the frames of x best as one product of all of them."""

    joins_frames: bool


@runtime_checkable
class SummingPrimitives(Protocol[V]):
    """The additional primitive of a route whose runtime calls a kernel for each operation: one sum of many parts."""

    def sum_of_parts(self, x: V, parts: int) -> V:
        """The sum of equal parts along the columns: x [rows, parts·n], y [rows, n]."""
        ...


class AttentionSizes(NamedTuple):
    """The sizes of `MorePrimitives.linear_attention`."""

    heads: int
    keys: int
    values: int


@dataclass(frozen=True, eq=False)
class CausalKernel:
    """The kernel of `MorePrimitives.causal_convolution`."""

    weight: np.ndarray
    """[channels, taps], the current step last."""
    bias: np.ndarray
    """[channels]"""
    silu: bool
    """Whether SiLU is applied to the sum."""


class LayerBody(Protocol[V]):
    """One layer in one direction. Its constants are made in its constructor, outside any loop."""

    def project(self, x: V) -> V:
        """The part that does not depend on the state: x [rows, input] to [rows, projected]. Rows may be steps·batch."""
        ...

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        """y and the next state from one step's projection [batch, projected]. Not called for a layer without state."""
        ...
