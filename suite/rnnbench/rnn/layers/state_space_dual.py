"""Mamba-2's state space layer (SSD): a state that forgets by one gate a head, which the step's size Δ decides.

Dao and Gu, 2024 ("Transformers are SSMs"), and `mamba_ssm/modules/mamba2.py` of state-spaces/mamba with one group:
Δ = softplus(dt + dt_bias), A = −exp(A_log), S' = exp(Δ·A)·S + Bᵀ·(Δ·x), y = C·S' + D·x. A block of steps is section 6
of the paper: (C·Bᵀ ∘ L)·Δx, where L has the products of the gates between two steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import Arrays, LayerCost
from rnnbench.rnn.layers.outer_state import OuterState, OuterStateBody, ReferenceTerms, Terms
from rnnbench.rnn.network import WeightSpec
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V


@dataclass(frozen=True)
class StateSpaceDual(OuterState):
    """Reads x of all heads, B, C and dt side by side. B and C are of all heads alike."""

    heads: int
    keys: int
    """Size of B and C: the paper's N."""
    values: int
    key_letters: ClassVar[str] = "n"
    gate_letters: ClassVar[str] = "h"

    @property
    def input(self) -> int:
        return self.width + 2 * self.keys + self.heads

    @property
    def projected(self) -> int:
        """C, B, Δ·x, Δ·A and D·x."""
        return 2 * self.keys + 2 * self.width + self.heads

    @property
    def cost(self) -> LayerCost:
        operations = 4 * self.heads + 3 * self.width + self.state_operations
        return LayerCost(hoistable_weights=3 * self.heads, operations=operations)

    def weight_specs(self) -> Iterator[WeightSpec]:
        """For each head: A_log and dt_bias uniform in ±1.5, which makes slow gates and fast ones, and D in ±1."""
        yield WeightSpec("A_log", (self.heads,), 1.5)
        yield WeightSpec("dt_bias", (self.heads,), 1.5)
        yield WeightSpec("D", (self.heads,), 1.0)

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return _Body(ops, self, weights)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        x, b, c, dt = np.split(x, np.cumsum([self.width, self.keys, self.keys]), axis=2)
        dt = a.activated(np.logaddexp(0, a(dt + a.cast(weights["dt_bias"]))))
        rate = a.cast(-np.exp(a.cast(weights["A_log"])))
        gates = a.activated(np.exp(a(dt * rate)))
        terms = ReferenceTerms(c, b, a(np.repeat(dt, self.values, axis=2) * x), gates)
        y, states = self.recurrence(a, terms, state)
        return a(y + a(np.repeat(a.cast(weights["D"]), self.values) * x)), states


class _Body(OuterStateBody[V]):
    def __init__(self, ops: MorePrimitives[V], kind: StateSpaceDual, weights: Arrays) -> None:
        dtype = weights["D"].dtype
        super().__init__(ops, kind, dtype)
        self.dt_bias = ops.constant(weights["dt_bias"])
        self.minus_one = ops.constant(np.full(kind.heads, -1, dtype))
        # log σ(−dt) is −Δ, so its product with exp(A_log) is Δ·A.
        self.rate = ops.constant(np.exp(weights["A_log"]))
        self.skip = ops.constant(np.repeat(weights["D"], kind.values))

    def project(self, x: V) -> V:
        ops, kind = self.ops, self.kind
        ends = list(accumulate((0, kind.width, kind.keys, kind.keys, kind.heads)))
        value, b, c, dt = (ops.columns(x, *ends[i : i + 2]) for i in range(4))
        minus_dt = ops.log_sigmoid(ops.mul(ops.add(dt, self.dt_bias), self.minus_one))
        by_head = ops.reshape(value, -1, *kind.shape("hp"))
        sized = ops.einsum("rhp,rh->rhp", by_head, ops.mul(minus_dt, self.minus_one))
        return ops.concat(
            [c, b, ops.reshape(sized, -1, kind.width), ops.mul(minus_dt, self.rate), ops.mul(value, self.skip)]
        )

    def terms(self, projected: V) -> Terms[V]:
        kind = self.kind
        ends = list(accumulate((0, kind.keys, kind.keys, kind.width, kind.heads)))
        q, k, v, log_gates = (self.ops.columns(projected, *ends[i : i + 2]) for i in range(4))
        return Terms(q, k, v, log_gates)

    def finished(self, y: V, projected: V) -> V:
        kind = self.kind
        skip = self.ops.columns(projected, kind.projected - kind.width, kind.projected)
        return self.ops.add(y, skip)

    def scores(self, q: V, k: V, within: V) -> V:
        return self.ops.einsum("tsb,tsbh->tsbh", self.ops.einsum("tbn,sbn->tsb", q, k), within)
