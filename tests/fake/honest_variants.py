"""Honest adapters that only look faulty: they keep buffers, sessions or work, and all that they return is right."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from honest_adapter import HonestBound, HonestSession
from waiting import PATIENCE_S


class KeepsItsLastInput(HonestSession):
    """And never reads it again."""

    def compute(self, x):
        self.last = x
        return super().compute(x)


class OutputsOfBuffersThatTheCallerDropped(HonestSession):
    """A buffer is used again once nobody else has it."""

    def _advance(self, x):
        y = self.compute(x)
        buffers = self.__dict__.setdefault("buffers", [])
        for buffer in buffers:
            if sys.getrefcount(buffer) == 3 and buffer.shape == y.shape:  # the list, the loop and the argument
                buffer[:] = y
                return buffer
        buffers.append(y)
        return y


class OutputsInAnotherOrderOfMemory(HonestSession):
    def _advance(self, x):
        return np.asfortranarray(self.compute(x))


class OutputsThatAreSlices(HonestSession):
    """Each of an array of its own, which has padding around it."""

    def _advance(self, x):
        y = self.compute(x)
        padded = np.zeros((len(y) + 2, y.shape[1], y.shape[2] + 3), y.dtype)
        padded[1:-1, :, :-3] = y
        return padded[1:-1, :, :-3]


class StatesThatAreInterleaved(HonestSession):
    """h and c are every second row of one array, which is a copy."""

    def _read_state(self):
        names = list(self.state)
        both = np.stack([self.state[name] for name in names], axis=1)
        return {name: both[:, index] for index, name in enumerate(names)}


class WorksInAThread(HonestSession):
    pool = ThreadPoolExecutor(1)

    def compute(self, x):
        return self.pool.submit(super().compute, x).result(PATIENCE_S)


class OneScratchForAllSessions(HonestSession):
    """Overwritten by every call, and read by none before it has written it."""

    scratch = np.zeros(1 << 12, np.float32)

    def compute(self, x):
        part = self.scratch[: x.size]
        part[:] = x.astype(np.float32).ravel()
        return super().compute(x)


class QueuesItsBoundCalls(HonestSession):
    """A bound call returns at once. What it was to do is done when anything is asked of the session."""

    def __init__(self, program):
        self.queue: list[QueuedBound] = []
        super().__init__(program)

    def finish(self):
        while self.queue:
            self.queue.pop(0).work()

    def _advance(self, x):
        self.finish()
        return super()._advance(x)

    def _advance_ragged(self, x, lengths):
        self.finish()
        return super()._advance_ragged(x, lengths)

    def _read_state(self):
        self.finish()
        return super()._read_state()

    def _write_state(self, state):
        self.finish()
        super()._write_state(state)

    def _bind(self, ring):
        return QueuedBound(self, ring)


class QueuedBound(HonestBound):
    def __call__(self):
        self.session.queue.append(self)

    def work(self):
        super().__call__()

    def sync(self):
        self.session.finish()

    def output(self):
        self.sync()
        return super().output()


class SessionsFromAPool(HonestSession):
    """A closed session's buffers are those of the next one, which starts from zeros."""

    def __init__(self, program):
        super().__init__(program)
        self.closed = False
        self.free = program.__dict__.setdefault("free", [])
        if self.free:
            self.state = self.free.pop()
            for array in self.state.values():
                array[...] = 0

    def close(self):
        if not self.closed:
            self.closed = True
            self.free.append({name: array.copy() for name, array in self.state.items()})
        super().close()


class ItsRingIsACopy(HonestSession):
    def _bind(self, ring):
        return super()._bind([chunk.copy() for chunk in ring])


class CarriesAResetOutAtTheNextCall(HonestSession):
    """Or when its state is read. A state that is set meanwhile takes its place."""

    pending = False

    def reset(self):
        self.pending = True

    def _settle(self):
        if self.pending:
            self.pending = False
            super().reset()

    def compute(self, x):
        self._settle()
        return super().compute(x)

    def _read_state(self):
        self._settle()
        return super()._read_state()

    def _write_state(self, state):
        self.pending = False
        super()._write_state(state)


class WritesNoStateThatItHas(HonestSession):
    def _write_state(self, state):
        if self.state.keys() != state.keys() or any(a.tobytes() != self.state[n].tobytes() for n, a in state.items()):
            super()._write_state(state)


class AScratchForEachThread(HonestSession):
    """Of all sessions. A session may be used by one thread after another."""

    of_threads = threading.local()

    def compute(self, x):
        self.of_threads.x = x
        ys = []
        for step in range(len(x) if self._streams else 1):
            part = self.of_threads.x
            ys.append(super().compute(part[step : step + 1] if self._streams else part))
        return np.concatenate(ys)


VARIANTS = (
    KeepsItsLastInput,
    OutputsOfBuffersThatTheCallerDropped,
    OutputsInAnotherOrderOfMemory,
    OutputsThatAreSlices,
    StatesThatAreInterleaved,
    WorksInAThread,
    OneScratchForAllSessions,
    QueuesItsBoundCalls,
    SessionsFromAPool,
    ItsRingIsACopy,
    CarriesAResetOutAtTheNextCall,
    WritesNoStateThatItHas,
    AScratchForEachThread,
)
