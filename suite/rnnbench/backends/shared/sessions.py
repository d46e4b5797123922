"""What every RNN session does alike: checking arrays, cutting a call into chunks, running the rest of a call.

An adapter's session adds four small methods (`_advance`, `_read_state`, `_write_state`, `_bind`). The rest of a call is
what the chunk does not divide.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import prod

import numpy as np

from rnnbench.backends.base import (
    ArrayError,
    Arrays,
    ArraySpec,
    Artifact,
    Bound,
    Program,
    ProgramFiles,
    Request,
    Session,
    Signature,
)
from rnnbench.rnn import PARALLEL, CompoundNetwork, state_by_array, state_by_layer

STORED_AS = {"bfloat16": "float32"}
"""The type that NumPy does not have, and the one in which sessions exchange its arrays. A state of int8 has whole
numbers; with int8 weights, x, y and the state are float32."""


def rnn_signature(request: Request) -> Signature:
    """The arrays of a request: x, y and, unless the state is `none`, the state."""
    model = request.model
    dtype = STORED_AS.get(request.precision.state, request.precision.state)
    arrays = [
        ArraySpec("x", "input", ("n", "batch", model.input), dtype),
        ArraySpec("y", "output", ("n", "batch", model.width), dtype),
    ]
    if request.ragged:
        arrays.append(ArraySpec("lengths", "input", ("batch",), "int32"))
    if request.strategy.state != "none":
        for name, (rows, _, size) in model.state_shapes(request.batch).items():
            own_dtype = model.state_dtype(name, dtype)
            arrays.append(ArraySpec(name, "state", (rows, "batch", size), STORED_AS.get(own_dtype, own_dtype)))
    return Signature(tuple(arrays))


def checked(spec: ArraySpec, array: object, sizes: Mapping[str, int]) -> np.ndarray:
    """`array`, if it fits `spec` with `sizes` for the named dimensions. An `n` without a size may be any size ≥ 1."""
    if not isinstance(array, np.ndarray):
        raise ArrayError(f"{spec.name}: expected a NumPy array, got {type(array).__name__}")
    if array.dtype != spec.dtype:
        raise ArrayError(f"{spec.name}: expected dtype {spec.dtype}, got {array.dtype}; cast it before the call")
    expected = [sizes.get(d, d) if isinstance(d, str) else d for d in spec.shape]
    fits = array.ndim == len(expected) and all(
        got >= 1 if size == "n" else got == size for got, size in zip(array.shape, expected, strict=False)
    )
    if not fits:
        shape = ", ".join("n ≥ 1" if d == "n" else str(d) for d in expected)
        raise ArrayError(f"{spec.name}: expected shape [{shape}], got {list(array.shape)}")
    return array


def contiguous(array: np.ndarray) -> np.ndarray:
    """The array if it is C-contiguous and no stride is negative, and else a copy.

    NumPy also calls an array contiguous that is reversed along a dimension of one. PyTorch refuses it.
    """
    array = np.ascontiguousarray(array)
    return array if min(array.strides, default=0) >= 0 else array.copy()


def checked_names(what: str, specs: Sequence[ArraySpec], arrays: Arrays) -> None:
    expected, got = [spec.name for spec in specs], list(arrays)
    if sorted(expected) != sorted(got):
        raise ArrayError(f"{what}: expected the arrays {expected or 'none'}, got {got or 'none'}")


def of_one_step(request: Request) -> Request:
    """The request of the program that runs the rest of a call. A loop stays a loop, copies of the cell become one, and
    blocks become a scan of one step."""
    kind = request.strategy.time.partition(":")[0]
    time = PARALLEL if kind == "chunked" else kind
    return replace(request, strategy=replace(request.strategy, time=time, chunk=1))


class ChunkedProgram(ABC):
    """A program of one chunk size. `build_tail` makes the program of one step, which runs the rest of a call.

    A subclass sets `files`.
    """

    def __init__(self, request: Request, artifact: Artifact, cached: bool, build_tail: Callable[[], Program]) -> None:
        self.request = request
        self.signature = rnn_signature(request)
        self.artifact = artifact
        self.files = ProgramFiles(())
        self.cached = cached
        self.tail_build_s: float | None = None
        self._build_tail = build_tail
        self._tail: Program | None = None

    def tail(self) -> Program:
        if self._tail is None:
            start = time.perf_counter()
            self._tail = self._build_tail()
            self.tail_build_s = time.perf_counter() - start
        return self._tail

    @abstractmethod
    def open(self) -> Session: ...

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()
            self._tail = None


class ChunkedSession(ABC):
    """A stream through a ChunkedProgram. Every public method checks its arguments before anything changes."""

    def __init__(self, program: ChunkedProgram) -> None:
        request = program.request
        self._program = program
        self._chunk = request.strategy.chunk
        self._streams = request.strategy.state != "none"
        self._sizes = {"batch": request.batch}
        self._x, *others = program.signature.of("input")
        self._lengths = others[0] if others else None
        (self._y,) = program.signature.of("output")
        self._states = program.signature.of("state")
        self._whole = (self._chunk, request.batch, request.model.input)
        self._dtype = np.dtype(self._x.dtype)
        self._strides = np.empty(self._whole, self._dtype).strides
        self._tail: Session | None = None

    @abstractmethod
    def _advance(self, x: np.ndarray) -> np.ndarray:
        """Run one chunk, x [chunk, batch, input] (C-contiguous, perhaps read-only), and return a y the caller owns."""

    @abstractmethod
    def _read_state(self) -> dict[str, np.ndarray]:
        """Copies of the state. Not called where there is none."""

    @abstractmethod
    def _write_state(self, state: Arrays) -> None:
        """Take (a copy of) a checked, C-contiguous state. Not called where there is none."""

    @abstractmethod
    def _bind(self, ring: list[np.ndarray]) -> Bound:
        """Bind copies of checked, C-contiguous chunks. These may be the caller's own arrays."""

    def _advance_ragged(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """As `_advance`, where each row of the batch has its own length. An adapter that covers LENGTHS writes it.

        It is not called for others: the registry refuses an extra that an adapter's support does not cover.
        """
        raise NotImplementedError(f"{type(self).__name__}: its support covers `lengths`; write _advance_ragged")

    def _bind_ragged(self, ring: list[tuple[np.ndarray, np.ndarray]]) -> Bound:
        """As `_bind`, with the lengths of each chunk's rows."""
        raise NotImplementedError(f"{type(self).__name__}: its support covers `lengths`; write _bind_ragged")

    def reset(self) -> None:
        if self._streams:
            self._write_state({s.name: np.zeros(self._shape(s), s.dtype) for s in self._states})

    def get_state(self) -> Arrays:
        return self._read_state() if self._streams else {}

    def set_state(self, state: Arrays) -> None:
        checked_names("state", self._states, state)
        arrays = {s.name: contiguous(checked(s, state[s.name], self._sizes)) for s in self._states}
        if self._streams:
            self._write_state(arrays)

    def step(self, inputs: Arrays) -> Arrays:
        x = inputs.get("x")
        # This is timed: a whole chunk takes these comparisons only. Everything else is checked closely below.
        if (
            len(inputs) == 1
            and self._lengths is None
            and isinstance(x, np.ndarray)
            and x.shape == self._whole
            and x.dtype == self._dtype
        ):
            return {"y": self._advance(x if x.strides == self._strides else contiguous(x))}
        if self._lengths is not None:
            return {"y": self._advance_ragged(*self._checked_ragged(self._lengths, inputs))}
        checked_names("inputs", (self._x,), inputs)
        x = contiguous(checked(self._x, x, self._sizes))
        steps = x.shape[0]
        if not self._streams:
            raise ArrayError(
                f"x: expected {self._chunk} steps, got {steps}; with state 'none' every call is a whole sequence"
            )
        return {"y": self._in_chunks(x)}

    def bind(self, ring: Sequence[Arrays]) -> Bound:
        if not ring:
            raise ArrayError("ring: expected at least one chunk, got none")
        if self._lengths is not None:
            return self._bind_ragged([self._checked_ragged(self._lengths, inputs) for inputs in ring])
        sizes = {**self._sizes, "n": self._chunk}
        chunks = []
        for inputs in ring:
            checked_names("inputs", (self._x,), inputs)
            chunks.append(contiguous(checked(self._x, inputs["x"], sizes)))
        return self._bind(chunks)

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()
            self._tail = None

    def _checked_ragged(self, spec: ArraySpec, inputs: Arrays) -> tuple[np.ndarray, np.ndarray]:
        checked_names("inputs", (self._x, spec), inputs)
        x = checked(self._x, inputs["x"], {**self._sizes, "n": self._chunk})
        lengths = checked(spec, inputs["lengths"], self._sizes)
        if lengths.min() < 1 or lengths.max() > self._chunk:
            raise ArrayError(f"lengths: expected 1 to {self._chunk} steps, got {lengths.min()} to {lengths.max()}")
        return contiguous(x), contiguous(lengths)

    def _in_chunks(self, x: np.ndarray) -> np.ndarray:
        steps, chunk = x.shape[0], self._chunk
        y = np.empty((steps, x.shape[1], self._program.request.model.width), self._y.dtype)
        whole = steps - steps % chunk
        for start in range(0, whole, chunk):
            y[start : start + chunk] = self._advance(x[start : start + chunk])
        if whole < steps:
            if self._tail is None:
                self._tail = self._program.tail().open()
            self._tail.set_state(self.get_state())
            for index in range(whole, steps):
                y[index : index + 1] = self._tail.step({"x": x[index : index + 1]})["y"]
            self.set_state(self._tail.get_state())
        return y

    def _shape(self, spec: ArraySpec) -> tuple[int, ...]:
        return tuple(self._sizes[d] if isinstance(d, str) else d for d in spec.shape)

    def _flat_state(self, state: Arrays) -> np.ndarray:
        """h (and c) one after the other, as the flat state of a program that has one array for both."""
        return np.concatenate([state[spec.name].ravel() for spec in self._states])

    def _state_of_flat(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """Copies of h (and c) from that flat array."""
        state = {}
        for spec in self._states:
            shape = self._shape(spec)
            size = prod(shape)
            state[spec.name], flat = flat[:size].reshape(shape).copy(), flat[size:]
        return state

    def _state_by_row(self, state: Arrays) -> list[np.ndarray]:
        """The state of the first layer and direction, then of the next: [batch, size] each, views of `state`.

        In a compound network in one program, each array is one row.
        """
        if isinstance(self._program.request.model, CompoundNetwork):
            return [state[name] for name in self._program.request.model.state_shapes(1)]
        rows = {name: list(array) for name, array in state.items()}
        return [value for of_layer in state_by_layer(self._program.request.model, rows) for value in of_layer]

    def _state_of_rows(self, values: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """Copies of the state's arrays from that list."""
        network, rest = self._program.request.model, iter(values)
        if isinstance(network, CompoundNetwork):
            return {name: np.array(array) for name, array in zip(network.state_shapes(1), values, strict=True)}
        states = [tuple(islice(rest, len(layer.states))) for layer in network.graph]
        return {name: np.stack(rows) for name, rows in state_by_array(network, states).items()}


class AlternatingSession(ChunkedSession):
    """A session whose state has two sets of buffers: a call reads one and writes the other, and no state is moved.

    `turn` is the set that holds the state now. A call of an adapter reads set `turn` and then sets `turn = 1 - turn`.
    """

    def __init__(self, program: ChunkedProgram) -> None:
        super().__init__(program)
        self.turn = 0
        self._state_sets = [{s.name: np.zeros(self._shape(s), s.dtype) for s in self._states} for _ in range(2)]

    def _read_state(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self._state_sets[self.turn].items()}

    def _write_state(self, state: Arrays) -> None:
        for name, array in self._state_sets[self.turn].items():
            np.copyto(array, state[name])


class SynchronousBound:
    """A bound call whose work is done when the call returns. It adds nothing to a call."""

    __slots__ = ()

    def sync(self) -> None:
        """Nothing is left to wait for."""
