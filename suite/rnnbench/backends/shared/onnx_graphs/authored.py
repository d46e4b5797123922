"""A layer in one direction written out from its body: copies of it, or a Scan or a Loop over copies.

Its input projection is done for all steps of the call at once, outside any loop. A layer without state is nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from rnnbench.backends.base import Request
from rnnbench.backends.shared.onnx_graphs.emitter import Array, Emitter
from rnnbench.backends.shared.onnx_graphs.support import copies
from rnnbench.rnn import FUSED, LayerBody, runs_together, together

LoopOperator = Literal["Scan", "Loop"]
State = Sequence[str]

_BEFORE_ALL = -(2**31)
"""The end of a slice that takes everything backwards."""


class AuthoredLayer:
    """`emit` takes x [chunk·batch, input] and the layer's state, [batch, size] each, to y [chunk·batch, width] and the
    state after the call."""

    def __init__(self, e: Emitter, request: Request, index: int, operator: LoopOperator) -> None:
        self._e = e
        self._request = request
        self._index = index
        self._layer = request.model.graph[index]
        self._copies = copies(request.strategy)
        self._passes = request.strategy.chunk // self._copies
        self._operator = operator

    def emit(self, x: str, state: State) -> tuple[str, State]:
        e, batch, layer = self._e, self._request.batch, self._layer
        body = self._body(e)
        projected = body.project(x)
        if not layer.states:
            return projected, ()
        if self._request.strategy.time == FUSED:
            return together(body, FUSED, projected, tuple(state), self._request.strategy.chunk, batch)
        if self._request.strategy.copies is None or (self._passes == 1 and runs_together(self._request.strategy.time)):
            return self._steps(e, body, projected, state)
        passes = e.reshape(projected, self._passes, self._copies * batch, layer.projected)
        emit = self._scan if self._operator == "Scan" else self._loop
        *final, y = emit(passes, state)
        return e.reshape(y, self._request.strategy.chunk * batch, layer.width), final

    def _body(self, e: Emitter) -> LayerBody[str]:
        return self._request.model.body(e, self._request.weights, self._index)

    def _steps(self, e: Emitter, body: LayerBody[str], projected: str, state: State) -> tuple[str, State]:
        """Copies of the body over `projected` [copies·batch, projected], in this direction's order; or one block."""
        time = self._request.strategy.time
        if runs_together(time):
            with e.copy():
                return together(body, time, projected, tuple(state), self._copies, self._request.batch)
        rows = e.row_parts(projected, self._copies)
        outputs = []
        for x in reversed(rows) if self._layer.backward else rows:
            with e.copy():
                y, state = body.advance(x, tuple(state))
            outputs.append(y)
        return e.stacked(outputs[::-1] if self._layer.backward else outputs), state

    def _scan(self, passes: str, state: State) -> list[str]:
        inner = self._e.inner()
        x = inner.array("slice", self._copies * self._request.batch, self._layer.projected)
        carried, results = self._pass(inner, x.name, [x])
        direction = [int(self._layer.backward)]
        return self._e.node(
            "Scan",
            [*state, passes],
            len(results),
            body=inner.graph("pass", [*carried, x], results),
            num_scan_inputs=1,
            scan_input_directions=direction,
            scan_output_directions=direction,
        )

    def _loop(self, passes: str, state: State) -> list[str]:
        """A Loop stacks its outputs in the order of its passes, so the outputs of a backward loop are reversed."""
        e, inner = self._e, self._e.inner()
        number = Array(inner.fresh("number"), (), np.dtype(np.int64))
        proceed = Array(inner.fresh("proceed"), (), np.dtype(np.bool_))
        last = inner.constant(np.array(self._passes - 1))
        index = inner.one("Sub", last, number.name) if self._layer.backward else number.name
        carried, results = self._pass(inner, inner.one("Gather", passes, index, axis=0))
        proceeds = Array(inner.one("Identity", proceed.name), (), proceed.dtype)
        body = inner.graph("pass", [number, proceed, *carried], [proceeds, *results])
        count, always = e.constant(np.array(self._passes)), e.constant(np.array(True))
        *final, y = e.node("Loop", [count, always, *state], len(results), body=body)
        if self._layer.backward:
            y = e.one("Slice", y, e.integers(-1), e.integers(_BEFORE_ALL), e.integers(0), e.integers(-1))
        return [*final, y]

    def _pass(self, inner: Emitter, x: str, inputs: Sequence[Array] = ()) -> tuple[list[Array], list[Array]]:
        """A loop's body on x [copies·batch, projected]: the state that comes in; the state and y that go out.

        `inputs` are the other inputs of the inner graph.
        """
        batch, sizes = self._request.batch, self._request.model.state_shapes(1)
        shapes = [(batch, sizes[name][2]) for name, _ in self._layer.states]
        carried = [inner.array("state", *shape) for shape in shapes]
        y, final = self._steps(inner, self._body(inner), x, [array.name for array in carried])
        outputs = inner.distinct([*final, y], [*carried, *inputs])
        shapes.append((self._copies * batch, self._layer.width))
        return carried, [Array(name, shape, inner.dtype) for name, shape in zip(outputs, shapes, strict=True)]
