"""Route eager, authored: a Python loop over the recorded calls of the cell, for each layer and direction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from rnnbench.backends.base import OperationStage, Request
from rnnbench.backends.torch.recorder import Recorder, in_place
from rnnbench.backends.torch.stream import PreparedStream
from rnnbench.rnn import Layer, Model, cell_body


class Loop:
    """One layer in one direction: the projection of the whole chunk, then the cell, step by step.

    Reads x [steps, batch, input], advances `state` (h, c: [batch, size]) in place, writes y [steps, batch, size].
    """

    def __init__(
        self,
        recorder: Recorder,
        model: Model,
        layer: Layer,
        x: Tensor,
        state: Sequence[Tensor],
        y: Tensor,
        *,
        backward: bool,
        padding: Tensor | None,
    ) -> None:
        self.length, batch, _ = x.shape
        body = cell_body(recorder, model, layer)
        projected = body.project(x.view(self.length * batch, -1)).view(self.length, batch, -1).unbind()
        self.project = recorder.take()
        # torch skips the copy of a tensor to itself, so a chunk of one step has no copy.
        current = projected[0] if self.length == 1 else torch.zeros_like(projected[0])
        _, new = body.advance(current, tuple(state))
        self.advance = in_place(recorder.take(), state, new)
        self._projection_calls = [recorded.call() for recorded in self.project]
        self._step_calls = [recorded.call() for recorded in self.advance]
        order = range(self.length - 1, -1, -1) if backward else range(self.length)
        self._steps = [(partial(current.copy_, projected[t]), _stores(y, state, padding, t)) for t in order]

    def __call__(self) -> None:
        for call in self._projection_calls:
            call()
        step_calls = self._step_calls
        for load, stores in self._steps:
            load()
            for call in step_calls:
                call()
            for call in stores:
                call()


def _stores(y: Tensor, state: Sequence[Tensor], padding: Tensor | None, t: int) -> tuple[Callable[[], object], ...]:
    """The calls after step t: set the state of rows to zero where t is padding, and copy h to y."""
    zeroings = () if padding is None else tuple(partial(tensor.masked_fill_, padding[t], 0.0) for tensor in state)
    return (*zeroings, partial(y[t].copy_, state[0]))


class LoopedStream(PreparedStream):
    """A model over one chunk, in tensors that are allocated once. Every call writes the same y [chunk, batch, width].

    `constants` are those of another stream of the same request, which share them.
    """

    def __init__(self, request: Request, dtype: torch.dtype, constants: Sequence[Tensor] = ()) -> None:
        model, chunk, batch = request.stack, request.strategy.chunk, request.batch
        self._x = torch.zeros(chunk, batch, model.input, dtype=dtype)
        self.state = {name: torch.zeros(shape, dtype=dtype) for name, shape in model.state_shapes(batch).items()}
        self._padding = torch.zeros(chunk, batch, 1, dtype=torch.bool) if request.ragged else None
        """True for steps of the chunk in `_x` that are padding: beyond their row's length."""
        self._loops: list[Loop] = []
        recorder = Recorder(dtype, constants)
        y = self._x
        for number in range(model.layers):
            x, y = y, torch.zeros(chunk, batch, model.width, dtype=dtype)
            for direction, side in enumerate(y.chunk(model.directions, dim=2)):
                row = number * model.directions + direction
                state = [tensor[row] for tensor in self.state.values()]
                backward = direction == 1 or model.direction == "reverse"
                layer = request.weights.row(row)
                self._loops.append(
                    Loop(recorder, model, layer, x, state, side, backward=backward, padding=self._padding)
                )
        self._y = y
        self._start = [tensor.zero_ for tensor in self.state.values()] if request.strategy.state == "none" else []
        self.constants = recorder.constants

    def write(self, state: Mapping[str, Tensor]) -> None:
        for name, tensor in state.items():
            self.state[name].copy_(tensor)

    def step(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        return self.prepare(x, lengths)().clone()

    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> Callable[[], Tensor]:
        loads: list[Callable[[], object]] = [partial(self._x.copy_, x)]
        if lengths is not None:
            assert self._padding is not None, "a stream with lengths has a padding mask"
            padding = torch.arange(len(x))[:, None] >= lengths
            loads.append(partial(self._padding.copy_, padding[..., None]))
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
        projection = Counter(recorded.name for loop in self._loops for recorded in loop.project)
        step = Counter(recorded.name for loop in self._loops for recorded in loop.advance)
        return {OperationStage.COMPILED: dict(projection + step)}

    def lowered(self) -> str:
        return f"looped {len(self._loops)}"

    def listing(self) -> Iterator[str]:
        """Every call with the shapes of its tensors, in order. The digest of the program is made from it."""
        for loop in self._loops:
            yield f"project, then {loop.length} steps"
            yield from map(str, (*loop.project, *loop.advance))
