"""Route eager, authored: a Python loop over the recorded calls of a layer's body, for each layer with a state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from rnnbench.backends.base import OperationStage, Request
from rnnbench.backends.shared import describe_lowered
from rnnbench.backends.torch.device import device_of
from rnnbench.backends.torch.recorder import RecordedCall, Recorder, in_place, overlap
from rnnbench.backends.torch.stream import PreparedStream
from rnnbench.cases import Strategy
from rnnbench.rnn import LayerBody, run_graph, runs_together, state_by_layer, together


class Loop:
    """One layer in one direction: the projection of the whole chunk, then the body, `size` steps a pass.

    Reads x [steps, batch, input], advances `state` ([batch, size] each) in place, writes `y` [steps, batch, width]. A
    layer without state is its projection alone.
    """

    def __init__(
        self,
        recorder: Recorder,
        body: LayerBody[Tensor],
        x: Tensor,
        state: Sequence[Tensor],
        *,
        backward: bool,
        padding: Tensor | None,
        strategy: Strategy,
    ) -> None:
        time, size = strategy.time, strategy.copies or strategy.chunk
        steps, batch, _ = x.shape
        self.length = steps // size
        flat = body.project(x.view(steps * batch, -1))
        self.project = recorder.take()
        self._projection_calls = [recorded.call() for recorded in self.project]
        self.advance: list[RecordedCall] = []
        self._step_calls: list[Callable[[], object]] = []
        self._steps: list[tuple[Callable[[], object], tuple[Callable[[], object], ...]]] = []
        if not state:
            self.y = flat.view(steps, batch, -1)
            return
        if runs_together(time) and self.length == 1:
            calls, output = _pass(recorder, body, time, flat, state, steps, batch)
            self.project += calls
            self._projection_calls += [recorded.call() for recorded in calls]
            self.y, copies = _apart_from_state(output.view(steps, batch, -1), state)
            self._projection_calls += copies
            return
        projected = flat.view(self.length, size * batch, -1).unbind()
        # torch skips the copy of a tensor to itself, so a chunk of one step has no copy.
        current = projected[0] if self.length == 1 else torch.zeros_like(projected[0])
        self.advance, output = _pass(recorder, body, time, current, state, size, batch)
        self._step_calls = [recorded.call() for recorded in self.advance]
        y = torch.zeros(self.length, *output.shape, dtype=output.dtype, device=output.device)
        self.y = y.view(steps, batch, -1)
        order = range(self.length - 1, -1, -1) if backward else range(self.length)
        self._steps = [(partial(current.copy_, projected[t]), _stores(y, output, state, padding, t)) for t in order]

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


def _pass(
    recorder: Recorder,
    body: LayerBody[Tensor],
    time: str,
    projected: Tensor,
    state: Sequence[Tensor],
    steps: int,
    batch: int,
) -> tuple[list[RecordedCall], Tensor]:
    """The calls of a pass of so many steps, which advance `state` in place, and the tensor that then has its y."""
    if runs_together(time):
        output, new = together(body, time, projected, tuple(state), steps, batch)
    else:
        output, new = body.advance(projected, tuple(state))
    return in_place(recorder.take(), state, new, output)


def _apart_from_state(y: Tensor, state: Sequence[Tensor]) -> tuple[Tensor, list[Callable[[], object]]]:
    """Where y stays when the state is reset, and the calls that copy it there: none where y is no part of the state."""
    if not any(overlap(y, tensor) for tensor in state):
        return y, []
    copy = torch.empty_like(y)
    return copy, [partial(copy.copy_, y)]


def _stores(
    y: Tensor, output: Tensor, state: Sequence[Tensor], padding: Tensor | None, t: int
) -> tuple[Callable[[], object], ...]:
    """The calls after step t: set the state of rows to zero where t is padding, and copy the step's output to y."""
    zeroings = () if padding is None else tuple(partial(tensor.masked_fill_, padding[t], 0.0) for tensor in state)
    return (*zeroings, partial(y[t].copy_, output))


class LoopedStream(PreparedStream):
    """A network over one chunk, in tensors that are allocated once. Every call writes the same y [chunk, batch, width].

    `constants` are those of another stream of the same request, which share them.
    """

    def __init__(self, request: Request, dtype: torch.dtype, constants: Sequence[Tensor] = ()) -> None:
        network, chunk, batch = request.model, request.strategy.chunk, request.batch
        device = device_of(request)
        zeros = partial(torch.zeros, device=device)
        self._x = zeros(chunk, batch, network.input, dtype=dtype)
        self.state = {name: zeros(shape, dtype=dtype) for name, shape in network.state_shapes(batch).items()}
        self._padding = zeros(chunk, batch, 1, dtype=torch.bool) if request.ragged else None
        """True for steps of the chunk in `_x` that are padding: beyond their row's length."""
        self._loops: list[Loop] = []
        self._time = request.strategy.time
        self._with_state = sum(bool(layer.states) for layer in network.graph)
        recorder = Recorder(dtype, device, constants)
        states = state_by_layer(network, {name: tensor.unbind() for name, tensor in self.state.items()})

        def run(index: int, x: Tensor) -> Tensor:
            body, backward = network.body(recorder, request.weights, index), network.graph[index].backward
            loop = Loop(
                recorder,
                body,
                x,
                states[index],
                backward=backward,
                padding=self._padding,
                strategy=request.strategy,
            )
            self._loops.append(loop)
            return loop.y

        self._y = run_graph(network, self._x, run, recorder.join)
        self._end = recorder.take()
        self._end_calls = [recorded.call() for recorded in self._end]
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
            padding = (torch.arange(len(x))[:, None] >= lengths).to(self._padding.device)
            loads.append(partial(self._padding.copy_, padding[..., None]))
        return partial(self._run, loads)

    def _run(self, loads: Sequence[Callable[[], object]]) -> Tensor:
        for load in loads:
            load()
        for call in self._start:
            call()
        for loop in self._loops:
            loop()
        for end in self._end_calls:
            end()
        return self._y

    def _outside(self) -> Iterator[RecordedCall]:
        """The calls outside loops."""
        for loop in self._loops:
            yield from loop.project
        yield from self._end

    def operations(self) -> dict[OperationStage, dict[str, int]]:
        """Calls into torch by name: those outside loops, and those of one step."""
        projection = Counter(recorded.name for recorded in self._outside())
        step = Counter(recorded.name for loop in self._loops for recorded in loop.advance)
        return {OperationStage.COMPILED: dict(projection + step)}

    def lowered(self) -> str:
        loops = sum(bool(loop.advance) for loop in self._loops)
        return describe_lowered([1] * loops, self._with_state - loops, time=self._time)

    def listing(self) -> Iterator[str]:
        """Every call with the shapes of its tensors, in order. The digest of the program is made from it."""
        for loop in self._loops:
            yield f"project, then {loop.length if loop.advance else 0} passes"
            yield from map(str, (*loop.project, *loop.advance))
        yield from map(str, self._end)
