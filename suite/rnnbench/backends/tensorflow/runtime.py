"""Streams through a loaded SavedModel.

A session is a copy of the model's concrete function, with variables of its own instead of the model's. Public calls
call that function. Bound calls use the entry point that such calls end in (`executor.py`), with lists made beforehand.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np

from rnnbench.backends.base import Arrays, Artifact, Bound, Program, ProgramFiles, Request, Session
from rnnbench.backends.shared import CUDA, ChunkedProgram, ChunkedSession
from rnnbench.backends.tensorflow.executor import executor, waiting

GPU = "GPU:0"
"""TensorFlow's name of the first GPU, on which it runs what has no other device."""


class TensorflowProgram(ChunkedProgram):
    """A loaded model: its concrete function, and the variables in it that are its state."""

    def __init__(
        self,
        request: Request,
        artifact: Artifact,
        files: ProgramFiles,
        cached: bool,
        build_tail: Callable[[], Program],
        model: Any,
        function: Any,
    ) -> None:
        super().__init__(request, artifact, cached, build_tail)
        self.files = files
        self.model = model
        self.function = function
        self.device = GPU if request.device == CUDA else ""

    def open(self) -> Session:
        kind = {"none": TensorflowSession, "stitched": StitchedSession, "stateful": StatefulSession}
        return kind[self.request.strategy.state](self)


class TensorflowSession(ChunkedSession):
    """Without a state: every call starts from zeros."""

    def __init__(self, program: TensorflowProgram) -> None:
        import tensorflow as tf

        super().__init__(program)
        self.tf = tf
        self.device = program.device
        self.function = copy.copy(program.function)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        y: np.ndarray = self.function(self.tf.constant(x))[0].numpy()
        return y

    def _advance_ragged(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        y: np.ndarray = self.function(self.tf.constant(x), self.tf.constant(lengths))[0].numpy()
        return y

    def _bind_ragged(self, ring: list[tuple[np.ndarray, np.ndarray]]) -> Bound:
        placed = [(self.placed(x), self.tf.constant(lengths)) for x, lengths in ring]
        return TensorflowBound(self.function, placed, self.device)

    def placed(self, array: np.ndarray) -> Any:
        """A tensor in the memory of the program's device. TensorFlow keeps most integers in the host's."""
        if not self.device or array.dtype.kind != "f":
            return self.tf.constant(array)
        with self.tf.device(self.device):
            return self.tf.constant(array)

    def _read_state(self) -> dict[str, np.ndarray]:
        return {}

    def _write_state(self, state: Arrays) -> None:
        """Every call starts from zeros: there is no state."""

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return TensorflowBound(self.function, [(self.placed(x),) for x in ring], self.device)


class StatefulSession(TensorflowSession):
    """The state is in variables of this session."""

    def __init__(self, program: TensorflowProgram) -> None:
        super().__init__(program)
        model_variables = list(program.model.state)
        self.variables = [self.tf.Variable(self.tf.zeros(v.shape, v.dtype)) for v in model_variables]
        replaced = {id(v.handle): new.handle for v, new in zip(model_variables, self.variables, strict=True)}
        captured = program.function.captured_inputs
        self.function.set_external_captures([replaced.get(id(tensor), tensor) for tensor in captured])

    def _read_state(self) -> dict[str, np.ndarray]:
        return self._state_of_rows([variable.numpy() for variable in self.variables])

    def _write_state(self, state: Arrays) -> None:
        for variable, value in zip(self.variables, self._state_by_row(state), strict=True):
            variable.assign(value)


class StitchedSession(TensorflowSession):
    """The state is passed in and returned. Between calls, it is the tensors that the last call returned."""

    def __init__(self, program: TensorflowProgram) -> None:
        super().__init__(program)
        self.state: list[Any] = []
        self.reset()

    def _advance(self, x: np.ndarray) -> np.ndarray:
        output, *self.state = self.function(self.tf.constant(x), *self.state)
        y: np.ndarray = output.numpy()
        return y

    def _read_state(self) -> dict[str, np.ndarray]:
        return self._state_of_rows([tensor.numpy() for tensor in self.state])

    def _write_state(self, state: Arrays) -> None:
        self.state = [self.placed(value) for value in self._state_by_row(state)]

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return StitchedBound(self, self.function, [(self.placed(x),) for x in ring])


def _work_is_done() -> None:
    """Nothing is left to wait for."""


class TensorflowBound:
    """Arguments are made beforehand: x of each chunk, and the lengths of its rows where the request is ragged.

    On the processor, a call returns when the work is done. On `device`, where one is named, `sync` waits for it.
    """

    def __init__(self, function: Any, ring: list[tuple[Any, ...]], device: str) -> None:
        self.sync: Callable[[], None] = waiting(function, device) if device else _work_is_done
        self._call = executor(function)
        self._captured = list(function.captured_inputs)
        self._ring = cycle([self._prepared(*inputs) for inputs in ring])
        self._outputs: list[Any] = []

    def _prepared(self, *inputs: Any) -> list[Any]:
        return [*inputs, *self._captured]

    def __call__(self) -> None:
        self._outputs = self._call(next(self._ring))

    def output(self) -> Arrays:
        return {"y": self._outputs[0].numpy()}


class StitchedBound(TensorflowBound):
    """The session's state is passed between x and the captured weights."""

    def __init__(self, session: StitchedSession, function: Any, ring: list[tuple[Any, ...]]) -> None:
        super().__init__(function, ring, session.device)
        self._session = session

    def _prepared(self, *inputs: Any) -> list[Any]:
        return list(inputs)

    def __call__(self) -> None:
        session = self._session
        self._outputs = outputs = self._call([*next(self._ring), *session.state, *self._captured])
        session.state = outputs[1:]
