"""Streams through OpenVINO: tensors are set once, over NumPy's memory, and a call is one inference.

Each stream has an inference request of its own. A stateful request has variables. A stitched state has two sets of
buffers and two requests, which alternate: one reads the first set and writes the second, the other does the reverse.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from rnnbench.backends.base import Arrays, Artifact, Bound, Program, ProgramFiles, Request
from rnnbench.backends.openvino import c_api, device
from rnnbench.backends.openvino.variables import PythonVariables, Variables, called_by_python
from rnnbench.backends.shared import AlternatingSession, ChunkedProgram, SynchronousBound
from rnnbench.backends.shared.onnx_graphs import NEXT


class OpenVinoProgram(ChunkedProgram):
    def __init__(
        self, request: Request, artifact: Artifact, folder: Path, cached: bool, build_tail: Callable[[], Program]
    ) -> None:
        super().__init__(request, artifact, cached, build_tail)
        self.files = ProgramFiles(device.files(folder))
        self.folder = folder
        api = device if called_by_python(request) else c_api
        self.compiled: device.Model | c_api.Model = api.Model(folder, request)

    def open(self) -> OpenVinoSession:
        return (VariableSession if self.request.strategy.state == "stateful" else OpenVinoSession)(self)

    def close(self) -> None:
        super().close()
        del self.compiled


def inference(request: Any) -> Callable[[], object]:
    """An inference on tensors that are already set, by the API that made the request.

    Python's package has a wrapper that looks for inputs and wraps the results, which takes 1.3 µs. It is left out. The
    results are views of the tensors; by default each would be copied into a new array.
    """
    if isinstance(request, c_api.Handle):
        return c_api.inference(request)
    parent: Any = super(ov.InferRequest, request)
    return partial(parent.infer, {}, share_outputs=True, decode_strings=False)


class OpenVinoSession(AlternatingSession):
    """The state is in two sets of buffers that alternate. With state `none`, both turns are the same."""

    def __init__(self, program: OpenVinoProgram) -> None:
        super().__init__(program)
        request = program.request
        self._batch_first = request.route == "opset" and request.strategy.time == "fused"
        self.x = self.laid(np.zeros(self._whole, self._dtype))
        self.lengths = None if self._lengths is None else np.ones(self._whole[1], self._lengths.dtype)
        self._output = np.zeros(program.compiled.shapes["y"], self._dtype)
        self._turned = self._output.transpose(2, 0, 1, 3) if self._batch_first else self._output
        self.infer = self._inferences(program.compiled)

    def _inferences(self, compiled: Any) -> list[Callable[[], object]]:
        """One for each turn."""
        return [inference(compiled.request(self.arrays(turn))) for turn in range(2)]

    def arrays(self, turn: int) -> Arrays:
        """The arrays that a call of this turn reads and writes, by the model's names."""
        before, after = self._state_sets[turn], self._state_sets[1 - turn]
        arrays = {"x": self.x, "y": self._output, **before, **{NEXT + name: array for name, array in after.items()}}
        return arrays if self.lengths is None else {**arrays, "lengths": self.lengths}

    def laid(self, x: np.ndarray) -> np.ndarray:
        """A copy of x [chunk, batch, input] in the model's layout."""
        return x.transpose(1, 0, 2).copy() if self._batch_first else x.copy()

    def y(self) -> np.ndarray:
        """A copy of the last output, [chunk, batch, width]."""
        y: np.ndarray = self._turned.copy()
        return y.reshape(*self._whole[:2], -1)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        np.copyto(self.x, x.transpose(1, 0, 2) if self._batch_first else x)
        turn = self.turn
        self.infer[turn]()
        self.turn = 1 - turn
        return self.y()

    def _advance_ragged(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        assert self.lengths is not None, "a session with lengths has a tensor for them"
        np.copyto(self.lengths, lengths)
        return self._advance(x)

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return OpenVinoBound(self, ring)

    def _bind_ragged(self, ring: list[tuple[np.ndarray, np.ndarray]]) -> Bound:
        return RaggedBound(self, ring)


class VariableSession(OpenVinoSession):
    """The state is in the request's variables. Both turns use one request."""

    def _inferences(self, compiled: Any) -> list[Callable[[], object]]:
        request = compiled.request(self.arrays(0))
        kind = Variables if isinstance(request, c_api.Handle) else PythonVariables
        self._variables: Variables | PythonVariables = kind(request)
        # A variable that OpenVINO made from an input and an output has both names, one after the other.
        self._names = {name.rpartition(NEXT)[2]: name for name in self._variables.names}
        return [inference(request)] * 2

    def reset(self) -> None:
        self._variables.reset()

    def _read_state(self) -> dict[str, np.ndarray]:
        return {s.name: self._variables.read(self._names[s.name]).reshape(self._shape(s)) for s in self._states}

    def _write_state(self, state: Arrays) -> None:
        for short, name in self._names.items():
            self._variables.write(name, state[short])


class OpenVinoBound(SynchronousBound):
    """Each chunk is copied, as bytes, into the tensor that both requests read. This costs no more than to set another
    tensor. An inference returns when the work is done."""

    def __init__(self, session: OpenVinoSession, ring: list[np.ndarray]) -> None:
        self._session = session
        self._infer = session.infer
        write = _bytes(session.x).__setitem__
        self._next_copy = cycle([partial(write, slice(None), _bytes(session.laid(chunk))) for chunk in ring]).__next__

    def __call__(self) -> None:
        session = self._session
        self._next_copy()()
        turn = session.turn
        self._infer[turn]()
        session.turn = 1 - turn

    def output(self) -> Arrays:
        return {"y": self._session.y()}


class RaggedBound(OpenVinoBound):
    """The lengths of the rows are copied with their chunk, into a tensor of their own."""

    def __init__(self, session: OpenVinoSession, ring: list[tuple[np.ndarray, np.ndarray]]) -> None:
        super().__init__(session, [x for x, _ in ring])
        assert session.lengths is not None, "a session with lengths has a tensor for them"
        copies = [partial(np.copyto, session.lengths, lengths.copy()) for _, lengths in ring]
        self._next_lengths = cycle(copies).__next__

    def __call__(self) -> None:
        self._next_lengths()()
        super().__call__()


def _bytes(array: np.ndarray) -> memoryview:
    return array.data.cast("B")
