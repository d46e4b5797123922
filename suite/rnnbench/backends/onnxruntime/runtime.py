"""Streams through ONNX Runtime: every array has its place and is bound once. A call is one `run_with_iobinding`.

The state has two sets of buffers. One binding reads the first set and writes the second, another binding does the
reverse. A session alternates between them, so no call copies a state. The runtime does not promise that one buffer can
be both input and output. On a device the runtime waits for the work before it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count, cycle
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from rnnbench.backends.base import Arrays, Artifact, Bound, Program, ProgramFiles, Request, Session
from rnnbench.backends.onnxruntime.buffers import Buffer, buffer
from rnnbench.backends.onnxruntime.options import loaded
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession, SynchronousBound
from rnnbench.backends.shared.onnx_graphs import NEXT
from rnnbench.cases import STREAM

ByTurns = tuple[Any, Any]
"""What `run` takes in each of the two turns (see above): a binding, with launch `graph` beside the number of its graph.
"""
HOST = "cpu"
GRAPH = "gpu_graph_id"


class OnnxRuntimeProgram(ChunkedProgram):
    def __init__(
        self, request: Request, artifact: Artifact, path: Path, cached: bool, build_tail: Callable[[], Program]
    ) -> None:
        super().__init__(request, artifact, cached, build_tail)
        self.files = ProgramFiles((path,))
        self.runtime = loaded(path, request)
        self.shapes = {array.name: array.shape for array in (*self.runtime.get_inputs(), *self.runtime.get_outputs())}
        self.device = request.device
        self.graphs = None if request.strategy.launch == STREAM else count(1)

    def open(self) -> Session:
        return OnnxRuntimeSession(self)

    def close(self) -> None:
        super().close()
        del self.runtime


class OnnxRuntimeSession(ChunkedSession):
    def __init__(self, program: OnnxRuntimeProgram) -> None:
        super().__init__(program)
        self.turn = 0
        self.run = program.runtime.run_with_iobinding if program.graphs is None else self._run_graph
        self._runtime = program.runtime
        self._shapes = program.shapes
        self._device = program.device
        self._graphs = program.graphs
        self._state_sets = [
            {s.name: self._buffer(s.name, np.zeros(self._shape(s), s.dtype)) for s in self._states} for _ in range(2)
        ]
        self._input = self.placed_input(np.zeros(self._whole, self._dtype))
        self._output = self.new_output()
        ones = None if self._lengths is None else np.ones(self._whole[1], self._lengths.dtype)
        self._row_lengths = None if ones is None else self.placed_lengths(ones)
        self._bindings = self.bindings(self._input, self._output, self._row_lengths)

    def placed_input(self, x: np.ndarray) -> Buffer:
        return self._buffer("x", x)

    def placed_lengths(self, lengths: np.ndarray) -> Buffer:
        """On the host on every device: the operators read them there."""
        return buffer(lengths, tuple(self._shapes["lengths"]), HOST)

    def new_output(self) -> Buffer:
        return self._buffer("y", np.zeros((*self._whole[:2], self._program.request.model.width), self._dtype))

    def bindings(self, x: Buffer, y: Buffer, lengths: Buffer | None = None) -> ByTurns:
        """Bindings from x to y for both turns. The buffers must exist as long as the bindings."""
        inputs = {"x": x} if lengths is None else {"x": x, "lengths": lengths}
        return self._binding(inputs, y, 0), self._binding(inputs, y, 1)

    def _binding(self, inputs: Mapping[str, Buffer], y: Buffer, turn: int) -> Any:
        binding = self._runtime.io_binding()
        for name, array in {**inputs, **self._state_sets[turn]}.items():
            binding.bind_ortvalue_input(name, array.value)
        after = {NEXT + name: array for name, array in self._state_sets[1 - turn].items()}
        for name, array in {"y": y, **after}.items():
            binding.bind_ortvalue_output(name, array.value)
        if self._graphs is None:
            return binding
        # A graph has the places of its arrays, so each binding has a graph of its own.
        options = ort.RunOptions()
        options.add_run_config_entry(GRAPH, str(next(self._graphs)))
        return binding, options

    def _run_graph(self, binding_and_options: tuple[Any, Any]) -> None:
        self._runtime.run_with_iobinding(*binding_and_options)

    def _buffer(self, name: str, array: np.ndarray) -> Buffer:
        """A buffer in the shape of the graph's input or output of this name, on the program's device."""
        return buffer(array, tuple(self._shapes[name]), self._device)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        self._input.write(x)
        turn = self.turn
        self.run(self._bindings[turn])
        self.turn = 1 - turn
        return self._output.read()

    def _advance_ragged(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        assert self._row_lengths is not None, "a session with lengths has a buffer for them"
        self._row_lengths.write(lengths)
        return self._advance(x)

    def _read_state(self) -> dict[str, np.ndarray]:
        return {name: array.read() for name, array in self._state_sets[self.turn].items()}

    def _write_state(self, state: Arrays) -> None:
        for name, array in self._state_sets[self.turn].items():
            array.write(state[name])

    def _bind_ragged(self, ring: list[tuple[np.ndarray, np.ndarray]]) -> Bound:
        placed = [(self.placed_input(x.copy()), self.placed_lengths(lengths.copy())) for x, lengths in ring]
        return OnnxRuntimeBound(self, placed)

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return OnnxRuntimeBound(self, [(self.placed_input(chunk.copy()), None) for chunk in ring])


class OnnxRuntimeBound(SynchronousBound):
    """Bindings for every chunk of the ring and both turns. The runtime returns from a call when the work is done."""

    def __init__(self, session: OnnxRuntimeSession, ring: Sequence[tuple[Buffer, Buffer | None]]) -> None:
        """`ring` has each chunk, and the lengths of its rows where the request is ragged."""
        self._session = session
        self._run = session.run
        self._ring = ring
        self._output = session.new_output()
        self._next_bindings = cycle([session.bindings(x, self._output, lengths) for x, lengths in ring]).__next__

    def __call__(self) -> None:
        session = self._session
        turn = session.turn
        self._run(self._next_bindings()[turn])
        session.turn = 1 - turn

    def output(self) -> Arrays:
        return {"y": self._output.read()}
