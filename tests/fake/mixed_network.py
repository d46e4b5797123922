"""A network of layers that differ in everything, for tests of adapters, and what each of its programs must give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np

from rnnbench.backends.base import Backend, Program, Request
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.composed import ComposedNetwork, Placed
from rnnbench.rnn.layers import Dense, LayerCost, LayerKind, Recurrent, TimeConvolution
from rnnbench.rnn.layers.base import Arrays
from rnnbench.rnn.network import Network, Size
from rnnbench.rnn.primitives import LayerBody, MorePrimitives
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_state, draw_weights

V = TypeVar("V")


@dataclass(frozen=True)
class Delay(LayerKind):
    """y is the input of the step before. Its body computes nothing: y is its state, and its next state is its input."""

    input: int

    @property
    def width(self) -> int:
        return self.input

    @property
    def states(self) -> dict[str, int]:
        return {"last": self.input}

    @property
    def cost(self) -> LayerCost:
        return LayerCost()

    def body(self, ops: MorePrimitives[V], weights: Arrays) -> LayerBody[V]:
        return _DelayBody()

    def run(self, a: Arithmetic, weights: Arrays, x: np.ndarray, state: Arrays) -> tuple[np.ndarray, Arrays]:
        return np.concatenate([state["last"][None], x[:-1]]), {"last": x}


class _DelayBody(LayerBody[V]):
    def project(self, x: V) -> V:
        return x

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        return state[0], (projected,)


class Mixed(ComposedNetwork):
    """States of four sizes, one or two a layer; layers that read x beside others; a layer without state; y of two."""

    network: ClassVar[str] = "mixed"
    input: Size = 5
    passes_on: bool = True
    """Whether a layer's next state is its input and its y its state, with no operation between."""

    def compose(self) -> Sequence[Placed]:
        lstm = Model(cell="lstm", input=2 * self.input, hidden=7, projection=4)
        delay = Delay(self.input) if self.passes_on else TimeConvolution(self.input, self.input, 2)
        return [
            Placed("delay", delay),
            Placed("lstm", Recurrent(lstm), ("x", "delay")),
            Placed("conv", TimeConvolution(4, 6, 2, "relu"), ("lstm",)),
            Placed("dense", Dense(10, 3, "sigmoid"), ("conv", "lstm")),
        ]

    def gives(self) -> tuple[str, ...]:
        return ("dense", "delay")


def request_for(network: Network, route: str, strategy: Strategy, batch: int = 2, dtype: str = "float32") -> Request:
    return Request(route, network, draw_weights(network, 1, dtype), strategy, batch, Precision.of(dtype))


def built_and_right(backend: Backend, request: Request, folder: Path, rest: int = 1) -> Program:
    """The program of a request. Asserts that calls of whole chunks, step by step and bound, give what they should.

    A stream also has a `rest`, for which another program is built, unless it is 0.
    """
    network, batch, chunk = request.model, request.batch, request.strategy.chunk
    program = backend.build(request, folder)
    stream = program.open()
    streams = request.strategy.state != "none"
    x = draw_inputs(network, 2 * chunk + rest if streams else chunk, batch, 1)
    state = draw_state(network, batch, 1) if streams else {}
    expected = run_reference(network, request.weights, x, state or None)
    for _ in range(2):
        stream.set_state(state)
        _assert_close(stream.step({"x": x})["y"], expected.y)
        found = stream.get_state()
        assert list(found) == list(state)
        for name, array in found.items():
            _assert_close(array, expected.final[name])
    stream.set_state(state)
    bound = stream.bind([{"x": x[:chunk]}])
    bound()
    _assert_close(bound.output()["y"], expected.y[:chunk])
    stream.close()
    return program


def _assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
