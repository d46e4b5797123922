"""What gated linear attention and Mamba-2's SSD have in common: a matrix a head as state, S' = g·S + kᵀ·v, y = q·S'.

g is a gate in (0, 1] for each head, or for each row of S, given by its logarithm. Letters of equations: t and s are
steps, b is the batch, h heads, n rows of S (keys), p columns of S (values).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import Arrays, LayerKind
from rnnbench.rnn.linear import OperatorBody, Steps, decays, scan, started
from rnnbench.rnn.primitives import AttentionSizes, MorePrimitives, V


class OuterState(LayerKind):
    """`heads` matrices of `keys` by `values`; y has the values of all heads side by side."""

    heads: int
    keys: int
    values: int
    key_letters: ClassVar[str]
    """Axes of k and q: `hn`, or `n` if heads share them."""
    gate_letters: ClassVar[str]
    """Axes of the gates: `hn`, or `h`."""

    @property
    def width(self) -> int:
        return self.heads * self.values

    @property
    def states(self) -> dict[str, int]:
        """S of every head, [keys, values] each."""
        return {"s": self.heads * self.keys * self.values}

    @property
    def is_linear(self) -> bool:
        return True

    @property
    def has_operator(self) -> bool:
        """ONNX's LinearAttention, with the update rule `gated`."""
        return True

    @property
    def state_operations(self) -> int:
        """Operations of a step on the state: two products and a sum for S, a multiply-add for y."""
        return 5 * self.heads * self.keys * self.values

    def size(self, letters: str) -> int:
        """Elements of a value with these axes."""
        return math.prod(self.shape(letters))

    def shape(self, letters: str) -> tuple[int, ...]:
        return tuple({"h": self.heads, "n": self.keys, "p": self.values}[letter] for letter in letters)

    def recurrence(self, a: Arithmetic, terms: ReferenceTerms, state: Arrays) -> tuple[np.ndarray, Arrays]:
        """The reference: y [steps, batch, width], and S after each step."""
        s, outputs, states = state["s"], [], []
        whole = (-1, *self.shape("hnp"))
        to_state = {"h": (-1, self.heads, 1, 1), "hn": (-1, self.heads, self.keys, 1), "n": (-1, 1, self.keys, 1)}
        for q, k, v, gate in zip(terms.q, terms.k, terms.v, terms.gates, strict=True):
            kept = gate.reshape(to_state[self.gate_letters]) * s.reshape(whole)
            added = k.reshape(to_state[self.key_letters]) * v.reshape(-1, self.heads, 1, self.values)
            s = a(a(kept.reshape(s.shape)) + a(added.reshape(s.shape)))
            products = q.reshape(to_state[self.key_letters]) * s.reshape(whole)
            outputs.append(np.concatenate([self._summed(own, products[rows]) for rows, own in a.by_rows(len(v))]))
            states.append(s)
        return np.stack(outputs), {"s": np.stack(states)}

    def _summed(self, a: Arithmetic, products: np.ndarray) -> np.ndarray:
        """Products [batch, heads, keys, values] summed over the keys: [batch, width]."""
        total, squares = (terms.sum(2).reshape(len(products), -1) for terms in (products, np.square(products)))
        return a.summed(total, lambda: squares, self.keys)


@dataclass(frozen=True)
class ReferenceTerms:
    """q, k, v and gates of all steps, [steps, batch, size] each."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    gates: np.ndarray


@dataclass(frozen=True)
class Terms(Generic[V]):
    """q, k, v and gates over primitives, [rows, size] each. The gates are logarithms, which are 0 or less."""

    q: V
    k: V
    v: V
    log_gates: V


class OuterStateBody(OperatorBody[V]):
    """A step, all steps by a scan, and a block of steps by products of matrices."""

    def __init__(self, ops: MorePrimitives[V], kind: OuterState, dtype: np.dtype[np.generic]) -> None:
        self.ops = ops
        self.kind = kind
        self.dtype = dtype

    @abstractmethod
    def terms(self, projected: V) -> Terms[V]:
        """The parts of a projection [rows, projected]."""

    def finished(self, y: V, projected: V) -> V:
        """y [rows, width], with what the projection adds to it."""
        return y

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        ops, kind, terms = self.ops, self.kind, self.terms(projected)
        q, k, v, gates = self._shaped(terms, -1)
        s = ops.reshape(state[0], -1, *kind.shape("hnp"))
        kept = ops.einsum(f"bhnp,b{kind.gate_letters}->bhnp", s, ops.exp(gates))
        s = ops.add(kept, ops.einsum(f"b{kind.key_letters},bhp->bhnp", k, v))
        y = ops.einsum(f"b{kind.key_letters},bhnp->bhp", q, s)
        y = self.finished(ops.reshape(y, -1, kind.width), projected)
        return y, (ops.reshape(s, -1, kind.size("hnp")),)

    def scanned(self, projected: V, state: tuple[V, ...], steps: int, batch: int) -> Steps[V]:
        ops, kind, terms = self.ops, self.kind, self.terms(projected)
        q, k, v, log_gates = self._shaped(terms, steps, batch)
        size, others = batch * kind.size("hnp"), "".join(letter for letter in "hnp" if letter not in kind.gate_letters)
        ones = ops.constant(np.ones(kind.shape(others), self.dtype))
        gates = ops.einsum(f"tb{kind.gate_letters},{others}->tbhnp", ops.exp(log_gates), ones)
        drive = ops.einsum(f"tb{kind.key_letters},tbhp->tbhnp", k, v)
        gates, drive = (ops.reshape(value, steps, size) for value in (gates, drive))
        drive = started(ops, gates, drive, ops.reshape(state[0], 1, size), steps)
        every = scan(ops, gates, drive, steps, size)
        s = ops.reshape(every, steps, batch, *kind.shape("hnp"))
        y = ops.einsum(f"tb{kind.key_letters},tbhnp->tbhp", q, s)
        y = self.finished(ops.reshape(y, steps * batch, kind.width), projected)
        last = every if steps == 1 else ops.rows(every, steps - 1, steps)
        return y, (ops.reshape(last, batch, kind.size("hnp")),)

    def block(self, projected: V, state: tuple[V, ...], steps: int, batch: int) -> Steps[V]:
        """y of a block: products between its steps, and what is left of the state before it."""
        ops, kind, terms = self.ops, self.kind, self.terms(projected)
        q, k, v, _ = self._shaped(terms, steps, batch)
        of_gates = (batch, *kind.shape(kind.gate_letters))
        size = math.prod(of_gates)
        left = ops.reshape(
            decays(ops, ops.reshape(terms.log_gates, steps, size), steps, self.dtype), steps, (1 + steps) * size
        )
        of_state = ops.columns(left, 0, size)
        between = ops.columns(left, size, (1 + steps) * size)
        within = ops.reshape(between, steps, steps, *of_gates)
        to_end, of_state_at_end = between, of_state
        if steps > 1:
            to_end, of_state_at_end = (ops.rows(value, steps - 1, steps) for value in (between, of_state))
        k_at_end = self._scaled(k, ops.reshape(to_end, steps, *of_gates))
        s = ops.reshape(state[0], batch, *kind.shape("hnp"))
        from_state = ops.einsum("tbhn,bhnp->tbhp", self._scaled(q, ops.reshape(of_state, steps, *of_gates)), s)
        y = ops.add(ops.einsum("tsbh,sbhp->tbhp", self.scores(q, k, within), v), from_state)
        kept = ops.einsum(f"bhnp,b{kind.gate_letters}->bhnp", s, ops.reshape(of_state_at_end, *of_gates))
        s = ops.add(kept, ops.einsum("sbhn,sbhp->bhnp", k_at_end, v))
        y = self.finished(ops.reshape(y, steps * batch, kind.width), projected)
        return y, (ops.reshape(s, batch, kind.size("hnp")),)

    def fused(self, projected: V, state: tuple[V, ...], steps: int, batch: int) -> Steps[V]:
        """The operator has q and k for each head, so shared ones are repeated."""
        ops, kind, terms = self.ops, self.kind, self.terms(projected)
        q, k = (value if "h" in kind.key_letters else ops.concat([value] * kind.heads) for value in (terms.q, terms.k))
        sizes = AttentionSizes(kind.heads, kind.keys, kind.values)
        y, s = ops.linear_attention((q, k, terms.v, terms.log_gates), state[0], sizes, steps, batch)
        return self.finished(y, projected), (s,)

    @abstractmethod
    def scores(self, q: V, k: V, within: V) -> V:
        """q·k of each pair of steps with the gates between them, [t, s, b, h]; `within` is [t, s, b, gates]."""

    def _scaled(self, value: V, gates: V) -> V:
        """k or q [t, b, …] of each step by gates of the step: [t, b, h, n]."""
        return self.ops.einsum(f"tb{self.kind.key_letters},tb{self.kind.gate_letters}->tbhn", value, gates)

    def _shaped(self, terms: Terms[V], *rows: int) -> tuple[V, V, V, V]:
        """q, k, v and the gates with an axis for each letter, after axes of these sizes."""
        kind, reshape = self.kind, self.ops.reshape
        keys, gates = kind.shape(kind.key_letters), kind.shape(kind.gate_letters)
        return (
            reshape(terms.q, *rows, *keys),
            reshape(terms.k, *rows, *keys),
            reshape(terms.v, *rows, *kind.shape("hp")),
            reshape(terms.log_gates, *rows, *gates),
        )
