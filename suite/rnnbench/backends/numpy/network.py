"""A whole model over one chunk, in arrays allocated once: a Python loop for each layer and direction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from rnnbench.backends.base import OperationStage, Request
from rnnbench.backends.numpy.recorder import Call, Recorder
from rnnbench.rnn import Layer, Model, Weights, cell_body


class Loop:
    """One layer in one direction: the projection of the whole chunk, then the cell, step by step.

    Reads x [steps, batch, input], advances `state` (h, c: [batch, size]) in place, writes y [steps, batch, size].
    """

    def __init__(
        self,
        recorder: Recorder,
        model: Model,
        layer: Layer,
        x: np.ndarray,
        state: tuple[np.ndarray, ...],
        y: np.ndarray,
        *,
        backward: bool,
        beyond: np.ndarray | None,
    ) -> None:
        steps, batch, _ = x.shape
        body = cell_body(recorder, model, layer)
        projected = body.project(x.reshape(steps * batch, -1)).reshape(steps, batch, -1)
        self.project = recorder.take()
        current = np.zeros_like(projected[0])
        after = body.advance(current, state)
        self.advance = recorder.take() + [
            partial(np.copyto, array, new) for array, new in zip(state, after, strict=True)
        ]
        order = range(steps - 1, -1, -1) if backward else range(steps)
        self.steps = [(partial(np.copyto, current, projected[t]), self._stored(y, state, beyond, t)) for t in order]

    @staticmethod
    def _stored(y: np.ndarray, state: tuple[np.ndarray, ...], beyond: np.ndarray | None, t: int) -> tuple[Call, ...]:
        """The calls after step t. They set the state to zero in rows that step t is beyond, and copy h to y."""
        ended = () if beyond is None else tuple(partial(np.copyto, array, 0, where=beyond[t]) for array in state)
        return (*ended, partial(np.copyto, y[t], state[0]))

    def __call__(self) -> None:
        for call in self.project:
            call()
        advance = self.advance
        for load, store in self.steps:
            load()
            for call in advance:
                call()
            for call in store:
                call()


class Network:
    """A call runs the chunk in `x` from `state`, which it advances, and writes `y`; state `none` starts from zeros."""

    @np.errstate(over="ignore")  # The sigmoid's exponential may overflow in the pass that records.
    def __init__(self, request: Request, weights: Weights, dtype: np.dtype[np.generic]) -> None:
        model, chunk, batch = request.model, request.strategy.chunk, request.batch
        self.x = np.zeros((chunk, batch, model.input), dtype)
        self.state = {name: np.zeros(shape, dtype) for name, shape in model.state_shapes(batch).items()}
        self.beyond = np.zeros((chunk, batch, 1), np.bool_) if request.ragged else None
        """Which steps of the chunk in `x` are beyond their row's length, [chunk, batch, 1]."""
        self.loops: list[Loop] = []
        recorder = Recorder(dtype)
        self.y = self.x
        for number in range(model.layers):
            layer_x, self.y = self.y, np.zeros((chunk, batch, model.width), dtype)
            for direction, side in enumerate(np.split(self.y, model.directions, axis=2)):
                row = number * model.directions + direction
                state = tuple(array[row] for array in self.state.values())
                backward = direction == 1 or model.direction == "reverse"
                self.loops.append(
                    Loop(recorder, model, weights.row(row), layer_x, state, side, backward=backward, beyond=self.beyond)
                )
        self._start: list[Call] = []
        if request.strategy.state == "none":
            self._start = [partial(array.fill, 0) for array in self.state.values()]

    def __call__(self) -> None:
        for call in self._start:
            call()
        for loop in self.loops:
            loop()

    def operations(self) -> dict[OperationStage, dict[str, int]]:
        """NumPy calls by name: those before the loop and those of one step, added up."""
        before = [*self._start, *(call for loop in self.loops for call in loop.project)]
        step = [call for loop in self.loops for call in (*loop.advance, loop.steps[0][0], *loop.steps[0][1])]
        return {OperationStage.COMPILED: _counted([*before, *step])}

    def listing(self) -> Iterator[str]:
        """Every call with the shapes of its arrays, in order: the text of the program, for its digest."""
        for call in self._start:
            yield _line(call)
        for loop in self.loops:
            yield f"project, then {len(loop.steps)} steps"
            for call in (*loop.project, *loop.advance, loop.steps[0][0], *loop.steps[0][1]):
                yield _line(call)


def _counted(calls: Iterable[Call]) -> dict[str, int]:
    return dict(sorted(Counter(call.func.__name__ for call in calls).items()))


def _line(call: Call) -> str:
    return f"{call.func.__name__} {[getattr(operand, 'shape', ()) for operand in call.args]}"
