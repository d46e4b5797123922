"""Program, session and bound call of every route. They convert between NumPy arrays and a stream of tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from rnnbench.backends.base import Arrays, ArraySpec, Artifact, Bound, Program, ProgramFiles, Request
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession, SynchronousBound
from rnnbench.backends.torch import cuda
from rnnbench.backends.torch.device import Transfers, device_of, staging, transfers

inference: Any = torch._C._InferenceMode
"""The guard inside `torch.inference_mode`, which costs 0.5 µs a call instead of 1.3 µs. Inside it, torch tracks no
tensor, and its calls skip autograd."""

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


Chunk = tuple[Tensor] | tuple[Tensor, Tensor]
"""x, and the lengths of its rows where the request is ragged."""
ToNumpy = Callable[[Tensor], np.ndarray]


class Stream(Protocol):
    """One stream through a program. Its methods and tensors are used in inference mode."""

    @property
    def state(self) -> Mapping[str, Tensor]:
        """h (and c) after the last call. They may only be read."""
        ...

    def write(self, state: Mapping[str, Tensor]) -> None:
        """Set the state. The stream may keep the given tensors."""
        ...

    def step(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Advance by one chunk as users do. Returns a new y [chunk, batch, width]. Must not keep x.

        `lengths`, int64 [batch], is given where the request is ragged.
        """
        ...

    def bind(self, ring: Sequence[Chunk], to_numpy: ToNumpy) -> Bound:
        """The fastest calls that advance by the next chunk of the ring. They are made outside of inference mode."""
        ...


class PreparedStream(ABC):
    """A stream whose bound calls are prepared one by one."""

    @abstractmethod
    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> Callable[[], Tensor]:
        """The fastest call that advances by this chunk. It returns a y that the next call may overwrite."""

    def bind(self, ring: Sequence[Chunk], to_numpy: ToNumpy) -> Bound:
        (x, *_), *_ = ring
        kind = TorchBound if x.is_cpu else QueuedBound
        return kind([self.prepare(*chunk) for chunk in ring], to_numpy)


Opener = Callable[[], Stream]


class TorchProgram(ChunkedProgram):
    def __init__(
        self,
        request: Request,
        artifact: Artifact,
        files: ProgramFiles,
        cached: bool,
        open_stream: Opener,
        build_tail: Callable[[], Program],
    ) -> None:
        super().__init__(request, artifact, cached, build_tail)
        self.files = files
        self._open_stream = open_stream
        self._idle: list[Stream] = []
        """Streams of closed sessions, for the next ones. torch frees little of what it loads for a stream: a package of
        AOTInductor stays mapped, and a compiled function leaves modules."""

    def stream(self) -> Stream:
        """A new stream."""
        with inference(True):
            return self._open_stream()

    def open(self) -> TorchSession:
        try:
            session = TorchSession(self, self._idle.pop(), self._idle.append)
        except IndexError:
            stream = self.stream()
            with inference(True):
                return TorchSession(self, stream, self._idle.append)
        session.reset()
        return session

    def close(self) -> None:
        super().close()
        self._idle.clear()


class TorchSession(ChunkedSession):
    """`give_back` gets the stream when the session is closed."""

    def __init__(self, program: TorchProgram, stream: Stream, give_back: Callable[[Stream], object]) -> None:
        super().__init__(program)
        self._stream = stream
        self._give_back = give_back
        self._is_open = True
        device, exchanged = device_of(program.request), DTYPES[self._x.dtype]
        ways = transfers(device, DTYPES[program.request.precision.state], exchanged)
        self._to_device, self._to_host = ways.to_device, ways.to_host
        self._state_ways = {spec.name: _ways_of_state(program.request, device, spec) for spec in self._states}
        # x is copied into this tensor, because the caller's array may be read-only and torch's tensors cannot be.
        self._staged = staging(device, self._whole, exchanged)
        self._staged_array = self._staged.numpy()

    def close(self) -> None:
        super().close()
        if self._is_open:
            self._is_open = False
            self._give_back(self._stream)

    def _advance(self, x: np.ndarray) -> np.ndarray:
        np.copyto(self._staged_array, x)
        with inference(True):
            return self._to_numpy(self._stream.step(self._staged.to(*self._to_device)))

    def _advance_ragged(self, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        np.copyto(self._staged_array, x)
        with inference(True):
            return self._to_numpy(self._stream.step(self._staged.to(*self._to_device), _lengths_tensor(lengths)))

    def _read_state(self) -> dict[str, np.ndarray]:
        with inference(True):
            held = self._stream.state
            return {name: held[name].clone().to(*ways.to_host).numpy() for name, ways in self._state_ways.items()}

    def _write_state(self, state: Arrays) -> None:
        with inference(True):
            ways = self._state_ways
            self._stream.write({name: torch.tensor(a).to(*ways[name].to_device) for name, a in state.items()})

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        with inference(True):
            return self._stream.bind([(torch.tensor(x).to(*self._to_device),) for x in ring], self._to_numpy)

    def _bind_ragged(self, ring: list[tuple[np.ndarray, np.ndarray]]) -> Bound:
        with inference(True):
            chunks = [(torch.tensor(x).to(*self._to_device), _lengths_tensor(lengths)) for x, lengths in ring]
            return self._stream.bind(chunks, self._to_numpy)

    def _to_numpy(self, tensor: Tensor) -> np.ndarray:
        array: np.ndarray = tensor.to(*self._to_host).numpy()
        return array


def _ways_of_state(request: Request, device: torch.device, spec: ArraySpec) -> Transfers:
    """A user's file may have states of other types than x."""
    computed = request.model.state_dtype(spec.name, request.precision.state)
    return transfers(device, getattr(torch, computed), getattr(torch, spec.dtype))


def _lengths_tensor(lengths: np.ndarray) -> Tensor:
    """On the host, whatever the device: torch packs rows by lengths that it reads there."""
    return torch.tensor(lengths, dtype=torch.int64)


class TorchBound(SynchronousBound):
    def __init__(self, calls: Sequence[Callable[[], Tensor]], to_numpy: ToNumpy) -> None:
        self._to_numpy = to_numpy
        self._next_call = cycle(calls).__next__
        self._y: Tensor

    def __call__(self) -> None:
        with inference(True):
            self._y = self._next_call()()

    def output(self) -> Arrays:
        with inference(True):
            return {"y": self._to_numpy(self._y.clone())}


class Queued:
    """A part of a bound call that returns once its work is queued for a GPU."""

    @property
    def stream(self) -> int:
        return cuda.stream()

    def sync(self) -> None:
        cuda.wait()


class QueuedBound(Queued, TorchBound):
    pass
