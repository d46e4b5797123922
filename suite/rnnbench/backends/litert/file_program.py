"""A user's TFLite file in LiteRT's interpreter, as it is: x and states are laid out in the interpreter's memory.

A session keeps the states between calls in buffers of its own, in the file's layout.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from rnnbench.backends.base import Arrays, Artifact, Bound, BuildError, OperationStage, Program, ProgramFiles, Request
from rnnbench.backends.litert.flatbuffer import Flatbuffer
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession, Stored, SynchronousBound
from rnnbench.model_files import (
    FileArray,
    FileNetwork,
    ModelFileError,
    changes_of,
    signature_name,
    unchanged,
    with_float_ends,
)

MODEL = "model.tflite"
MOVES_TENSORS = frozenset(("WHILE", "IF"))
"""Operators that run another graph of the file. When that graph grows, all tensors move."""
KEEPS_VARIABLES = frozenset(("UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN", "SVDF"))
"""Operators that go on from the state of the last call unless their variables are reset."""


def describe_file(network: FileNetwork, folder: Path) -> Artifact:
    """Copy the file into `folder`, and describe it. Raises BuildError."""
    try:
        path = unchanged(network)
        data, changes = with_float_ends(path), changes_of(path)
    except ModelFileError as error:
        raise BuildError(str(error)) from error
    (folder / MODEL).write_bytes(data)
    return Artifact(
        source_digest=hashlib.sha256(data).hexdigest(),
        operations={OperationStage.COMPILED: Flatbuffer(data).operations()},
        lowered="given",
        origin="imported",
        math="exact",
        notes=(
            f"The user's TFLite file runs, changed: {'; '.join(changes)}."
            if changes
            else "The user's TFLite file runs as it is.",
            "XNNPACK runs the operators that it supports, which is the interpreter's default",
        ),
    )


class FileProgram(ChunkedProgram):
    def __init__(self, request: Request, stored: Stored, build_tail: Callable[[], Program]) -> None:
        super().__init__(request, stored.artifact, stored.cached, build_tail)
        assert request.file is not None
        self.network = request.file
        self.path = stored.folder / MODEL
        self.files = ProgramFiles((self.path,))
        self.called = signature_name(self.path)
        self.operators = frozenset(stored.artifact.operations[OperationStage.COMPILED])

    def open(self) -> FileSession:
        return FileSession(self)


class _Views(NamedTuple):
    """Arrays in the interpreter's memory: inputs, the states that the next call takes, and those of the last call.

    Of an array without axes, as a position, the interpreter gives its value instead.
    """

    inputs: list[np.ndarray]
    before: list[np.ndarray]
    after: list[np.ndarray]


class FileSession(ChunkedSession):
    """Every call takes the states and gives them. With state `none`, an operator's variables begin at zero."""

    def __init__(self, program: FileProgram) -> None:
        super().__init__(program)
        self.network, request = program.network, program.request
        self._rows = request.batch
        self.interpreter = Interpreter(model_path=str(program.path), num_threads=request.threads)
        self.wrapper = self.interpreter._interpreter
        self.subgraph, inputs, outputs = _ends(self.interpreter, program.called)
        given = (*self.network.inputs, *(state.before for state in self.network.states))
        for array in given:
            shape = np.array(self._native(array), np.int32)
            self.wrapper.ResizeInputTensor(inputs[array.name], shape, False, self.subgraph)
        self.wrapper.AllocateTensors(self.subgraph)
        self._inputs = [inputs[array.name] for array in self.network.inputs]
        self._outputs = [outputs[array.name] for array in self.network.results]
        self._before = [inputs[state.before.name] for state in self.network.states]
        self._after = [outputs[state.after.name] for state in self.network.states]
        for name, value in self.network.constant_arrays(self._rows).items():
            self.wrapper.SetTensor(inputs[name], np.array(value), self.subgraph)
        self._resets = bool(program.operators & KEEPS_VARIABLES)
        if program.operators & MOVES_TENSORS:
            # What such an operator gives has no memory before the first call.
            for array in given:
                self.wrapper.SetTensor(inputs[array.name], np.zeros(self._native(array), array.dtype), self.subgraph)
            self.invoke()()
        views = self._look()
        self.in_memory = all(isinstance(view, np.ndarray) for side in views for view in side)
        self._fixed = views if self.in_memory and not program.operators & MOVES_TENSORS else None
        self.state = [np.zeros(view.shape, view.dtype) for view in views.before]

    def views(self) -> _Views:
        """The tensors in the interpreter's memory, until the next call."""
        return self._fixed or self._look()

    def _look(self) -> _Views:
        return _Views(*([self._view(number) for number in side] for side in (self._inputs, self._before, self._after)))

    def laid(self, x: np.ndarray) -> list[np.ndarray]:
        """x [chunk, batch, input] as the file's inputs, in the file's layout."""
        cuts = np.cumsum([array.size for array in self.network.inputs])[:-1]
        parts = zip(self.network.inputs, np.split(x, cuts, axis=2), strict=True)
        return [np.ascontiguousarray(array.to_file(part), array.dtype) for array, part in parts]

    def put(self, views: _Views, inputs: Sequence[np.ndarray]) -> None:
        """Write the inputs of a call and its states, where the interpreter reads them."""
        if not self.in_memory:
            for tensor, value in zip((*self._inputs, *self._before), (*inputs, *self.state), strict=True):
                self.wrapper.SetTensor(tensor, np.asarray(value), self.subgraph)
            return
        for view, part in zip(views.inputs, inputs, strict=True):
            np.copyto(view, part)
        for view, value in zip(views.before, self.state, strict=True):
            np.copyto(view, value)

    def invoke(self) -> Callable[[], None]:
        """A function that runs the interpreter on the values in its input tensors."""
        advance, reset, subgraph = self.wrapper.Invoke, self.wrapper.ResetVariableTensors, self.subgraph

        def from_zeros() -> None:
            reset()
            advance(subgraph)

        return from_zeros if self._resets else lambda: advance(subgraph)

    def y(self) -> np.ndarray:
        """A copy of the last call's y [chunk, batch, width]."""
        parts = [
            array.from_file(self.wrapper.GetTensor(number, self.subgraph), self._chunk, self._rows)
            for array, number in zip(self.network.results, self._outputs, strict=True)
        ]
        return parts[0].copy() if len(parts) == 1 else np.concatenate(parts, axis=2)

    def _view(self, tensor: int) -> np.ndarray:
        """A tensor in the interpreter's memory."""
        array: np.ndarray = self.wrapper.tensor(self.wrapper, tensor, self.subgraph)
        return array

    def _native(self, array: FileArray) -> tuple[int, ...]:
        return array.layout(self._chunk, self._rows).native

    def _advance(self, x: np.ndarray) -> np.ndarray:
        self.put(self.views(), self.laid(x))
        self.invoke()()
        self.state = [view.copy() for view in self.views().after]
        return self.y()

    def _read_state(self) -> dict[str, np.ndarray]:
        return {
            state.name: state.before.from_file(np.array(value), 1, self._rows).copy()
            for state, value in zip(self.network.states, self.state, strict=True)
        }

    def _write_state(self, state: Arrays) -> None:
        self.state = [each.before.to_file(state[each.name]).copy() for each in self.network.states]

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return FileBound(self, ring) if self.in_memory else ValuesBound(self, ring)


class FileBound(SynchronousBound):
    """A call copies the next chunk and the states to where the interpreter reads them, and runs it."""

    def __init__(self, session: FileSession, ring: list[np.ndarray]) -> None:
        self._session = session
        self._invoke = session.invoke()
        self._ring = cycle([session.laid(x.copy()) for x in ring])  # The ring is the caller's again.

    def __call__(self) -> None:
        session = self._session
        views = session.views()
        for view, part in zip(views.inputs, next(self._ring), strict=True):
            np.copyto(view, part)
        for view, value in zip(views.before, session.state, strict=True):
            np.copyto(view, value)
        self._invoke()
        session.state = session.views().after

    def output(self) -> Arrays:
        return {"y": self._session.y()}


class ValuesBound(FileBound):
    """Calls of a file with an array without axes: the interpreter takes copies of all arrays."""

    def __call__(self) -> None:
        session = self._session
        session.put(session.views(), next(self._ring))
        self._invoke()
        session.state = session.views().after


def _ends(interpreter: Any, signature: str) -> tuple[int, dict[str, int], dict[str, int]]:
    """The subgraph that is called, and the numbers of its inputs and outputs by the file's names."""
    if not interpreter.get_signature_list():
        sides = (interpreter.get_input_details(), interpreter.get_output_details())
        inputs, outputs = ({each["name"]: each["index"] for each in side} for side in sides)
        return 0, inputs, outputs
    runner = interpreter.get_signature_runner(signature)
    sides = (runner.get_input_details(), runner.get_output_details())
    inputs, outputs = ({key: each["index"] for key, each in side.items()} for side in sides)
    return interpreter._interpreter.GetSubgraphIndexFromSignature(signature), inputs, outputs
