"""Honest adapters that only look faulty: they keep buffers, sessions or work, and all that they return is right."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from honest_adapter import HonestBound, HonestSession
from waiting import PATIENCE_S

from rnnbench.rnn.arithmetic import Arithmetic


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


class StatesAreTransposed(HonestSession):
    """In memory: the units come before the rows."""

    def compute(self, x):
        y = super().compute(x)
        self.state = {name: np.asfortranarray(array) for name, array in self.state.items()}
        return y

    def _write_state(self, state):
        super()._write_state({name: np.asfortranarray(array) for name, array in state.items()})


class StatesArePadded(HonestSession):
    """Each is the middle of an array of its own, with NaN around it."""

    def compute(self, x):
        y = super().compute(x)
        self.state = {name: self._padded(array) for name, array in self.state.items()}
        return y

    @staticmethod
    def _padded(array):
        around = np.full([size + 2 for size in array.shape], np.nan, array.dtype)
        around[1:-1, 1:-1, 1:-1] = array
        return around[1:-1, 1:-1, 1:-1]


class TwoBuffersForItsState(HonestSession):
    """A call reads one and writes the other."""

    turn = 0

    def compute(self, x):
        y = super().compute(x)
        if self.state:
            buffers = self.__dict__.setdefault("buffers", [{n: a.copy() for n, a in self.state.items()} for _ in "ab"])
            self.turn = 1 - self.turn
            for name, array in self.state.items():
                np.copyto(buffers[self.turn][name], array)
            self.state = dict(buffers[self.turn])
        return y


class TheBatchIsPaddedToFour(HonestSession):
    """With rows of zeros, whose results are dropped."""

    def compute(self, x):
        rows, more = x.shape[1], -x.shape[1] % 4
        self.state = {name: self._with(array, more) for name, array in self.state.items()}
        y = super().compute(self._with(x, more))
        self.state = {name: array[:, :rows].copy() for name, array in self.state.items()}
        return y[:, :rows].copy()

    @staticmethod
    def _with(array, more):
        return np.pad(array, ((0, 0), (0, more), (0, 0)))


class RowsOneByOne(HonestSession):
    def compute(self, x):
        before, outputs, states = self.state, [], []
        for row in range(x.shape[1]):
            outputs.append(self._of_row(x, before, row))
            states.append(self.state)
        self.state = {name: np.concatenate([state[name] for state in states], axis=1) for name in before}
        return np.concatenate(outputs, axis=1)

    def _of_row(self, x, before, row):
        self.state = {name: array[:, [row]] for name, array in before.items()}
        return super().compute(x[:, [row]])


class StepsOneByOne(HonestSession):
    def compute(self, x):
        if not self._streams:
            return super().compute(x)
        return np.concatenate([super(StepsOneByOne, self).compute(step) for step in np.split(x, len(x))])


class WeightsArePackedInTheFirstCall(HonestSession):
    """Of the program. It is slow."""

    def compute(self, x):
        program = self._program.__dict__
        if "packed" not in program:
            time.sleep(2e-3)
            program["packed"] = {name: array.copy() for name, array in self.weights.named(self.model)}
        return super().compute(x)


class BoundCallsArePublicCalls(HonestSession):
    def _bind(self, ring):
        class Bound(HonestBound):
            def __call__(self):
                self.calls += 1
                self.y = self.session.step({"x": self._next()})["y"]

        return Bound(self, ring)


class PublicCallsAreBoundCalls(HonestSession):
    """Each of a ring of its own."""

    def _advance(self, x):
        bound = self._bind([x])
        bound()
        return bound.output()["y"]


class BoundCallsWorkInAThread(HonestSession):
    """One at a time. Everything else waits for them."""

    pool = ThreadPoolExecutor(1)

    def __init__(self, program):
        self.works: list[Future[None]] = []
        super().__init__(program)

    def settle(self):
        while self.works:
            self.works.pop(0).result(PATIENCE_S)

    def _advance(self, x):
        self.settle()
        return super()._advance(x)

    def _read_state(self):
        self.settle()
        return super()._read_state()

    def _write_state(self, state):
        self.settle()
        super()._write_state(state)

    def _bind(self, ring):
        class Bound(HonestBound):
            def __call__(self):
                self.session.works.append(self.session.pool.submit(super().__call__))

            def sync(self):
                self.session.settle()

            def output(self):
                self.sync()
                return super().output()

        return Bound(self, ring)


class TheNextChunkIsConvertedAhead(HonestSession):
    """Of its copy of the ring, while nobody waits."""

    def _bind(self, ring):
        class Bound(HonestBound):
            ahead = None

            def __call__(self):
                self.calls += 1
                x = self._next() if self.ahead is None else self.ahead
                self.y = self.session.compute(x)
                self.ahead = self._next().astype(np.float64).astype(x.dtype)

        return Bound(self, ring)


class OneTableForAllRings(HonestSession):
    """Of a session. Each knows its first and its next place."""

    def _bind(self, ring):
        table = self.__dict__.setdefault("table", [])
        first, table[len(table) :] = len(table), [x.copy() for x in ring]

        class Bound(HonestBound):
            def __call__(self):
                self.y = self.session.compute(table[first + self.calls % len(self.ring)])
                self.calls += 1

        return Bound(self, ring)


class RemembersAllOfACall(HonestSession):
    """By every byte of x and of the state. What it returns are copies."""

    def compute(self, x):
        known = self._program.__dict__.setdefault("known", {})
        key = x.tobytes(), x.shape, *(array.tobytes() for array in self.state.values())
        if key not in known:
            known[key] = super().compute(x), dict(self.state)
        y, state = known[key]
        self.state = {name: array.copy() for name, array in state.items()}
        return y.copy()


class ItsScratchIsNoNumber(HonestSession):
    """Before each call. The call writes all of it."""

    scratch = np.empty(1 << 12, np.float32)

    def compute(self, x):
        self.scratch.fill(np.nan)
        part = self.scratch[: x.size]
        part[:] = x.ravel()
        return super().compute(part.reshape(x.shape).astype(x.dtype))


class ZerosHaveNoSign(HonestSession):
    def compute(self, x):
        return super().compute(x) + np.float32(0)


class EveryNanIsNegative(HonestSession):
    """As the processor makes them."""

    def compute(self, x):
        y = super().compute(x)
        y[np.isnan(y)] = np.copysign(np.float32(np.nan), np.float32(-1))
        return y


class ALookIsKeptUntilTheNextCall(HonestSession):
    """And each caller gets a copy."""

    seen = None

    def compute(self, x):
        self.seen = None
        return super().compute(x)

    def _write_state(self, state):
        self.seen = None
        super()._write_state(state)

    def _read_state(self):
        self.seen = self.seen or super()._read_state()
        return {name: array.copy() for name, array in self.seen.items()}


class OneLockForAllSessions(HonestSession):
    lock = threading.RLock()

    def compute(self, x):
        with self.lock:
            return super().compute(x)


class LongCallsAreCutInTwo(HonestSession):
    """Of three chunks and more."""

    def _in_chunks(self, x):
        cut = len(x) // 2 // self._chunk * self._chunk
        if len(x) < 3 * self._chunk or not cut:
            return super()._in_chunks(x)
        return np.concatenate([self.step({"x": part})["y"] for part in (x[:cut], x[cut:])])


class RefusesInItsOwnWords(HonestSession):
    def step(self, inputs):
        try:
            return super().step(inputs)
        except Exception:  # noqa: BLE001 whatever was wrong
            raise KeyError("the runtime says no") from None


class NanInAnActivationIsAHalf(HonestSession):
    """As where an activation is read from a table, with other ends than numbers have."""

    class arithmetic(Arithmetic):
        def activated(self, value):
            return super().activated(np.where(np.isnan(value), np.float32(0.5), value))


class CompilesEachLengthAtItsFirstCall(HonestSession):
    """Of the program."""

    def _in_chunks(self, x):
        compiled = self._program.__dict__.setdefault("compiled", set())
        if len(x) not in compiled:
            compiled.add(len(x))
            time.sleep(1e-3)
        return super()._in_chunks(x)


class KeepsAPoolThatFills(HonestSession):
    """A block for each of the first 300 calls of the program, and none later."""

    def compute(self, x):
        pool = self._program.__dict__.setdefault("pool", [])
        if len(pool) < 300:
            pool.append(bytearray(1024))
        return super().compute(x)


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
    StatesAreTransposed,
    StatesArePadded,
    TwoBuffersForItsState,
    TheBatchIsPaddedToFour,
    RowsOneByOne,
    StepsOneByOne,
    WeightsArePackedInTheFirstCall,
    BoundCallsArePublicCalls,
    PublicCallsAreBoundCalls,
    BoundCallsWorkInAThread,
    TheNextChunkIsConvertedAhead,
    OneTableForAllRings,
    RemembersAllOfACall,
    ItsScratchIsNoNumber,
    ZerosHaveNoSign,
    EveryNanIsNegative,
    ALookIsKeptUntilTheNextCall,
    OneLockForAllSessions,
    LongCallsAreCutInTwo,
    RefusesInItsOwnWords,
    NanInAnActivationIsAHalf,
    CompilesEachLengthAtItsFirstCall,
    KeepsAPoolThatFills,
)
