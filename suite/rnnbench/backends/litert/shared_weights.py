"""Streams through many copies of the cell, which share their packed weights: each session is a `CompiledModel`.

XNNPACK packs the weights of each product for itself, unless it has a cache of packed weights. The interpreter has no
option for that cache in Python. A cache in memory belongs to its session: no file can be damaged, or be left behind.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import cycle
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rnnbench.backends.base import Arrays, Bound, Request
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession, SynchronousBound

IN_MEMORY = ":memory"
"""The path by which XNNPACK's cache of packed weights has no file (`TfLiteXNNPackDelegateInMemoryFilePath`)."""
LEAST_REPEATED_BYTES = 8 << 20
"""Recurrent weights of all copies from which sharing them is quicker (docs/backends/litert.md, "How it is run")."""


def repeats_much(request: Request) -> bool:
    """Whether a program has so many copies of its recurrent weights that it runs quicker where they are shared."""
    strategy = request.strategy
    copies = strategy.chunk if strategy.time == "unrolled" else strategy.copies or 1
    of_one_copy = sum(layer.step_weights for layer in request.stack.graph) * np.dtype(np.float32).itemsize
    is_float32 = request.precision.uniform == "float32"
    return is_float32 and copies > 1 and copies * of_one_copy >= LEAST_REPEATED_BYTES


def why_not_compiled(path: Path, threads: int) -> str:
    """What this version of LiteRT says against a `CompiledModel` of the program; empty where it can be made."""
    try:
        compiled(path, threads)
    except (ImportError, TypeError, RuntimeError) as error:  # 2.1 has no such options.
        return str(error).partition("\n")[0] or type(error).__name__
    return ""


def compiled(path: Path, threads: int) -> Any:
    """A `CompiledModel` for the processor. Raises what `why_not_compiled` catches, and ValueError for a torn file."""
    from ai_edge_litert.compiled_model import CompiledModel
    from ai_edge_litert.interpreter import Interpreter
    from ai_edge_litert.options import CpuOptions, Options

    Interpreter(model_path=str(path))  # Checks the file, within a millisecond. On a torn one, CompiledModel crashes.
    of_processor = CpuOptions(num_threads=threads, xnnpack_weight_cache_path=IN_MEMORY)
    return CompiledModel.from_file(str(path), environment=_environment(), options=Options(cpu_options=of_processor))


@cache
def _environment() -> Any:
    """One for all sessions of a process: each takes milliseconds, and writes twenty lines to the log.

    It has compilers for no other device. LiteRT would look for those of its package with each program.
    """
    from ai_edge_litert.environment import Environment

    return Environment.create(compiler_plugin_path=str(Path(__file__).parent))


class _Call(NamedTuple):
    """A signature, with a buffer for each of its arrays by name."""

    model: Any
    number: int
    inputs: dict[str, Any]
    outputs: dict[str, Any]

    def run(self) -> None:
        self.model.run_by_index(self.number, [*self.inputs.values()], [*self.outputs.values()])


def _call(model: Any, signature: str) -> _Call:
    """The signature with new buffers. Those of its inputs have zeros."""
    number = model.get_signature_index(signature)
    names = model.get_signature_by_index(number)
    inputs = dict(zip(names["inputs"], model.create_input_buffers(number), strict=True))
    for buffer in inputs.values():
        buffer.write(np.zeros(buffer.get_tensor_details()["shape"], np.float32))
    return _Call(model, number, inputs, dict(zip(names["outputs"], model.create_output_buffers(number), strict=True)))


def _read(buffer: Any) -> np.ndarray:
    shape = buffer.get_tensor_details()["shape"]
    array: np.ndarray = buffer.read(prod(shape), np.float32)
    return array.reshape(shape)


class SharingSession(ChunkedSession):
    """Without a state: every call starts from zeros."""

    def __init__(self, program: ChunkedProgram, path: Path) -> None:
        super().__init__(program)
        self.model = compiled(path, program.request.threads)
        self.turns = self._turns()
        self.turn = 0
        """The call that comes next. All have the same buffers of x and y."""

    def _turns(self) -> list[_Call]:
        return [_call(self.model, "step")]

    def advance(self) -> None:
        """Run the model on the values in its input buffers."""
        self.turns[self.turn].run()
        self.turn = (self.turn + 1) % len(self.turns)

    def output(self) -> np.ndarray:
        """A copy of the last call's y."""
        return _read(self.turns[0].outputs["output_0"])

    def _advance(self, x: np.ndarray) -> np.ndarray:
        self.turns[0].inputs["x"].write(x)
        self.advance()
        return self.output()

    def _read_state(self) -> dict[str, np.ndarray]:
        return {}

    def _write_state(self, state: Arrays) -> None:
        """Every call starts from zeros: there is no state."""

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return SharingBound(self, ring)


class StatefulSharingSession(SharingSession):
    """The state is in the model's variables. Each session has its own."""

    def __init__(self, program: ChunkedProgram, path: Path) -> None:
        super().__init__(program, path)
        self._get, self._set = _call(self.model, "get_state"), _call(self.model, "set_state")

    def _read_state(self) -> dict[str, np.ndarray]:
        self._get.run()
        outputs = self._get.outputs
        return self._state_of_rows([_read(outputs[f"output_{index}"]) for index in range(len(outputs))])

    def _write_state(self, state: Arrays) -> None:
        for index, value in enumerate(self._state_by_row(state)):
            self._set.inputs[f"state{index}"].write(value)
        self._set.run()


class StitchedSharingSession(SharingSession):
    """The state has two sets of buffers. A call reads one and writes the other one."""

    def _turns(self) -> list[_Call]:
        rows = range(self._program.request.stack.layers)
        self._names = [f"{spec.name}{row}" for row in rows for spec in self._states]
        one, other = _call(self.model, "step"), _call(self.model, "step")
        sets = [{name: call.inputs[name] for name in self._names} for call in (one, other)]
        after = [{f"output_{index}": buffer for index, buffer in enumerate(s.values(), 1)} for s in sets]
        return [
            _Call(self.model, one.number, {**one.inputs, **sets[turn]}, {**one.outputs, **after[1 - turn]})
            for turn in range(2)
        ]

    def _read_state(self) -> dict[str, np.ndarray]:
        return self._state_of_rows([_read(self.turns[self.turn].inputs[name]) for name in self._names])

    def _write_state(self, state: Arrays) -> None:
        for name, value in zip(self._names, self._state_by_row(state), strict=True):
            self.turns[self.turn].inputs[name].write(value)


class SharingBound(SynchronousBound):
    """A call runs the model on the next chunk, which has a buffer of its own. It returns when the work is done."""

    def __init__(self, session: SharingSession, ring: list[np.ndarray]) -> None:
        self._session = session
        self._run = partial(session.model.run_by_index, session.turns[0].number)
        self._ring = cycle([self._inputs(chunk) for chunk in ring])
        self._outputs = [[*call.outputs.values()] for call in session.turns]

    def _inputs(self, x: np.ndarray) -> list[list[Any]]:
        """The inputs of each turn."""
        buffer = self._session.model.create_input_buffer_by_name("step", "x")
        buffer.write(x)
        return [[*{**call.inputs, "x": buffer}.values()] for call in self._session.turns]

    def __call__(self) -> None:
        session = self._session
        turn = session.turn
        self._run(next(self._ring)[turn], self._outputs[turn])
        session.turn = (turn + 1) % len(self._outputs)

    def output(self) -> Arrays:
        return {"y": self._session.output()}


SESSIONS = {"none": SharingSession, "stateful": StatefulSharingSession, "stitched": StitchedSharingSession}
