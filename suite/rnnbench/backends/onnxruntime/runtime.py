"""Streams through ONNX Runtime: every buffer is NumPy's and is bound once. A call is one `run_with_iobinding`.

The state has two sets of buffers. One binding reads the first set and writes the second, another binding does the
reverse. A session alternates between them, so no call copies a state. The runtime does not promise that one buffer can
be both input and output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from rnnbench.backends.base import Arrays, Artifact, Bound, Program, ProgramFiles, Request, Session
from rnnbench.backends.onnxruntime.options import loaded
from rnnbench.backends.shared import AlternatingSession, ChunkedProgram, SynchronousBound
from rnnbench.backends.shared.onnx_graphs import NEXT

ByTurns = tuple[Any, Any]
"""One binding for each of the two turns (see above)."""


class OnnxRuntimeProgram(ChunkedProgram):
    def __init__(
        self, request: Request, artifact: Artifact, path: Path, cached: bool, build_tail: Callable[[], Program]
    ) -> None:
        super().__init__(request, artifact, cached, build_tail)
        self.files = ProgramFiles((path,))
        self.runtime = loaded(path, request.threads)
        self.shapes = {array.name: array.shape for array in (*self.runtime.get_inputs(), *self.runtime.get_outputs())}

    def open(self) -> Session:
        return OnnxRuntimeSession(self)

    def close(self) -> None:
        super().close()
        del self.runtime


class OnnxRuntimeSession(AlternatingSession):
    def __init__(self, program: OnnxRuntimeProgram) -> None:
        super().__init__(program)
        self.run = program.runtime.run_with_iobinding
        self._runtime = program.runtime
        self._shapes = program.shapes
        self._input = np.zeros(self._whole, self._dtype)
        self._output = self.new_output()
        self._row_lengths = None if self._lengths is None else np.ones(self._whole[1], self._lengths.dtype)
        self._bindings = self.bindings(self._input, self._output, self._row_lengths)

    def new_output(self) -> np.ndarray:
        return np.zeros((*self._whole[:2], self._program.request.model.width), self._dtype)

    def bindings(self, x: np.ndarray, y: np.ndarray, lengths: np.ndarray | None = None) -> ByTurns:
        """Bindings from x to y for both turns. The arrays must exist as long as the bindings."""
        inputs = {"x": x} if lengths is None else {"x": x, "lengths": lengths}
        return self._binding(inputs, y, 0), self._binding(inputs, y, 1)

    def _binding(self, inputs: Arrays, y: np.ndarray, turn: int) -> Any:
        binding = self._runtime.io_binding()
        for name, array in {**inputs, **self._state_sets[turn]}.items():
            binding.bind_ortvalue_input(name, self._value(name, array))
        after = {NEXT + name: array for name, array in self._state_sets[1 - turn].items()}
        for name, array in {"y": y, **after}.items():
            binding.bind_ortvalue_output(name, self._value(name, array))
        return binding

    def _value(self, name: str, array: np.ndarray) -> Any:
        """The runtime's view of an array, in the shape of the graph's input or output."""
        return ort.OrtValue.ortvalue_from_numpy(array.reshape(self._shapes[name]))

    def _advance(self, x: np.ndarray) -> np.ndarray:
        np.copyto(self._input, x)
        turn = self.turn
        self.run(self._bindings[turn])
        self.turn = 1 - turn
        return self._output.copy()

    def _advance_ragged(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        assert self._row_lengths is not None, "a session with lengths has a buffer for them"
        np.copyto(self._row_lengths, lengths)
        return self._advance(x)

    def _bind_ragged(self, ring: list[tuple[np.ndarray, np.ndarray]]) -> Bound:
        return OnnxRuntimeBound(self, [(x.copy(), lengths.copy()) for x, lengths in ring])

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return OnnxRuntimeBound(self, [(chunk.copy(), None) for chunk in ring])


class OnnxRuntimeBound(SynchronousBound):
    """Bindings for every chunk of the ring and both turns. The runtime returns from a call when the work is done."""

    def __init__(self, session: OnnxRuntimeSession, ring: Sequence[tuple[np.ndarray, np.ndarray | None]]) -> None:
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
        return {"y": self._output.copy()}
