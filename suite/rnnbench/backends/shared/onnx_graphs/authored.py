"""A layer in one direction written out from the shared cell: copies of it, or a Scan or a Loop over copies.

Its input projection is one product over all steps of the call, outside any loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from rnnbench.backends.base import Request
from rnnbench.backends.shared.onnx_graphs.emitter import Array, Emitter
from rnnbench.backends.shared.onnx_graphs.support import copies
from rnnbench.rnn import GATES, LayerBody, cell_body

LoopOperator = Literal["Scan", "Loop"]
State = Sequence[str]

_BEFORE_ALL = -(2**31)
"""The end of a slice that takes everything backwards."""


class AuthoredLayer:
    """`emit` takes x [chunk·batch, input] and h (and c), [batch, size], to y [chunk·batch, output] and the state."""

    def __init__(self, e: Emitter, request: Request, row: int, operator: LoopOperator) -> None:
        model = request.stack
        self._e = e
        self._request = request
        self._row = row
        self._backward = model.direction == "reverse" or row % model.directions == 1
        self._copies = copies(request.strategy)
        self._passes = request.strategy.chunk // self._copies
        self._operator = operator

    def emit(self, x: str, state: State) -> tuple[str, State]:
        e, model, batch = self._e, self._request.stack, self._request.batch
        body = self._body(e)
        projected = body.project(x)
        if self._request.strategy.time == "unrolled":
            return self._steps(e, body, projected, state)
        width = GATES[model.cell] * model.hidden or model.input
        passes = e.reshape(projected, self._passes, self._copies * batch, width)
        emit = self._scan if self._operator == "Scan" else self._loop
        *final, y = emit(passes, state, width)
        return e.reshape(y, self._request.strategy.chunk * batch, model.output), final

    def _body(self, e: Emitter) -> LayerBody[str]:
        return cell_body(e, self._request.stack, self._request.weights.row(self._row))

    def _steps(self, e: Emitter, body: LayerBody[str], projected: str, state: State) -> tuple[str, State]:
        """Copies of the cell over `projected` [copies·batch, gates·hidden], in the order of this direction."""
        rows = e.rows(projected, self._copies)
        outputs = []
        for x in reversed(rows) if self._backward else rows:
            with e.copy():
                _, state = body.advance(x, tuple(state))
            outputs.append(state[0])
        return e.stacked(outputs[::-1] if self._backward else outputs), state

    def _scan(self, passes: str, state: State, width: int) -> list[str]:
        inner = self._e.inner()
        x = inner.array("slice", self._copies * self._request.batch, width)
        carried, results = self._pass(inner, x.name)
        direction = [int(self._backward)]
        return self._e.node(
            "Scan",
            [*state, passes],
            len(results),
            body=inner.graph("pass", [*carried, x], results),
            num_scan_inputs=1,
            scan_input_directions=direction,
            scan_output_directions=direction,
        )

    def _loop(self, passes: str, state: State, width: int) -> list[str]:
        """A Loop stacks its outputs in the order of its passes, so the outputs of a backward loop are reversed."""
        e, inner = self._e, self._e.inner()
        number = Array(inner.fresh("number"), (), np.dtype(np.int64))
        proceed = Array(inner.fresh("proceed"), (), np.dtype(np.bool_))
        last = inner.constant(np.array(self._passes - 1))
        index = inner.one("Sub", last, number.name) if self._backward else number.name
        carried, results = self._pass(inner, inner.one("Gather", passes, index, axis=0))
        proceeds = Array(inner.one("Identity", proceed.name), (), proceed.dtype)
        body = inner.graph("pass", [number, proceed, *carried], [proceeds, *results])
        count, always = e.constant(np.array(self._passes)), e.constant(np.array(True))
        *final, y = e.node("Loop", [count, always, *state], len(results), body=body)
        if self._backward:
            y = e.one("Slice", y, e.integers(-1), e.integers(_BEFORE_ALL), e.integers(0), e.integers(-1))
        return [*final, y]

    def _pass(self, inner: Emitter, x: str) -> tuple[list[Array], list[Array]]:
        """A loop's body on x [copies·batch, gates·hidden]: the state that comes in; the state and y that go out."""
        batch = self._request.batch
        sizes = [size for _, _, size in self._request.model.state_shapes(batch).values()]
        carried = [inner.array("state", batch, size) for size in sizes]
        y, final = self._steps(inner, self._body(inner), x, [array.name for array in carried])
        # An output of a graph is one array: y is a copy of h where a pass has one step.
        outputs = [*final, inner.one("Identity", y) if y == final[0] else y]
        shapes = [(batch, size) for size in sizes] + [(self._copies * batch, sizes[0])]
        return carried, [Array(name, shape, inner.dtype) for name, shape in zip(outputs, shapes, strict=True)]
