"""A user's TFLite file in LiteRT's interpreter, as it is: x and states are laid out in the interpreter's memory.

A session keeps the states between calls in buffers of its own, in the file's layout. Those that an operator changes in
place stay in its own tensors between calls of the timed path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from rnnbench.backends.base import Arrays, Artifact, Bound, OperationStage, Program, ProgramFiles, Request
from rnnbench.backends.litert.backend import MOVES_TENSORS
from rnnbench.backends.litert.flatbuffer import Flatbuffer
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession, Stored, SynchronousBound
from rnnbench.model_files import (
    FileArray,
    FileNetwork,
    changes_of,
    names_of_ends,
    signature_name,
    unchanged_path,
    with_float_ends,
)

MODEL = "model.tflite"


def describe_file(network: FileNetwork, folder: Path) -> Artifact:
    """Copy the file into `folder`, and describe it. Raises ModelFileError."""
    path = unchanged_path(network)
    data, changes = with_float_ends(path), changes_of(path)
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

    For an array without axes, such as a position, the interpreter gives its value instead of a view.
    """

    inputs: list[np.ndarray]
    before: list[np.ndarray]
    after: list[np.ndarray]


class _Type(NamedTuple):
    """The type of an array in the interpreter. An operator's own state may have a scale and a zero point."""

    dtype: Any
    scale: float
    """0: it has none."""
    zero: int

    def of(self, value: np.ndarray) -> np.ndarray:
        """An array as the interpreter has it, of floats or of what it gave."""
        if not self.scale or value.dtype == self.dtype:
            return np.asarray(value).astype(self.dtype, copy=False)
        kind = np.iinfo(self.dtype)
        whole: np.ndarray = np.clip(np.rint(value / self.scale) + self.zero, kind.min, kind.max).astype(self.dtype)
        return whole

    def floats(self, value: np.ndarray) -> np.ndarray:
        """What an array stands for, whichever of the two it is."""
        if not self.scale or value.dtype != self.dtype:
            return value
        return ((value.astype(np.float64) - self.zero) * self.scale).astype(np.float32)


class _Ends(NamedTuple):
    """The subgraph that is called, and the numbers of the tensors at its ends."""

    subgraph: int
    inputs: dict[str, int]
    """By the names of the file, as `outputs`."""
    outputs: dict[str, int]
    types: dict[int, _Type]
    """By the number of the tensor."""


class FileSession(ChunkedSession):
    """Every call takes the states and gives them."""

    def __init__(self, program: FileProgram) -> None:
        super().__init__(program)
        self.network, request = program.network, program.request
        self._rows = request.batch
        self.interpreter = Interpreter(model_path=str(program.path), num_threads=request.threads)
        self.wrapper = self.interpreter._interpreter
        self.subgraph, inputs, outputs, types = _ends(self.interpreter, program.called)
        inputs_and_states = (*self.network.inputs, *(state.before for state in self.network.states))
        for array in inputs_and_states:
            shape = np.array(self._native(array), np.int32)
            self.wrapper.ResizeInputTensor(inputs[array.name], shape, False, self.subgraph)
        self.wrapper.AllocateTensors(self.subgraph)
        self._inputs = [inputs[array.name] for array in self.network.inputs]
        self._outputs = [outputs[array.name] for array in self.network.results]
        self._before = [inputs[state.before.name] for state in self.network.states]
        self._after = [outputs[state.after.name] for state in self.network.states]
        constants = self.network.constant_arrays(self._rows).items()
        held = [(inputs[name], types[inputs[name]].of(np.array(value))) for name, value in constants]
        for tensor, value in held:
            self.wrapper.SetTensor(tensor, value, self.subgraph)
        self._changed = [(tensor, value) for tensor, value in held if tensor in outputs.values()]
        """Constants that an operator changes in place, and that every call gets anew."""
        self._types = [types[number] for number in self._before]
        if program.operators & MOVES_TENSORS:
            # What such an operator gives has no memory before the first call.
            for array in inputs_and_states:
                number = inputs[array.name]
                self.wrapper.SetTensor(number, types[number].of(np.zeros(self._native(array))), self.subgraph)
            self.invoke()()
        views = self._new_views()
        self.in_memory = all(isinstance(view, np.ndarray) for side in views for view in side)
        self._fixed = views if self.in_memory and not program.operators & MOVES_TENSORS else None
        befores = (state.before for state in self.network.states)
        self.state = [np.zeros(view.shape, array.dtype) for array, view in zip(befores, views.before, strict=True)]

    def views(self) -> _Views:
        """The tensors in the interpreter's memory, until the next call."""
        return self._fixed or self._new_views()

    def _new_views(self) -> _Views:
        sides = (self._inputs, self._before, self._after)
        views = {number: self._view(number) for side in sides for number in side}
        return _Views(*([views[number] for number in side] for side in sides))

    def laid(self, x: np.ndarray) -> list[np.ndarray]:
        """x [chunk, batch, input] as the file's inputs, in the file's layout."""
        cuts = np.cumsum([array.size for array in self.network.inputs])[:-1]
        parts = zip(self.network.inputs, np.split(x, cuts, axis=2), strict=True)
        return [np.ascontiguousarray(array.to_file(part), array.dtype) for array, part in parts]

    def put(self, views: _Views, inputs: Sequence[np.ndarray]) -> None:
        """Write the inputs of a call and its states, where the interpreter reads them."""
        if not self.in_memory:
            states = (kind.of(np.asarray(value)) for kind, value in zip(self._types, self.state, strict=True))
            for tensor, value in zip((*self._inputs, *self._before), (*inputs, *states), strict=True):
                self.wrapper.SetTensor(tensor, np.asarray(value), self.subgraph)
            return
        for view, part in zip(views.inputs, inputs, strict=True):
            np.copyto(view, part)
        self.put_states(views)

    def put_states(self, views: _Views) -> None:
        """Write the states of a call. What the last call has left in place is there already."""
        for view, value, kind in zip(views.before, self.state, self._types, strict=True):
            if value is not view:
                np.copyto(view, kind.of(value) if kind.scale else value)

    def invoke(self) -> Callable[[], None]:
        """A function that runs the interpreter on the values in its input tensors."""
        advance, put, subgraph, changed = self.wrapper.Invoke, self.wrapper.SetTensor, self.subgraph, self._changed

        def from_constants() -> None:
            for tensor, value in changed:
                put(tensor, value, subgraph)
            advance(subgraph)

        return from_constants if changed else lambda: advance(subgraph)

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
            state.name: state.before.from_file(type_.floats(np.array(value)), 1, self._rows).copy()
            for state, type_, value in zip(self.network.states, self._types, self.state, strict=True)
        }

    def _write_state(self, state: Arrays) -> None:
        self.state = [carried.before.to_file(state[carried.name]).copy() for carried in self.network.states]

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
        session.put_states(views)
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


def _ends(interpreter: Any, signature: str) -> _Ends:
    if interpreter.get_signature_list():
        runner = interpreter.get_signature_runner(signature)
        graph = interpreter._interpreter.GetSubgraphIndexFromSignature(signature)
        sides = [runner.get_input_details(), runner.get_output_details()]
    else:
        graph, ends = 0, {"input": interpreter.get_input_details(), "output": interpreter.get_output_details()}
        names = {kind: names_of_ends([details["name"] for details in side], kind) for kind, side in ends.items()}
        sides = [dict(zip(names[kind], side, strict=True)) for kind, side in ends.items()]
    inputs, outputs = ({key: details["index"] for key, details in side.items()} for side in sides)
    every = [details for side in sides for details in side.values()]
    types = {details["index"]: _Type(details["dtype"], *details["quantization"]) for details in every}
    return _Ends(graph, inputs, outputs, types)
