"""The last values of the step before, put in front of x: the state is these values. It has no weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import Arrays, LayerCost, LayerKind
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V


@dataclass(frozen=True)
class Context(LayerKind):
    """y: `kept` values of the step before, then x."""

    input: int
    kept: int
    """At most `input`."""

    @property
    def width(self) -> int:
        return self.kept + self.input

    @property
    def projected(self) -> int:
        return self.input

    @property
    def states(self) -> dict[str, int]:
        return {"last": self.kept}

    @property
    def cost(self) -> LayerCost:
        return LayerCost()

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return _Body(ops, self)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        last = x[..., self.input - self.kept :]
        return np.concatenate([np.concatenate([state["last"][None], last[:-1]]), x], axis=2), {"last": last}


class _Body(LayerBody[V]):
    def __init__(self, ops: MorePrimitives[V], kind: Context) -> None:
        self.ops = ops
        self.kind = kind

    def project(self, x: V) -> V:
        return x

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        ops, kind = self.ops, self.kind
        last = ops.columns(projected, kind.input - kind.kept, kind.input)
        return ops.concat([*state, projected]), (last,)
