"""Streams through a model: each session is an interpreter of its own over the file, which is mapped into memory.

Public calls use a signature runner. Bound calls copy x to the address where the interpreter reads it. Then they call
`Invoke` of the wrapper that the runner calls, without the runner's checks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np

from rnnbench.backends.base import Arrays, Artifact, Bound, Program, ProgramFiles, Request, Session
from rnnbench.backends.litert.shared_weights import SESSIONS, repeats_much
from rnnbench.backends.litert.store import Stored
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession, SynchronousBound


class LitertProgram(ChunkedProgram):
    def __init__(self, request: Request, artifact: Artifact, stored: Stored, build_tail: Callable[[], Program]) -> None:
        super().__init__(request, artifact, stored.cached, build_tail)
        self.files = ProgramFiles((stored.path,))
        self.stored = stored
        self.shares_weights = repeats_much(request) and not stored.facts.why_not_compiled

    def open(self) -> Session:
        if self.shares_weights:
            return SESSIONS[self.request.strategy.state](self, self.stored.path)
        if self.request.strategy.time == "fused":
            return FusedSession(self)
        kind = {"none": LitertSession, "stitched": StitchedSession, "stateful": StatefulSession}
        return kind[self.request.strategy.state](self)


class LitertSession(ChunkedSession):
    """Without a state: every call starts from zeros."""

    def __init__(self, program: LitertProgram) -> None:
        from ai_edge_litert.interpreter import Interpreter

        super().__init__(program)
        path = str(program.stored.path)
        self.interpreter = Interpreter(model_path=path, num_threads=program.request.threads)
        self.wrapper = self.interpreter._interpreter
        self.run = self.interpreter.get_signature_runner("step")
        self.subgraph: int = self.wrapper.GetSubgraphIndexFromSignature("step")
        self.wrapper.AllocateTensors(self.subgraph)
        details = self.run.get_output_details().items()
        self.outputs = sorted(((name, tensor["index"]) for name, tensor in details), key=_by_number)
        self.inputs = {name: tensor["index"] for name, tensor in self.run.get_input_details().items()}

    def view(self, tensor: int) -> np.ndarray:
        """A tensor of `step`, in the interpreter's memory."""
        array: np.ndarray = self.wrapper.tensor(self.wrapper, tensor, self.subgraph)
        return array

    def output(self) -> np.ndarray:
        """A copy of the last call's y."""
        y: np.ndarray = self.wrapper.GetTensor(self.outputs[0][1], self.subgraph)
        return y

    def invoke(self) -> Callable[[], None]:
        """A function that runs the interpreter on the values in its input tensors."""
        return partial(self.wrapper.Invoke, self.subgraph)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        y: np.ndarray = self.run(x=x)[self.outputs[0][0]]
        return y

    def _read_state(self) -> dict[str, np.ndarray]:
        return {}

    def _write_state(self, state: Arrays) -> None:
        """Every call starts from zeros: there is no state."""

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return LitertBound(self, ring)


class StatefulSession(LitertSession):
    """The state is in the model's variables. Each interpreter has its own."""

    def __init__(self, program: LitertProgram) -> None:
        super().__init__(program)
        self._get = self.interpreter.get_signature_runner("get_state")
        self._set = self.interpreter.get_signature_runner("set_state")

    def _read_state(self) -> dict[str, np.ndarray]:
        return self._state_of_rows([value for _, value in sorted(self._get().items(), key=_by_number)])

    def _write_state(self, state: Arrays) -> None:
        self._set(**{f"state{index}": value for index, value in enumerate(self._state_by_row(state))})


class StitchedSession(LitertSession):
    """The state is passed in and returned. Between calls, it is the arrays that the last call returned."""

    def __init__(self, program: LitertProgram) -> None:
        super().__init__(program)
        rows = program.request.stack.layers
        self.state_inputs = [f"{spec.name}{row}" for row in range(rows) for spec in self._states]
        self.state: list[np.ndarray] = []
        self.reset()

    def _advance(self, x: np.ndarray) -> np.ndarray:
        results = self.run(x=x, **dict(zip(self.state_inputs, self.state, strict=True)))
        y: np.ndarray
        y, *self.state = (results[name] for name, _ in self.outputs)
        return y

    def _read_state(self) -> dict[str, np.ndarray]:
        return self._state_of_rows(self.state)

    def _write_state(self, state: Arrays) -> None:
        self.state = [value.copy() for value in self._state_by_row(state)]

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return StitchedBound(self, ring)


class FusedSession(LitertSession):
    """The state is in the operators' variable tensors. With state `none` they are set to zero before every call."""

    def __init__(self, program: LitertProgram) -> None:
        super().__init__(program)
        self._tensors = [tensor for row in program.stored.facts.fused_state for tensor in row]

    def invoke(self) -> Callable[[], None]:
        advance = super().invoke()
        return advance if self._streams else partial(_from_zeros, self.wrapper.ResetVariableTensors, advance)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        if not self._streams:
            self.interpreter.reset_all_variables()
        return super()._advance(x)

    def _read_state(self) -> dict[str, np.ndarray]:
        return self._state_of_rows([self.wrapper.GetTensor(tensor, self.subgraph) for tensor in self._tensors])

    def _write_state(self, state: Arrays) -> None:
        for tensor, value in zip(self._tensors, self._state_by_row(state), strict=True):
            self.wrapper.SetTensor(tensor, value, self.subgraph)


class LitertBound(SynchronousBound):
    """A call copies the next chunk in and runs the interpreter. It returns when the work is done.

    Arrays are copied as bytes. `np.copyto` takes 0.4 µs for each, a tenth of a step of 128 units.
    """

    def __init__(self, session: LitertSession, ring: list[np.ndarray]) -> None:
        self._session = session
        self._invoke = session.invoke()
        x = session.view(session.inputs["x"])
        self._next_copy = cycle([copying(x, chunk.copy()) for chunk in ring]).__next__

    def __call__(self) -> None:
        self._next_copy()()
        self._invoke()

    def output(self) -> Arrays:
        return {"y": self._session.output()}


class StitchedBound(LitertBound):
    """The state is copied from where the last call left it: the interpreter's outputs or the session's arrays."""

    _session: StitchedSession

    def __init__(self, session: StitchedSession, ring: list[np.ndarray]) -> None:
        super().__init__(session, ring)
        self._inputs = [session.view(session.inputs[name]) for name in session.state_inputs]
        self._outputs = [session.view(tensor) for _, tensor in session.outputs[1:]]
        self._moves = list(map(copying, self._inputs, self._outputs))

    def __call__(self) -> None:
        if self._session.state is self._outputs:
            for move in self._moves:
                move()
        else:
            for place, value in zip(self._inputs, self._session.state, strict=True):
                np.copyto(place, value)
            self._session.state = self._outputs
        super().__call__()


def copying(to: np.ndarray, source: np.ndarray) -> Callable[[], None]:
    """A function that copies one array over another one of the same type and size."""
    return partial(to.data.cast("B").__setitem__, slice(None), source.data.cast("B"))


def _from_zeros(reset: Callable[[], None], advance: Callable[[], None]) -> None:
    reset()
    advance()


def _by_number(output: tuple[str, Any]) -> int:
    """Outputs are `output_0`, `output_1`, … in the order of the function's results."""
    return int(output[0].rpartition("_")[2])
