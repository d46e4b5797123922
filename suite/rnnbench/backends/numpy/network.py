"""A whole network over one chunk, in arrays allocated once: a Python loop for each layer that has a state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from rnnbench.backends.base import OperationStage, Request
from rnnbench.backends.numpy.recorder import Call, Recorder
from rnnbench.backends.shared import describe_lowered
from rnnbench.cases import Strategy
from rnnbench.rnn import LayerBody, LayerSpec, Weights, X, runs_together, state_by_layer, together


class LayerArrays(NamedTuple):
    """What a layer reads and writes."""

    x: np.ndarray
    """[steps, batch, input]"""
    state: tuple[np.ndarray, ...]
    """[batch, size] each; none for a layer that is its projection."""
    y: np.ndarray
    """[steps, batch, width]"""
    beyond: np.ndarray | None
    """Which steps are beyond their row's length, [steps, batch, 1]."""


class LayerCalls:
    """One layer in one direction: the projection of the whole chunk, then the body: `size` steps a pass.

    Reads x, advances the state in place, writes y. A layer without state is its projection alone.
    """

    def __init__(
        self,
        recorder: Recorder,
        body: LayerBody[np.ndarray],
        arrays: LayerArrays,
        *,
        backward: bool,
        strategy: Strategy,
    ) -> None:
        x, state, y, beyond = arrays
        time, size = strategy.time, strategy.copies or strategy.chunk
        steps, batch, _ = x.shape
        passes = steps // size
        projected = body.project(x.reshape(steps * batch, -1)).reshape(passes, size * batch, -1)
        self.project = recorder.take()
        self.advance: list[Call] = []
        self.passes: list[tuple[Call, tuple[Call, ...]]] = []
        """What each pass begins and ends with: loading its part of the projection, and storing its y."""
        if not state:
            self.project.append(partial(np.copyto, y, projected.reshape(steps, batch, -1)))
            return
        whole = runs_together(time) and passes == 1
        current = projected[0] if whole else np.zeros_like(projected[0])
        if runs_together(time):
            output, after = together(body, time, current, state, size, batch)
            output, y = recorder.reshape(output, size, batch, -1), y.reshape(passes, size, batch, -1)
        else:
            output, after = body.advance(current, state)
        self.advance, kept = _in_place(recorder.take(), state, after, output)
        if whole:
            self.project += [*self.advance, partial(np.copyto, y[0], kept)]
            self.advance = []
            return
        order = range(passes - 1, -1, -1) if backward else range(passes)
        self.passes = [
            (partial(np.copyto, current, projected[t]), _after_step(t, state, beyond, partial(np.copyto, y[t], kept)))
            for t in order
        ]

    def __call__(self) -> None:
        for call in self.project:
            call()
        advance = self.advance
        for load, store in self.passes:
            load()
            for call in advance:
                call()
            for call in store:
                call()


def _in_place(
    calls: list[Call], state: tuple[np.ndarray, ...], after: tuple[np.ndarray, ...], output: np.ndarray
) -> tuple[list[Call], np.ndarray]:
    """The calls of a pass with those that store the state after it in `state`, and where its y can be read then.

    A y that is a part of the state is read from there, since the state of a row that has ended is zero. What is a part
    of the state before the pass is copied before it is overwritten.
    """
    values = [output, *after]
    for place, value in enumerate(values):
        if any(np.may_share_memory(value, old) for old in state):
            values[place] = value.copy()
            calls = [*calls, partial(np.copyto, values[place], value)]
    output, *new_state = values
    stores = [partial(np.copyto, array, new) for array, new in zip(state, new_state, strict=True)]
    kept = next((array for array, new in zip(state, new_state, strict=True) if new is output), output)
    return calls + stores, kept


def _after_step(t: int, state: tuple[np.ndarray, ...], beyond: np.ndarray | None, store: Call) -> tuple[Call, ...]:
    """The calls after step t. They set the state to zero in rows that step t is beyond, and store y."""
    ended = () if beyond is None else tuple(partial(np.copyto, array, 0, where=beyond[t]) for array in state)
    return (*ended, store)


class Joints:
    """Where layers write their y: what a layer reads from several others is one array, and they write its parts."""

    def __init__(self, graph: Sequence[LayerSpec], outputs: tuple[int, ...], x: np.ndarray) -> None:
        self._x = x
        self._outputs: dict[int, np.ndarray] = {}
        self._joined: dict[tuple[int, ...], np.ndarray] = {}
        widths = {X: x.shape[2], **{index: layer.width for index, layer in enumerate(graph)}}
        empty = partial(np.zeros, dtype=x.dtype)
        for sources in (*(layer.sources for layer in graph), outputs):
            if len(sources) > 1 and sources not in self._joined:
                ends = np.cumsum([widths[source] for source in sources])
                self._joined[sources] = empty((*x.shape[:2], int(ends[-1])))
                for source, part in zip(sources, np.split(self._joined[sources], ends[:-1], axis=2), strict=True):
                    if source != X:
                        self._outputs.setdefault(source, part)
        for index in range(len(graph)):
            self._outputs.setdefault(index, empty((*x.shape[:2], widths[index])))

    def y(self, index: int) -> np.ndarray:
        """The y of a layer, [steps, batch, width]."""
        return self._outputs[index]

    def read(self, sources: tuple[int, ...]) -> tuple[np.ndarray, list[Call]]:
        """The sources side by side, contiguous, and the calls that copy what no layer writes there."""
        values = [self._x if source == X else self._outputs[source] for source in sources]
        if len(values) == 1 and values[0].flags.c_contiguous:
            return values[0], []
        whole = self._joined[sources] if len(values) > 1 else np.zeros_like(values[0], order="C")
        parts = np.split(whole, np.cumsum([value.shape[2] for value in values])[:-1], axis=2)
        pairs = zip(parts, values, strict=True)
        return whole, [partial(np.copyto, part, value) for part, value in pairs if not np.shares_memory(part, value)]


class Network:
    """A call runs the chunk in `x` from `state`, which it advances, and writes `y`; state `none` starts from zeros."""

    @np.errstate(over="ignore")  # The sigmoid's exponential may overflow in the pass that records.
    def __init__(self, request: Request, weights: Weights, dtype: np.dtype[np.generic]) -> None:
        network, batch, chunk = request.model, request.batch, request.strategy.chunk
        self.x = np.zeros((chunk, batch, network.input), dtype)
        self.state = {name: np.zeros(shape, dtype) for name, shape in network.state_shapes(batch).items()}
        self.beyond = np.zeros((chunk, batch, 1), np.bool_) if request.ragged else None
        """Which steps of the chunk in `x` are beyond their row's length, [chunk, batch, 1]."""
        self._time = request.strategy.time
        self._with_state = sum(bool(layer.states) for layer in network.graph)
        self.layers: list[LayerCalls] = []
        recorder, joints = Recorder(dtype), Joints(network.graph, network.outputs, self.x)
        states = state_by_layer(network, {name: list(rows) for name, rows in self.state.items()})
        for index, layer in enumerate(network.graph):
            body = network.body(recorder, weights, index)
            x, copies = joints.read(layer.sources)
            calls = LayerCalls(
                recorder,
                body,
                LayerArrays(x, states[index], joints.y(index), self.beyond),
                backward=layer.backward,
                strategy=request.strategy,
            )
            calls.project[:0] = copies
            self.layers.append(calls)
        self.y, self._end = joints.read(network.outputs)
        self._start: list[Call] = []
        if request.strategy.state == "none":
            self._start = [partial(array.fill, 0) for array in self.state.values()]

    def __call__(self) -> None:
        for call in self._start:
            call()
        for layer in self.layers:
            layer()
        for call in self._end:
            call()

    def lowered(self) -> str:
        """As `Artifact.lowered` has it: the steps of a layer with a state are a loop, or one scan or block."""
        loops = sum(bool(layer.passes) for layer in self.layers)
        return describe_lowered([1] * loops, self._with_state - loops, time=self._time)

    def operations(self) -> dict[OperationStage, dict[str, int]]:
        """NumPy calls by name: those before the loop and those of one pass, added up."""
        before = [*self._start, *(call for layer in self.layers for call in layer.project), *self._end]
        return {OperationStage.COMPILED: _counted([*before, *(call for layer in self.layers for call in _step(layer))])}

    def listing(self) -> Iterator[str]:
        """Every call with the shapes of its arrays, in order: the text of the program, for its digest."""
        for call in self._start:
            yield _line(call)
        for layer in self.layers:
            yield f"project, then {len(layer.passes)} passes"
            for call in (*layer.project, *_step(layer)):
                yield _line(call)
        for call in self._end:
            yield _line(call)


def _step(layer: LayerCalls) -> list[Call]:
    """The calls of one pass."""
    return [*layer.advance, layer.passes[0][0], *layer.passes[0][1]] if layer.passes else []


def _counted(calls: Iterable[Call]) -> dict[str, int]:
    return dict(sorted(Counter(call.func.__name__ for call in calls).items()))


def _line(call: Call) -> str:
    return f"{call.func.__name__} {[getattr(operand, 'shape', ()) for operand in call.args]}"
