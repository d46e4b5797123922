"""Gated linear attention: its state forgets by a gate of each key, which depends on x alone.

Yang et al., 2024 ("Gated Linear Attention Transformers with Hardware-Efficient Training"), section 4.4, and
`fla/layers/gla.py` of fla-org/flash-linear-attention: q = W_q·x/√keys, k = W_k·x, v = W_v·x,
α = σ(W_α2·W_α1·x + b_α)^(1/16), S' = diag(α)·S + kᵀ·v, y = q·S'. A block of steps has the scores
Σₙ q[t]·k[s]·Π α, which is the paper's form for the blocks on the diagonal (section 4.3): in float32 q·Πα and k/Πα
overflow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import Arrays, LayerCost
from rnnbench.rnn.layers.outer_state import OuterState, OuterStateBody, ReferenceTerms, Terms
from rnnbench.rnn.network import WeightSpec
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V

RANK = 16
"""The rank of the gates' projection."""
TEMPERATURE = 16
"""The root of the sigmoid that a gate is."""


@dataclass(frozen=True)
class GatedLinearAttention(OuterState):
    """y is q·S' of all heads, before the norm."""

    input: int
    heads: int
    keys: int
    values: int
    key_letters: ClassVar[str] = "hn"
    gate_letters: ClassVar[str] = "hn"

    @property
    def projected(self) -> int:
        return 3 * self.size("hn") + self.width

    @property
    def cost(self) -> LayerCost:
        keys, rows = self.size("hn"), self._rows
        weights = rows * self.input + keys * (RANK + 1)
        operations = 2 * rows * self.input + 2 * keys * RANK + 4 * keys + self.state_operations
        return LayerCost(hoistable_weights=weights, operations=operations)

    def weight_specs(self) -> Iterator[WeightSpec]:
        """weight: the rows of q, k, v and of the first projection of the gates. Uniform in ±1/√input."""
        bound = 1 / math.sqrt(self.input)
        yield WeightSpec("weight", (self._rows, self.input), bound)
        yield WeightSpec("gate_weight", (self.size("hn"), RANK), 1 / math.sqrt(RANK))
        yield WeightSpec("gate_bias", (self.size("hn"),), 1 / math.sqrt(RANK))

    def pinning_rows(self, weights: Arrays, units: np.ndarray) -> np.ndarray:
        """The rows that pin the gates' sigmoid."""
        rows: np.ndarray = weights["gate_weight"][units % self.size("hn")] @ weights["weight"][-RANK:]
        return rows

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return _Body(ops, self, weights)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        keys = self.size("hn")
        q, k, v, low = np.split(a.product(weights["weight"])(x), [keys, 2 * keys, 2 * keys + self.width], axis=2)
        logits = a.affine(weights["gate_weight"], weights["gate_bias"])(low)
        log_gates = a(a.activated(-np.logaddexp(0, -logits)) / TEMPERATURE)
        terms = ReferenceTerms(a(q / math.sqrt(self.keys)), k, v, a.activated(np.exp(log_gates)))
        return self.recurrence(a, terms, state)

    @property
    def _rows(self) -> int:
        return 2 * self.size("hn") + self.width + RANK


class _Body(OuterStateBody[V]):
    def __init__(self, ops: MorePrimitives[V], kind: GatedLinearAttention, weights: Arrays) -> None:
        dtype = weights["weight"].dtype
        super().__init__(ops, kind, dtype)
        keys = kind.size("hn")
        self.weight = ops.constant(weights["weight"].T)
        self.gate_weight = ops.constant(weights["gate_weight"].T)
        self.gate_bias = ops.constant(weights["gate_bias"])
        self.scale = ops.constant(np.full(keys, 1 / math.sqrt(kind.keys), dtype))
        self.root = ops.constant(np.full(keys, 1 / TEMPERATURE, dtype))

    def project(self, x: V) -> V:
        ops, keys, width = self.ops, self.kind.size("hn"), self.kind.width
        product = ops.matmul(x, self.weight)
        low = ops.columns(product, 2 * keys + width, 2 * keys + width + RANK)
        logits = ops.add(ops.matmul(low, self.gate_weight), self.gate_bias)
        q = ops.mul(ops.columns(product, 0, keys), self.scale)
        rest = ops.columns(product, keys, 2 * keys + width)
        return ops.concat([q, rest, ops.mul(ops.log_sigmoid(logits), self.root)])

    def terms(self, projected: V) -> Terms[V]:
        keys, width = self.kind.size("hn"), self.kind.width
        ends = (0, keys, 2 * keys, 2 * keys + width, 3 * keys + width)
        q, k, v, log_gates = (self.ops.columns(projected, *ends[i : i + 2]) for i in range(4))
        return Terms(q, k, v, log_gates)

    def scores(self, q: V, k: V, within: V) -> V:
        return self.ops.einsum("tsbhn,sbhn->tsbh", self.ops.einsum("tsbhn,tbhn->tsbhn", within, q), k)
