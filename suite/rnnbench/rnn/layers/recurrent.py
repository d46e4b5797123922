"""A layer of a stack of cells as a layer of another network: its equations and reference are those of `rnn.Model`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.layers.base import Arrays, LayerCost, LayerKind
from rnnbench.rnn.network import WeightSpec
from rnnbench.rnn.primitives import LayerBody, MorePrimitives, V
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Weights

_SECOND_BIAS = "bias_hh_l0"


@dataclass(frozen=True)
class Recurrent(LayerKind):
    """An LSTM, GRU or RNN of one layer that runs forward."""

    model: Model
    single_bias: bool = False
    """Whether an LSTM or RNN has one bias vector, as in Keras. PyTorch has two, and adds them."""

    @property
    def input(self) -> int:
        return self.model.input

    @property
    def width(self) -> int:
        return self.model.width

    @property
    def projected(self) -> int:
        return self.model.graph[0].projected

    @property
    def states(self) -> dict[str, int]:
        return {name: size for name, (_, _, size) in self.model.state_shapes(1).items()}

    @property
    def cost(self) -> LayerCost:
        (layer,) = self.model.graph
        return LayerCost(layer.hoistable_weights, layer.step_weights, layer.operations)

    def weight_specs(self) -> Iterator[WeightSpec]:
        """PyTorch's arrays, without the number of the layer: `weight_ih`, `weight_hh`, …"""
        for name, shape, bound in self.model.weight_specs():
            if not (self.single_bias and name == _SECOND_BIAS):
                yield WeightSpec(name.removesuffix("_l0"), shape, bound)

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return self.model.body(ops, self._weights(weights), 0)

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        rows = {name: array[None] for name, array in state.items()}
        run = self.model.run(a, self._weights(weights), x, rows)
        assert run.states is not None, "it runs forward"
        return run.y, {name: array[:, 0] for name, array in run.states.items()}

    def _weights(self, weights: Arrays) -> Weights:
        arrays = {f"{name}_l0": array for name, array in weights.items()}
        if self.single_bias:
            arrays[_SECOND_BIAS] = np.zeros_like(weights["bias_ih"])
        return self.model.as_weights(arrays)
