"""Layers whose state is linear in itself, h' = a·h + b with a and b of x alone: many of their steps at once.

Two forms replace the loop over steps. `parallel` combines pairs of steps, then pairs of pairs (an associative
scan; Blelloch, 1990; `jax.lax.associative_scan`): as much work as the loop within a factor of 2, in log₂(steps) rounds.
`chunked:k` runs blocks of k steps by products over the block, and a loop only from block to block. Sources are Yang et
al., 2024, "Gated Linear Attention Transformers", section 4, and Dao and Gu, 2024, "Transformers are SSMs", section 6.

Neither form divides by a product of gates, as h = A·cumsum(b/A) does: that overflows float32 as soon as the gates of a
block multiply to less than 1e-38. Nor does either take a logarithm of a state (Heinsen, 2023), which needs b > 0. The
scan multiplies gates in [0, 1], whose product can only underflow to 0, which it nearly is. Blocks sum the logarithms of
gates over each segment separately (`segsum` of Dao and Gu's minimal SSD), without a difference of two long sums. So a
segment after a gate near 0 loses no digits, and no exponent is above 0.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol

import numpy as np

from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V
from rnnbench.rnn.times import FUSED, PARALLEL

Steps = tuple[V, tuple[V, ...]]
"""y [steps·batch, width] and the state after the last step."""


class LinearBody(LayerBody[V], Protocol):
    """A layer whose state is linear in itself."""

    @abstractmethod
    def scanned(self, projected: V, state: tuple[V, ...], steps: int, batch: int) -> Steps[V]:
        """All steps of projected [steps·batch, projected] by an associative scan."""
        ...

    @abstractmethod
    def block(self, projected: V, state: tuple[V, ...], steps: int, batch: int) -> Steps[V]:
        """All steps of projected [steps·batch, projected] by products over the block."""
        ...


class OperatorBody(LinearBody[V], Protocol):
    """A linear layer for which libraries have an operator."""

    @abstractmethod
    def fused(self, projected: V, state: tuple[V, ...], steps: int, batch: int) -> Steps[V]:
        """All steps of projected [steps·batch, projected] by a library's operator."""
        ...


def together(body: LayerBody[V], time: str, projected: V, state: tuple[V, ...], steps: int, batch: int) -> Steps[V]:
    """The steps of projected [steps·batch, projected] at once: those of the call, or of one block of `chunked:k`.

    Only for a linear layer (`LayerSpec.linear`); for time `fused`, only for one with `LayerSpec.has_operator`.
    """
    if time == FUSED:
        whole: OperatorBody[V] = body  # type: ignore[assignment]  # `LayerSpec.has_operator` says so
        return whole.fused(projected, state, steps, batch)
    linear: LinearBody[V] = body  # type: ignore[assignment]  # `LayerSpec.linear` says so
    return (linear.scanned if time == PARALLEL else linear.block)(projected, state, steps, batch)


def scan(ops: MorePrimitives[V], gates: V, drive: V, steps: int, size: int) -> V:
    """h [steps, size] of h[t] = gates[t]·h[t − 1] + drive[t], from h[−1] = 0. Gates and drive are [steps, size].

    If the primitives have a method `linear_scan(gates, drive)`, a library's own scan, it is used instead.
    """
    if steps == 1:
        return drive
    own: Callable[[V, V], V] | None = getattr(ops, "linear_scan", None)
    if own is not None:
        return own(gates, drive)
    return _pairwise_scan(ops, gates, drive, steps, size)


def _pairwise_scan(ops: MorePrimitives[V], gates: V, drive: V, steps: int, size: int) -> V:
    if steps == 1:
        return drive
    half, last = divmod(steps, 2)
    (a_even, a_odd), (b_even, b_odd) = (_pairs(ops, value, steps, size) for value in (gates, drive))
    odd = _pairwise_scan(ops, ops.mul(a_even, a_odd), ops.add(ops.mul(a_odd, b_even), b_odd), half, size)
    first = ops.rows(b_even, 0, 1)
    if half + last == 1:
        return ops.stacked([first, odd])
    # Steps 2, 4, …, each from the odd step before it: those of the pairs, and the last step if the number is odd.
    later = [tuple(ops.rows(value, 1, half) for value in (a_even, b_even))] if half > 1 else []
    if last:
        later.append((ops.rows(gates, steps - 1, steps), ops.rows(drive, steps - 1, steps)))
    a, b = (values[0] if len(values) == 1 else ops.stacked(values) for values in zip(*later, strict=True))
    before = odd if last else ops.rows(odd, 0, half - 1)
    even = ops.stacked([first, ops.add(ops.mul(a, before), b)])
    if not last:
        return _interleaved(ops, even, odd, half, size)
    pairs = _interleaved(ops, ops.rows(even, 0, half), odd, half, size)
    return ops.stacked([pairs, ops.rows(even, half, half + 1)])


def started(ops: MorePrimitives[V], gates: V, drive: V, start: V, steps: int) -> V:
    """The drive of a scan from h[−1] = `start` [1, size] instead of 0: its first row becomes h[0]."""
    first = ops.add(ops.mul(_rows(ops, gates, 0, 1, steps), start), _rows(ops, drive, 0, 1, steps))
    return first if steps == 1 else ops.stacked([first, ops.rows(drive, 1, steps)])


def decays(ops: MorePrimitives[V], log_gates: V, steps: int, dtype: np.dtype[np.generic]) -> V:
    """The factor of each source at each step, [steps, 1 + steps, size], from the logarithms of gates [steps, size].

    Source 0 is the state before the block, and source s is the drive of step s − 1. The factor at step t is the product
    of the gates after the source up to step t; it is 0 for a source after t.
    """
    step, source = np.arange(steps)[:, None], np.arange(steps + 1)
    after = ops.constant((step >= source).astype(dtype))
    segments = ops.cumsum(ops.einsum("rm,rs->rsm", log_gates, after))
    return ops.einsum("tsm,ts->tsm", ops.exp(segments), ops.constant((step + 1 >= source).astype(dtype)))


def last_rows(ops: MorePrimitives[V], x: V, steps: int, batch: int) -> V:
    """The rows of the last step of x [steps·batch, columns]."""
    return _rows(ops, x, (steps - 1) * batch, steps * batch, steps * batch)


def _rows(ops: MorePrimitives[V], x: V, start: int, stop: int, count: int) -> V:
    """x[start:stop] of `count` rows; x itself if these are all rows."""
    return x if stop - start == count else ops.rows(x, start, stop)


def _pairs(ops: MorePrimitives[V], x: V, steps: int, size: int) -> list[V]:
    """The even and the odd steps of x [steps, size], without the last step of an odd number."""
    half = steps // 2
    return ops.split(ops.reshape(_rows(ops, x, 0, 2 * half, steps), half, 2 * size), 2)


def _interleaved(ops: MorePrimitives[V], even: V, odd: V, half: int, size: int) -> V:
    return ops.reshape(ops.concat([even, odd]), 2 * half, size)
