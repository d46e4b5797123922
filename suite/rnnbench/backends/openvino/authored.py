"""A layer in one direction, made of its body in OpenVINO's opset: copies of it, a block, or a TensorIterator over them.

The input projection is done for all steps of the call at once, outside any loop. A layer without state is nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import openvino as ov
import openvino.opset13 as opset

from rnnbench.backends.base import Request
from rnnbench.backends.openvino.nodes import Nodes, Value
from rnnbench.backends.shared.onnx_graphs import copies
from rnnbench.rnn import LayerBody, runs_together, together

State = Sequence[Value]


class AuthoredLayer:
    """`emit` maps x [chunk·batch, input] and the layer's state, [batch, size] each, to y [chunk·batch, width] and the
    state after the call."""

    def __init__(self, nodes: Nodes, request: Request, index: int) -> None:
        self._nodes = nodes
        self._request = request
        self._index = index
        self._layer = request.model.graph[index]
        self._copies = copies(request.strategy)

    def emit(self, x: Value, state: State) -> tuple[Value, State]:
        body = self._body()
        projected = body.project(x)
        if not self._layer.states:
            return projected, ()
        time = self._request.strategy.time
        if time == "unrolled" or (runs_together(time) and self._copies == self._request.strategy.chunk):
            return self._steps(body, projected, state)
        return self._iterated(projected, state)

    def _body(self) -> LayerBody[Value]:
        return self._request.model.body(self._nodes, self._request.weights, self._index)

    def _steps(self, body: LayerBody[Value], projected: Value, state: State) -> tuple[Value, State]:
        """Copies of the body over `projected` [copies·batch, projected], in this direction's order; or one block."""
        time = self._request.strategy.time
        if runs_together(time):
            with self._nodes.copy():
                return together(body, time, projected, tuple(state), self._copies, self._request.batch)
        rows = self._nodes.row_parts(projected, self._copies)
        outputs = []
        for x in reversed(rows) if self._layer.backward else rows:
            with self._nodes.copy():
                y, state = body.advance(x, tuple(state))
            outputs.append(y)
        return self._nodes.joined(outputs[::-1] if self._layer.backward else outputs), state

    def _iterated(self, projected: Value, state: State) -> tuple[Value, State]:
        """Each pass reads copies·batch rows of the projection and writes as many of y; backward, from the end."""
        nodes, rows = self._nodes, self._copies * self._request.batch
        slice_ = nodes.parameter([rows, projected.get_shape()[1]])
        carried = [nodes.parameter(value.get_shape()) for value in state]
        # A body cannot read values from outside, so it has constants of its own.
        y, final = self._steps(self._body(), slice_.output(0), [parameter.output(0) for parameter in carried])
        results = [nodes.named(opset.result(value)) for value in (*final, y)]
        loop = nodes.named(opset.tensor_iterator())
        loop.set_body(ov.Model(results, [slice_, *carried], "pass"))
        slices = (-1, -rows, rows, 0, 0) if self._layer.backward else (0, rows, rows, -1, 0)
        loop.set_sliced_input(slice_, projected, *slices)
        for parameter, value, result in zip(carried, state, results, strict=False):
            loop.set_merged_input(parameter, value, result.output(0))
        last = [loop.get_iter_value(result.output(0), -1) for result in results[:-1]]
        return loop.get_concatenated_slices(results[-1].output(0), *slices), last
