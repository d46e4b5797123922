"""Route eager, authored: a Python loop over the recorded cell, for each layer and direction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from rnnbench.backends.base import OperationStage, Request
from rnnbench.backends.torch.stream import PreparedStream
from rnnbench.backends.torch.tape import Tape, in_place
from rnnbench.rnn.cells import cell_body
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Layer


class Loop:
    """One layer in one direction: the projection of the whole chunk, then the cell, step by step.

    Reads x [steps, batch, input], advances `state` (h, c: [batch, size]) in place, writes y [steps, batch, size].
    """

    def __init__(
        self,
        tape: Tape,
        model: Model,
        layer: Layer,
        x: Tensor,
        state: Sequence[Tensor],
        y: Tensor,
        *,
        backward: bool,
        beyond: Tensor | None,
    ) -> None:
        self.length, batch, _ = x.shape
        body = cell_body(tape, model, layer)
        projected = body.project(x.view(self.length * batch, -1)).view(self.length, batch, -1).unbind()
        self.project = tape.take()
        # A tensor copied to itself is left alone, so a chunk of one step has no copy.
        current = projected[0] if self.length == 1 else torch.zeros_like(projected[0])
        new = body.advance(current, tuple(state))
        self.advance = in_place(tape.take(), state, new)
        self._once = [entry.call() for entry in self.project]
        self._each = [entry.call() for entry in self.advance]
        order = range(self.length - 1, -1, -1) if backward else range(self.length)
        self._steps = [(partial(current.copy_, projected[t]), _stored(y, state, beyond, t)) for t in order]

    def __call__(self) -> None:
        for call in self._once:
            call()
        each = self._each
        for load, store in self._steps:
            load()
            for call in each:
                call()
            for call in store:
                call()


def _stored(y: Tensor, state: Sequence[Tensor], beyond: Tensor | None, t: int) -> tuple[Callable[[], object], ...]:
    """After step t: y is the state; that of rows which have ended, or in a backward loop not begun, is zero."""
    ended = () if beyond is None else tuple(partial(held.masked_fill_, beyond[t], 0.0) for held in state)
    return (*ended, partial(y[t].copy_, state[0]))


class LoopedStream(PreparedStream):
    """A whole model over one chunk, in tensors allocated once: every call writes the same y [chunk, batch, width].

    `constants`: those of another stream of the same request, to share them.
    """

    def __init__(self, request: Request, dtype: torch.dtype, constants: Sequence[Tensor] = ()) -> None:
        model, chunk, batch = request.model, request.strategy.chunk, request.batch
        self._x = torch.zeros(chunk, batch, model.input, dtype=dtype)
        self.state = {name: torch.zeros(shape, dtype=dtype) for name, shape in model.state_shapes(batch).items()}
        self._beyond = torch.zeros(chunk, batch, 1, dtype=torch.bool) if request.ragged else None
        """Which steps of the chunk in `_x` are beyond their row's length."""
        self._loops: list[Loop] = []
        tape = Tape(dtype, constants)
        y = self._x
        for number in range(model.layers):
            x, y = y, torch.zeros(chunk, batch, model.width, dtype=dtype)
            for direction, side in enumerate(y.chunk(model.directions, dim=2)):
                row = number * model.directions + direction
                state = [tensor[row] for tensor in self.state.values()]
                backward = direction == 1 or model.direction == "reverse"
                layer = request.weights.row(row)
                self._loops.append(Loop(tape, model, layer, x, state, side, backward=backward, beyond=self._beyond))
        self._y = y
        self._start = [tensor.zero_ for tensor in self.state.values()] if request.strategy.state == "none" else []
        self.constants = tape.constants

    def write(self, state: Mapping[str, Tensor]) -> None:
        for name, tensor in state.items():
            self.state[name].copy_(tensor)

    def step(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        return self.prepare(x, lengths)().clone()

    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> Callable[[], Tensor]:
        loads: list[Callable[[], object]] = [partial(self._x.copy_, x)]
        if lengths is not None:
            assert self._beyond is not None, "a stream with lengths has room for them"
            beyond = torch.arange(len(x))[:, None] >= lengths
            loads.append(partial(self._beyond.copy_, beyond[..., None]))
        return partial(self._run, loads)

    def _run(self, loads: Sequence[Callable[[], object]]) -> Tensor:
        for load in loads:
            load()
        for call in self._start:
            call()
        for loop in self._loops:
            loop()
        return self._y

    def operations(self) -> dict[OperationStage, dict[str, int]]:
        """Calls into torch by name: those before the loop, and those of one step."""
        once = Counter(entry.name for loop in self._loops for entry in loop.project)
        each = Counter(entry.name for loop in self._loops for entry in loop.advance)
        return {OperationStage.COMPILED: dict(once + each)}

    def lowered(self) -> str:
        return f"looped {len(self._loops)}"

    def listing(self) -> Iterator[str]:
        """Every call with the shapes of its tensors, in order: the program, for its digest."""
        for loop in self._loops:
            yield f"project, then {loop.length} steps"
            yield from map(str, (*loop.project, *loop.advance))
