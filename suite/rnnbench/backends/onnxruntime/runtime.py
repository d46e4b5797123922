"""Streams through ONNX Runtime: every array has its place and is bound once. A call is one `run_with_iobinding`.

The state has two sets of buffers. One binding reads the first set and writes the second, another binding does the
reverse. A session alternates between them, so no call copies a state. The runtime does not promise that one buffer can
be both input and output. On a device the runtime waits for the work before it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, cycle
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.backends.base import Arrays, Artifact, Bound, Program, ProgramFiles, Request, Session
from rnnbench.backends.onnxruntime.buffers import Buffer, buffer
from rnnbench.backends.onnxruntime.options import loaded, loaded_in_stream
from rnnbench.backends.onnxruntime.places import GRAPH, NOT_SYNCHRONISED, Places, Ring, run_options
from rnnbench.backends.onnxruntime.recording import in_turn
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession, SynchronousBound
from rnnbench.backends.shared.onnx_graphs import row_names
from rnnbench.cases import STREAM

HOST = "cpu"
LENGTHS = "lengths"


class OnnxRuntimeProgram(ChunkedProgram):
    def __init__(
        self, request: Request, artifact: Artifact, path: Path, cached: bool, build_tail: Callable[[], Program]
    ) -> None:
        super().__init__(request, artifact, cached, build_tail)
        self.files = ProgramFiles((path,))
        self.runtime = loaded(path, request)
        self.in_turn = in_turn(request)
        self.graphs = None if request.strategy.launch == STREAM else count(1)
        self._shapes = {array.name: array.shape for array in (*self.runtime.get_inputs(), *self.runtime.get_outputs())}
        self._left: list[Places] = []

    def open(self) -> Session:
        return OnnxRuntimeSession(self)

    def close(self) -> None:
        super().close()
        self._left.clear()
        del self.runtime

    def placed(self, name: str, array: np.ndarray) -> Buffer:
        """A buffer for the array of this name, in the shapes of the graph's inputs or outputs, on the program's device.

        Lengths of rows are on the host on every device: the operators read them there.
        """
        device = HOST if name == LENGTHS else self.request.device
        names = [name] if name in self._shapes else row_names(name, len(array))
        return buffer(array, {each: tuple(self._shapes[each]) for each in names}, device, self.in_turn)

    def places(self, make: Callable[[], Places]) -> Places:
        """For a new stream: what a closed one left, or new ones."""
        with suppress(IndexError):
            places = self._left.pop()
            places.begin_again()
            return places
        return make()

    def take_back(self, places: Places) -> None:
        """The places of a stream that is closed. Without graphs they end with it."""
        if self.graphs is not None:
            self._left.append(places)

    def options(self) -> Any:
        """The options of a new binding's calls. A graph has the places of its arrays, so each binding has its own."""
        return None if self.graphs is None else run_options({GRAPH: str(next(self.graphs))})

    def queued_options(self) -> Any:
        """The same of calls that do not wait for their work."""
        number = {} if self.graphs is None else {GRAPH: str(next(self.graphs))}
        return run_options({NOT_SYNCHRONISED: "1", **number})


class OnnxRuntimeSession(ChunkedSession):
    _program: OnnxRuntimeProgram

    def __init__(self, program: OnnxRuntimeProgram) -> None:
        super().__init__(program)
        self.turn = 0
        self.run = program.runtime.run_with_iobinding if program.graphs is None else self._run_graph
        self._runtime = program.runtime
        self._in_turn = program.in_turn
        self._places: Places | None = program.places(self._new_places)
        x = np.zeros(self._whole, self._dtype)
        lengths = {} if self._lengths is None else {LENGTHS: np.ones(self._whole[1], self._lengths.dtype)}
        ((self._own,), self._output, (self._bindings,)) = self.ring([{"x": x, **lengths}])
        self._input = self._own["x"]

    def ring(self, chunks: list[dict[str, np.ndarray]]) -> Ring:
        """The places of these chunks."""
        return self.places.ring(self._runtime, chunks, self._program.options)

    @property
    def places(self) -> Places:
        assert self._places is not None, "the session is closed"
        return self._places

    def close(self) -> None:
        super().close()
        if self._places is not None:
            self._program.take_back(self._places)
            self._places = None

    @contextmanager
    def queue_in(self, stream: int, ring: Ring) -> Iterator[Callable[[Any, int], None]]:
        """A function that queues a call in a stream of the device, with one of the ring's bindings and a turn.

        The runtime's session ends with the body of `with`. Its last call waits for the stream, and nobody reads what it
        computes: it frees the pinned buffers that the calls before it left. A session that ends with such buffers frees
        them in a callback of the stream, and then their allocator, which CUDA forbids there: the process would end.
        With graphs the provider frees them without a callback.

        Raises UnmeasuredError.
        """
        runtime = loaded_in_stream(self._program.files.program[0], self._program.request, stream)
        copies = list(self.places.bindings(runtime, ring.inputs, ring.y, self._program.queued_options))
        of_binding = {id(by_turns): copy for by_turns, copy in zip(ring.bindings, copies, strict=True)}

        def queue(by_turns: Any, turn: int) -> None:
            with self._in_turn:
                runtime.run_with_iobinding(*of_binding[id(by_turns)][turn])

        try:
            yield queue
        finally:
            if self._program.graphs is None:
                binding, _ = copies[0][self.turn]
                runtime.run_with_iobinding(binding)

    def _new_places(self) -> Places:
        y = np.zeros((*self._whole[:2], self._program.request.model.width), self._dtype)
        return Places(self._program.placed, {s.name: np.zeros(self._shape(s), s.dtype) for s in self._states}, y)

    def _run_graph(self, binding_and_options: tuple[Any, Any]) -> None:
        with self._in_turn:
            self._runtime.run_with_iobinding(*binding_and_options)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        self._input.write(x)
        turn = self.turn
        self.run(self._bindings[turn])
        self.turn = 1 - turn
        return self._output.read()

    def _advance_ragged(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        self._own[LENGTHS].write(lengths)
        return self._advance(x)

    def _read_state(self) -> dict[str, np.ndarray]:
        return {name: array.read() for name, array in self.places.state_sets[self.turn].items()}

    def _write_state(self, state: Arrays) -> None:
        for name, array in self.places.state_sets[self.turn].items():
            array.write(state[name])

    def _bind_ragged(self, ring: list[tuple[np.ndarray, np.ndarray]]) -> Bound:
        return OnnxRuntimeBound(self, self.ring([{"x": x, LENGTHS: lengths} for x, lengths in ring]))

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return OnnxRuntimeBound(self, self.ring([{"x": chunk} for chunk in ring]))


class OnnxRuntimeBound(SynchronousBound):
    """Bindings for every chunk of the ring and both turns. The runtime returns from a call when the work is done."""

    def __init__(self, session: OnnxRuntimeSession, ring: Ring) -> None:
        self._session = session
        self._run = session.run
        self._ring = ring
        self._next_bindings = cycle(ring.bindings).__next__

    def __call__(self) -> None:
        session = self._session
        turn = session.turn
        self._run(self._next_bindings()[turn])
        session.turn = 1 - turn

    def output(self) -> Arrays:
        return {"y": self._ring.y.read()}

    @contextmanager
    def in_stream(self, stream: int) -> Iterator[Callable[[], object]]:
        """As `TakesStream`: the program is loaded once more, for a stream of the suite's."""
        session = self._session
        with session.queue_in(stream, self._ring) as queue:

            def call() -> None:
                turn = session.turn
                queue(self._next_bindings(), turn)
                session.turn = 1 - turn

            yield call
