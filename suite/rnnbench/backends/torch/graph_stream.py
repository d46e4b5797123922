"""A stream whose calls are recorded once and replayed (`launch: graph`), over the stream of any route."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from rnnbench.backends.base import Request
from rnnbench.backends.torch.cuda import Record
from rnnbench.backends.torch.network import zero_input
from rnnbench.backends.torch.stream import Opener, PreparedStream, Stream


class Recordable(Protocol):
    """A stream whose prepared calls can be recorded. Its `write` keeps the tensors that it gets, or copies them."""

    @property
    def state(self) -> Mapping[str, Tensor]: ...
    def write(self, state: Mapping[str, Tensor]) -> None: ...
    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> Callable[[], Tensor]: ...


def recorded(request: Request, open_stream: Callable[[], Stream], recorder: Callable[[], Record]) -> Opener:
    """Opens streams that replay the calls of those that `open_stream` opens. Each has a recorder of its own."""

    def open_recorded() -> GraphStream:
        stream: Any = open_stream()  # `Recordable`, as those of every route for rows of one length are
        return GraphStream(stream, recorder(), zero_input(request))

    return open_recorded


class ReplayedCall(NamedTuple):
    replay: Callable[[], object]
    y: Tensor
    after: Mapping[str, Tensor]
    """The tensors that have the state after a replay."""
    prepared: Callable[[], Tensor]
    """What was recorded. It keeps x alive: a replay reads its memory."""


class GraphStream(PreparedStream):
    """A replay reads x and the state where they were at the recording.

    A state that the recorded stream changes in place is there already. A stitched one is in the results of the last
    call. It is copied to the place from which the recorded call reads it, as every caller of a graph with arguments
    must do.
    """

    def __init__(self, stream: Recordable, record: Record, x: Tensor) -> None:
        """`x` [chunk, batch, input] is the place of x for public calls."""
        self._stream = stream
        self._record = record
        self._given = dict(stream.state)
        self._places = list(self._given.values())
        self.state: Mapping[str, Tensor] = self._given
        self._x = x
        self._public = self._recorded(x)

    def write(self, state: Mapping[str, Tensor]) -> None:
        for name, tensor in self._given.items():
            tensor.copy_(state[name])
        self.state = self._given

    def step(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        self._x.copy_(x)
        return self._replay(self._public).clone()

    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> Callable[[], Tensor]:
        return partial(self._replay, self._recorded(x))

    def _recorded(self, x: Tensor) -> ReplayedCall:
        """A recording of the call with this x. The calls that it takes leave the state as it was."""
        before = {name: tensor.clone() for name, tensor in self.state.items()}
        prepared = self._stream.prepare(x)

        def call() -> Tensor:
            self._stream.write(self._given)
            return prepared()

        recorded = self._record(call)
        after = dict(self._stream.state)
        if all(after[name] is tensor for name, tensor in self._given.items()):
            after = self._given
        self.write(before)
        return ReplayedCall(*recorded, after, prepared)

    def _replay(self, call: ReplayedCall) -> Tensor:
        if self.state is not self._given:
            torch._foreach_copy_(self._places, list(self.state.values()))
        call.replay()
        self.state = call.after
        return call.y
