"""Programs that compute the right numbers and move work out of the timed call; and honest ones that look like it.

The work that they move is `burn`: CPU time beside the honest arithmetic. So every check of values passes.
"""

from __future__ import annotations

import gc
import multiprocessing
import queue
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from honest_adapter import HonestBound, HonestProgram, HonestSession
from waiting import PATIENCE_S, join

from rnnbench.backends import request_of
from rnnbench.backends.base import ProgramFiles
from rnnbench.cases import Trial
from rnnbench.worker import commands
from rnnbench.worker.trial_worker import TrialWorker

WORK_S = 0.0006
"""Seconds of work that a call of a liar leaves to others: about what the arithmetic takes."""
LONG_S = 0.008
"""The same, of the few calls of a path that waits between them."""
now, cpu, sleep = time.perf_counter, time.thread_time, time.sleep
NANOSECONDS = time.perf_counter_ns


@dataclass(frozen=True)
class Moved:
    """A program, the path that is sampled, and a part of the sentence that must be found; none of an honest one."""

    session: type[HonestSession]
    sentence: str = ""
    path: str = "bound"
    trial: dict[str, Any] = field(default_factory=dict)
    """What the trial must be. `beside` is another path that is sampled too, `scenario` one that is measured."""

    @property
    def name(self) -> str:
        return self.session.__name__


LIARS: list[Moved] = []
HONEST: list[Moved] = []


def lies(sentence: str, path: str = "bound", **trial: Any) -> Callable[[type], type]:
    """Enlists a session, or a bound call of an otherwise honest session, as a liar."""
    return lambda made: _enlist(LIARS, made, sentence, path, trial)


def honest(path: str = "bound", **trial: Any) -> Callable[[type], type]:
    return lambda made: _enlist(HONEST, made, "", path, trial)


def _enlist(kind: list[Moved], made: type, sentence: str, path: str, trial: dict[str, Any]) -> type:
    session = made
    if issubclass(made, HonestBound):
        session = type(made.__name__, (HonestSession,), {"_bind": lambda self, ring: made(self, ring)})
    kind.append(Moved(session, sentence, path, trial))
    return made


def burn(seconds: float) -> None:
    """Use so much CPU time."""
    end = cpu() + seconds
    while cpu() < end:
        continue


# Into the first look at a result.


@lies("first look")
class WorkInOutput(HonestBound):
    waiting = 0

    def __call__(self):
        super().__call__()
        self.waiting += 1

    def output(self):
        burn(self.waiting * WORK_S)
        self.waiting = 0
        return super().output()


@lies("first look", state="none")
class WorkInOutputOfWholeSequences(WorkInOutput):
    pass


@lies("first look")
class WorkInGetState(HonestSession):
    waiting = 0

    def _bind(self, ring):
        session = self

        class Bound(HonestBound):
            def __call__(self):
                super().__call__()
                session.waiting += 1

        return Bound(self, ring)

    def _read_state(self):
        burn(self.waiting * WORK_S)
        self.waiting = 0
        return super()._read_state()


@lies("first look", path="public")
class PublicWorkInGetState(HonestSession):
    waiting = 0

    def _advance(self, x):
        self.waiting += 1
        return super()._advance(x)

    def _read_state(self):
        burn(self.waiting * WORK_S)
        self.waiting = 0
        return super()._read_state()


class Device:
    """A queue that somebody else empties."""

    def __init__(self, work: Callable[[float], object]) -> None:
        self.queue: queue.Queue[float] = queue.Queue()
        self._work = work
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self._work(self.queue.get())
            self.queue.task_done()


class QueueingBound(HonestBound):
    """`sync` does not wait for what is queued, and `output` does."""

    seconds = WORK_S
    work = staticmethod(sleep)

    def __init__(self, session, ring):
        super().__init__(session, ring)
        self.device = Device(type(self).work)

    def __call__(self):
        super().__call__()
        self.device.queue.put(self.seconds)

    def output(self):
        self.device.queue.join()
        return super().output()


@lies("first look")
class DeviceThatNobodyWaitsFor(QueueingBound):
    """On a busy machine a call may take some milliseconds. What is queued takes longer, or it would be done already."""

    seconds = 0.005


@lies("first look", path="paced")
class DeviceWorksWhileTheStreamWaits(QueueingBound):
    seconds = 0.02


@lies("first look", path="cold")
class DeviceWorksWhileCachesAreEmptied(QueueingBound):
    seconds = 0.02


@lies("work is done between the calls", path="paced")
class ThreadWorksBetweenPacedCalls(QueueingBound):
    seconds = LONG_S
    work = staticmethod(burn)

    def output(self):
        return HonestBound.output(self)


@lies("done during the wait", path="paced", beside="bound")
class ADeviceMakesTheCallWhileTheStreamWaits(HonestSession):
    """A call waits for the one before it only: what is left at the end of a block is one short call."""

    made: threading.Event | None = None

    def until_made(self):
        if self.made is not None:
            assert self.made.wait(PATIENCE_S), "the thread does not end"
            self.made = None

    def _read_state(self):
        self.until_made()
        return super()._read_state()

    def _write_state(self, state):
        self.until_made()
        super()._write_state(state)

    def _bind(self, ring):
        session = self

        class Bound(HonestBound):
            def __call__(self):
                session.until_made()
                session.made = made = threading.Event()
                threading.Thread(target=self._make, args=(made,), daemon=True).start()

            def _make(self, made):
                sleep(WORK_S)
                super().__call__()
                made.set()

            def output(self):
                session.until_made()
                return super().output()

        return Bound(self, ring)


def _child(receive: Any, answer: Any) -> None:
    while (calls := receive.recv()) is not None:
        burn(calls * WORK_S)
        answer.send(None)


@lies("first look")
class ChildWorksUntilSomebodyLooks(HonestBound):
    waiting = 0

    def __init__(self, session, ring):
        super().__init__(session, ring)
        receive, self.send = multiprocessing.Pipe(duplex=False)
        self.answered, answer = multiprocessing.Pipe(duplex=False)
        fork = multiprocessing.get_context("fork")
        self.child = fork.Process(target=_child, args=(receive, answer), daemon=True)
        self.child.start()

    def __call__(self):
        super().__call__()
        self.waiting += 1

    def output(self):
        if self.waiting:
            self.send.send(self.waiting)
            assert self.answered.poll(PATIENCE_S), "the child does not answer"
            self.answered.recv()
        self.waiting = 0
        return super().output()

    def __del__(self):
        self.child.kill()
        join(self.child)


@lies("longer after 32 calls than after one")
class OnlyWhatIsNotForgottenIsComputed(HonestSession):
    """Bound calls are put off to the first look, which makes the last of them only: the network forgets the others."""

    def __init__(self, program):
        self.put_off: deque[np.ndarray] = deque(maxlen=24)
        super().__init__(program)

    def _bind(self, ring):
        session = self

        class Bound(HonestBound):
            def __call__(self):
                session.put_off.append(self._next())

            def output(self):
                session.make_up()
                return {"y": session.y.copy()}

        return Bound(self, ring)

    def make_up(self):
        while self.put_off:
            self.y = super().compute(self.put_off.popleft())

    def compute(self, x):
        self.make_up()
        return super().compute(x)

    def _read_state(self):
        self.make_up()
        return super()._read_state()

    def _write_state(self, state):
        self.put_off.clear()
        super()._write_state(state)


@lies("longer after 32 calls than after one", path="public")
class PublicWorkOfTheLastCallsInGetState(PublicWorkInGetState):
    """Of no more calls than a look may take in any case."""

    def _advance(self, x):
        y = super()._advance(x)
        self.waiting = min(self.waiting, 12)
        return y


# Into what comes before a block.


@lies("longer after 32 calls than after one")
class WorkInEverySecondLook(WorkInOutput):
    """A first look is cheap."""

    looks = 0

    def output(self):
        self.looks += 1
        return HonestBound.output(self) if self.looks % 2 else super().output()


@lies("setting the state")
class WorkInSetState(HonestSession):
    """Does the work of the coming calls for as many as the last block had."""

    calls_before = 0

    def _write_state(self, state):
        if self.calls_before > 8:
            burn(self.calls_before * WORK_S)
        self.calls_before = 0
        super()._write_state(state)

    def _bind(self, ring):
        session = self

        class Bound(HonestBound):
            def __call__(self):
                super().__call__()
                session.calls_before += 1

        return Bound(self, ring)


@lies("done while binding", state="none")
class BindingComputesTheRing(HonestBound):
    def __init__(self, session, ring):
        super().__init__(session, ring)
        self.known = []
        for chunk in ring:
            burn(10 * WORK_S)
            self.known.append(session.compute(chunk))

    def __call__(self):
        self.y = self.known[self.calls % len(self.known)]
        self.calls += 1


# Into the garbage collection after a block.


class Cycle:
    """Only a collection ends it."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        burn(5 * WORK_S)


@lies("in the collection")
class WorkInTheCollection(HonestBound):
    def __call__(self):
        super().__call__()
        Cycle()


@lies("in the collection", path="public")
class PublicWorkInTheCollection(HonestSession):
    def _advance(self, x):
        Cycle()
        return super()._advance(x)


# Into what comes after a block, for the next one.


class Ahead(HonestSession):
    """Every block begins with the same state, so its calls can be made beforehand."""

    given: dict[str, np.ndarray]
    bound: AheadBound | None = None

    def __init__(self, program):
        self.ready: deque[tuple[np.ndarray, dict[str, np.ndarray]]] = deque()
        self.ready_at = 0
        super().__init__(program)

    def _bind(self, ring):
        self.bound = AheadBound(self, ring)
        return self.bound

    def _write_state(self, state):
        super()._write_state(state)
        if any(array.any() for array in state.values()):
            self.given = dict(self.state)

    def work_ahead(self):
        if self.bound is None or not hasattr(self, "given"):
            return
        state, self.state = self.state, dict(self.given)
        self.ready.clear()
        self.ready_at = self.bound.calls
        for number in range(64):
            burn(WORK_S)
            y = self.compute(self.bound.ring[(self.ready_at + number) % len(self.bound.ring)])
            self.ready.append((y, self.state))
        self.state = state


class AheadBound(HonestBound):
    def __call__(self):
        session = self.session
        begins = self.calls == session.ready_at and all(
            np.array_equal(array, session.state[name]) for name, array in getattr(session, "given", {}).items()
        )
        if not begins and self.calls == session.ready_at:
            session.ready.clear()
        if session.ready:
            self._next()
            self.calls += 1
            self.y, session.state = session.ready.popleft()
        else:
            burn(WORK_S)
            super().__call__()


@lies("a second look")
class TheNextBlockIsComputedInALook(Ahead):
    def _read_state(self):
        self.work_ahead()
        return super()._read_state()


@lies("nothing is left to wait for")
class TheNextBlockIsComputedInASync(Ahead):
    """That of the suite after its looks: no call was made since the last one."""

    synced = -1

    def _bind(self, ring):
        session = self

        class Bound(AheadBound):
            def sync(self):
                if session.synced == self.calls:
                    session.work_ahead()
                session.synced = self.calls

        self.bound = Bound(self, ring)
        return self.bound


# Into a few of the calls.


@lies("nothing is left to wait for")
class WorkInASyncWhileTheCollectorIsOn(WorkInOutput):
    """It is off while calls are timed, and while somebody looks at their results."""

    def sync(self):
        if gc.isenabled():
            burn(self.waiting * WORK_S)
            self.waiting = 0

    def output(self):
        return HonestBound.output(self)


@lies("a few calls")
class EverySixteenthCallWorksForAll(HonestBound):
    def __call__(self):
        super().__call__()
        if self.calls % 16 == 0:
            burn(16 * 5 * WORK_S)


# Into earlier calls with the same numbers.


class Remembering(HonestSession):
    def compute(self, x):
        memory = vars(type(self)).get("memory") if self.shared else self.__dict__.setdefault("own", {})
        key = (x.tobytes(), *(array.tobytes() for array in self.state.values()))
        if key not in memory:
            burn(self.work_s)
            memory[key] = (super().compute(x), self.state)
        y, state = memory[key]
        self.state = {name: array.copy() for name, array in state.items()}
        return y.copy()

    shared = False
    work_s = WORK_S


@lies("used again")
class RemembersWhatItComputed(Remembering):
    pass


@lies("used again")
class RemembersForAllSessions(Remembering):
    shared = True
    memory: dict[Any, Any] = {}  # noqa: RUF012 that it is shared is the lie


@lies("used again")
class RemembersLongCalls(Remembering):
    work_s = LONG_S


@lies("used again", path="public")
class PublicCallsAreRemembered(Remembering):
    pass


@lies("used again", path="public", state="none")
class PublicSequencesAreRemembered(Remembering):
    pass


@lies("new ring")
class RemembersOnceItHasSettled(Remembering):
    """Only results of calls long after a state was set, where a ring comes to the same states again and again."""

    since = 0

    def compute(self, x):
        self.since += 1
        if self.since > 40:
            return super().compute(x)
        burn(self.work_s)
        return HonestSession.compute(self, x)

    def _write_state(self, state):
        self.since = 0
        super()._write_state(state)


@lies("new ring", state="none")
class RemembersTheRing(HonestBound):
    """What each of its chunks gave: where there is no state, that is all there is to a call."""

    def __init__(self, session, ring):
        super().__init__(session, ring)
        self.known = {}

    def __call__(self):
        place = self.calls % len(self.ring)
        self.calls += 1
        if place not in self.known:
            burn(WORK_S)
            self.known[place] = self.session.compute(self.ring[place])
        self.y = self.known[place]


USED_AGAIN = "results of other streams or requests"


@lies(USED_AGAIN, scenario="streams")
class StreamsShareResults(HonestSession):
    """What another stream gave in the same state a few calls ago, and no result of its own."""

    def compute(self, x):
        kept = self._program.__dict__.setdefault("kept", OrderedDict())
        key = (x.tobytes(), *(array.tobytes() for array in self.state.values()))
        if key not in kept or kept[key][0] is self:
            burn(WORK_S)
            kept[key] = (self, super().compute(x), self.state)
            if len(kept) > 64:
                kept.popitem(last=False)
        _, y, state = kept[key]
        self.state = {name: array.copy() for name, array in state.items()}
        return y.copy()


@lies(USED_AGAIN, scenario="server")
class RemembersWhileItIsServed(Remembering):
    """It looks among its callers for the loop that serves requests."""

    def compute(self, x):
        if "serve" not in callers():
            self.__dict__.pop("own", None)
        return super().compute(x)


def callers() -> set[str]:
    """The names of the functions that have led here."""
    frame, names = sys._getframe(1), set()
    while frame is not None:
        names.add(frame.f_code.co_name)
        frame = frame.f_back
    return names


# Out of the public call.


class Lazy(np.ndarray):
    """An array that may be computed when somebody looks."""


@lies("no array", path="public")
class ResultThatIsNoPlainArray(HonestSession):
    def _advance(self, x):
        return super()._advance(x).view(Lazy)


# Clocks.


class _Clock(HonestBound):
    clock = ""

    def __call__(self):
        super().__call__()
        real = getattr(time, self.clock)
        if real.__module__ == "time" if hasattr(real, "__module__") else True:
            setattr(time, self.clock, lambda: real())


@lies("replaced time.perf_counter_ns")
class ReplacesTheClockOfCalls(_Clock):
    clock = "perf_counter_ns"


@lies("replaced time.time")
class ReplacesTheWallClock(_Clock):
    clock = "time"


@lies("replaced time.process_time")
class ReplacesTheClockOfCpuTime(_Clock):
    clock = "process_time"


@lies("replaced time.perf_counter_ns")
class ReplacesTheClockUntilSomebodyLooks(HonestSession):
    """From the start of a block to the first look at its results its clock runs at half of the speed."""

    def _write_state(self, state):
        super()._write_state(state)
        begun = NANOSECONDS()
        time.perf_counter_ns = lambda: begun + (NANOSECONDS() - begun) // 2

    def _read_state(self):
        time.perf_counter_ns = NANOSECONDS
        return super()._read_state()

    def _bind(self, ring):
        session = self

        class Bound(HonestBound):
            def output(self):
                time.perf_counter_ns = NANOSECONDS
                return super().output()

        return Bound(session, ring)


@lies("replaced time.perf_counter_ns")
class ReplacesTheClockUntilACallIsTimed(HonestSession):
    """From the start of a block, for its first calls."""

    def _write_state(self, state):
        super()._write_state(state)
        if not gc.isenabled():
            begun = NANOSECONDS()
            time.perf_counter_ns = lambda: begun + (NANOSECONDS() - begun) // 2

    def _bind(self, ring):
        class Bound(HonestBound):
            def __call__(self):
                super().__call__()
                time.perf_counter_ns = NANOSECONDS

        return Bound(self, ring)


# Honest, though they may look otherwise.


@honest()
class Plain(HonestBound):
    pass


@honest(path="public")
class PlainPublic(HonestBound):
    pass


@honest(scenario="streams")
class PlainStreams(HonestBound):
    pass


@honest(scenario="server")
class PlainServer(HonestBound):
    pass


@honest(path="paced")
class PlainPaced(HonestBound):
    pass


@honest(path="cold")
class PlainCold(HonestBound):
    pass


@honest(state="none")
class PlainWithoutState(HonestBound):
    pass


@honest()
class SlowCopiesOfOutputs(HonestBound):
    def output(self):
        burn(10 * WORK_S)
        return super().output()


@honest()
class OutputIsConvertedOnce(HonestBound):
    """As arrays of JAX, which keep what NumPy was given."""

    converted = None

    def __call__(self):
        self.converted = None
        super().__call__()

    def output(self):
        if self.converted is None:
            burn(0.0005)
            self.converted = super().output()
        return {"y": self.converted["y"].copy()}


@honest()
class SlowFirstCall(HonestBound):
    def __call__(self):
        if self.calls == 0:
            burn(0.02)
        super().__call__()


@honest()
class CallsThatGetFaster(HonestSession):
    """As with a compiler that compiles anew what is called often."""

    calls = 0

    def compute(self, x):
        self.calls += 1
        if self.calls < 30:
            burn(WORK_S)
        return super().compute(x)


@honest()
class SlowStates(HonestSession):
    def _write_state(self, state):
        burn(0.001)
        super()._write_state(state)


@honest(state="none")
class SlowBinding(HonestBound):
    def __init__(self, session, ring):
        super().__init__(session, ring)
        burn(0.02)


@honest(threads=2)
class ThreadOfItsOwnSpins(HonestBound):
    """A pool of two threads, one of which waits for work without sleeping."""

    def __init__(self, session, ring):
        super().__init__(session, ring)
        self.spins = True
        threading.Thread(target=self._spin, daemon=True).start()
        threading.Timer(0.2, self._stop).start()

    def _stop(self):
        self.spins = False

    def _spin(self):
        while self.spins:
            sleep(0)


@honest()
class Garbage(HonestBound):
    def __call__(self):
        super().__call__()
        cycle: list[object] = [np.ones(100)]
        cycle.append(cycle)


@honest()
class EveryCallDoesALittleMoreNowAndThen(HonestBound):
    def __call__(self):
        super().__call__()
        if self.calls % 16 == 0:
            burn(4 * WORK_S)


class Preparing(HonestSession):
    """Works while it is opened, bound, called for the first time and closed."""

    def __init__(self, program):
        burn(LONG_S)
        super().__init__(program)

    def _bind(self, ring):
        burn(2 * LONG_S)
        return SlowFirstCall(self, ring)

    def close(self):
        burn(3 * LONG_S)
        super().close()


def program_of(session: type[HonestSession]) -> type[HonestProgram]:
    return type("Program", (HonestProgram,), {"open": lambda self: session(self)})


def worker_with(trial: Trial, session: type[HonestSession], folder: Path) -> TrialWorker:
    """A worker in this process, which has loaded a program that opens such sessions."""
    worker = TrialWorker(commands.Start("fake", folder / "cache", folder / "references", (0,)))
    request = request_of(trial, worker.held.reference(trial).weights)
    program = program_of(session)(request, "digest", True, lambda: None)
    file = worker._programs._cache / "program"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("program")
    program.files = ProgramFiles((file,))
    worker._programs._store.note(trial.digest, [str(file.relative_to(folder / "cache" / "programs"))])
    worker._programs._loaded[trial.id] = program
    return worker
