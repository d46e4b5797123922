"""A worker: the process that a trial's program lives in. It does what its wire tells it, and prints to a log.

build   compile into the cache, in a forked child: what a compiler leaves in memory is gone before the program runs
load    load the artifact, call it, and read off what it occupies
check   the conformance checks
arm     load, bind and verify a program that is going to be sampled
sample_bound, sample_public, sample_state, sample_cold, sample_paced
        one short block
verify  the check that follows sampling
fork    from here to `end` a child does it, which has imported the framework and what else it is told to
"""

from __future__ import annotations

import os
import socket
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil

from rnnbench.backends.base import Backend, Bound, BuildError, Program
from rnnbench.backends.registry import find
from rnnbench.cases.trial import Trial
from rnnbench.conformance import ReferenceTrajectories, TimedPath, run_checks
from rnnbench.measure import memory
from rnnbench.measure.caches import Evictor
from rnnbench.measure.growth import GrowthLog
from rnnbench.measure.imports import ImportClock
from rnnbench.measure.sampling import Block, sample_block, sample_cold, sample_paced
from rnnbench.measure.threads import ThreadTimes
from rnnbench.results.record import Outcome
from rnnbench.run.forked import die_with_parent, run_forked
from rnnbench.run.messages import Failure, read_trial, request_of, write_block, write_failure
from rnnbench.run.preload import modules, modules_since, preload
from rnnbench.run.wire import Message, Wire, WireClosedError

FIRST_CALLS = 16
"""Bound calls after which memory is taken to be steady: two rounds of the ring."""
GROWS: tuple[str, ...] = ("bound", "public")
"""Calls whose growth in memory is looked at."""


class Armed:
    """A program ready to be sampled: its timed path, and its public path on a session of its own."""

    def __init__(self, program: Program, reference: ReferenceTrajectories) -> None:
        self.timed = TimedPath(program.open(), reference)
        session = program.open()
        self.step = session.step
        self.next_chunk = cycle(reference.ring).__next__
        self._session = session

    def public(self) -> None:
        self.step(self.next_chunk())

    def copy_state(self) -> None:
        """The state's round trip through NumPy, there and back again."""
        self._session.set_state(self._session.get_state())


class Worker:
    def __init__(self, backend: str, cache: Path, oracles: Path) -> None:
        self._backend: Backend = find(backend)
        self._cache = cache
        self._oracle_files = oracles
        self._oracles: dict[str, ReferenceTrajectories] = {}
        self._programs: dict[str, Program] = {}
        self._armed: dict[str, Armed] = {}
        self._threads: defaultdict[str, ThreadTimes] = defaultdict(ThreadTimes)
        self._growth = GrowthLog()
        self.imported: list[str] = []
        """Modules that the last build imported, in its child."""

    def load_framework(self) -> Message:
        harness, start = memory.resident(), time.perf_counter()
        self._backend.load()
        return {"harness": harness, "imported": memory.resident(), "import_s": time.perf_counter() - start}

    def build(self, trial: Trial) -> Message:
        weights = self._oracle(trial).weights
        before_fork = memory.resident()

        def compile_and_measure() -> Message:
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
            before = set(modules())
            memory.reset_peak()
            inherited = memory.resident()
            with ImportClock() as imports:
                start = time.perf_counter()
                program = self._backend.build(request_of(trial, weights), self._cache)
                seconds = time.perf_counter() - start
            if program.cached:
                return {"build_origin": "cached"}
            peak = before_fork + memory.peak() - inherited + memory.children_peak()
            own = {"build_s": seconds - imports.seconds, "build_import_s": imports.seconds}
            return {"build_origin": "cold", **own, "build_peak": peak, "modules": modules_since(before)}

        built = run_forked(lambda: reported(compile_and_measure, "build-failed"))
        self.imported = built.pop("modules", [])
        return built

    def load(self, trial: Trial) -> Message:
        memory.reset_peak()
        with ImportClock() as imports:
            start = time.perf_counter()
            program = self._program(trial)
            load_s = time.perf_counter() - start - imports.seconds
            session = program.open()
            bound = session.bind(self._oracle(trial).ring)
            start = time.perf_counter() - imports.seconds
            bound()
            bound.sync()
            first_call_s = time.perf_counter() - start - imports.seconds
        for _ in range(FIRST_CALLS - 1):
            bound()
        bound.sync()
        run_peak, steady = memory.peak(), memory.resident()
        session.close()
        return {
            "load_s": load_s if program.cached else None,
            "load_import_s": imports.seconds,
            "first_call_s": first_call_s,
            "run_peak": run_peak,
            "steady": steady,
            "artifact": program.artifact.model_dump(),
        }

    def check(self, trial: Trial) -> Message:
        program = self._program(trial)
        verdicts = {name: figure.model_dump() for name, figure in run_checks(program, self._oracle(trial))}
        own = {"tail_build_s": program.tail_build_s, "oracle_s": self._oracle(trial).seconds}
        return {"verdicts": verdicts, **own, **_seen()}

    def arm(self, trial: Trial) -> Message:
        armed = Armed(self._program(trial), self._oracle(trial))
        self._armed[trial.id] = armed
        return {"verdict": armed.timed.verify().model_dump()}

    def sample_bound(self, trial: Trial, seconds: float, **how: Any) -> Message:
        block = self._sample_timed(trial, lambda bound: sample_block(bound, bound.sync, seconds, **how))
        return self._written(trial, "bound", block)

    def sample_public(self, trial: Trial, seconds: float, **how: Any) -> Message:
        self._growth.begin()
        return self._written(trial, "public", sample_block(self._armed[trial.id].public, _nothing, seconds, **how))

    def sample_cold(self, trial: Trial, seconds: float) -> Message:
        evict = self._evictor
        return write_block(self._sample_timed(trial, lambda bound: sample_cold(bound, bound.sync, evict, seconds)))

    def sample_paced(self, trial: Trial, seconds: float, period: float) -> Message:
        return write_block(self._sample_timed(trial, lambda bound: sample_paced(bound, bound.sync, period, seconds)))

    def sample_state(self, trial: Trial, seconds: float) -> Message:
        self._growth.begin()
        return write_block(sample_block(self._armed[trial.id].copy_state, _nothing, seconds))

    def _sample_timed(self, trial: Trial, sample: Callable[[Bound], Block]) -> Block:
        self._growth.begin()
        timed = self._armed[trial.id].timed
        timed.start()
        with self._threads[trial.id].watched():
            block = sample(timed.bound)
        timed.called(block.calls)
        return block

    def _written(self, trial: Trial, path: str, block: Block) -> Message:
        # A window of the warm-up has no warm calls of its own; what is allocated in it is the start's, and no growth.
        if block.warm_calls:
            self._growth.called((trial.id, path), block.calls)
        return write_block(block)

    @cached_property
    def _evictor(self) -> Evictor:
        return Evictor()

    def verify(self, trial: Trial) -> Message:
        self._growth.begin()
        grown = {path: self._growth.steps((trial.id, path)) for path in GROWS}
        verdict = self._armed[trial.id].timed.verify().model_dump()
        return {"verdict": verdict, **_seen(), "threads_busy": self._threads[trial.id].busy, "grown": grown}

    def _program(self, trial: Trial) -> Program:
        if trial.id not in self._programs:
            request = request_of(trial, self._oracle(trial).weights)
            self._programs[trial.id] = self._backend.build(request, self._cache)
        return self._programs[trial.id]

    def _oracle(self, trial: Trial) -> ReferenceTrajectories:
        return self._oracles.setdefault(trial.id, ReferenceTrajectories(trial, self._oracle_files))


def reported(work: Callable[[], Message], outcome: Outcome) -> Message:
    """What `work` returns, or what it raises as a failure with that outcome; the traceback goes to the log."""
    try:
        return work()
    except MemoryError as error:
        return write_failure(Failure("out-of-memory", f"MemoryError: {error}"))
    except BuildError as error:
        return write_failure(Failure("build-failed", str(error)))
    except Exception as error:  # noqa: BLE001 whatever a framework raises ends its trial, not the run
        traceback.print_exc()
        return write_failure(Failure(outcome, f"{type(error).__name__}: {error}"))


def _nothing() -> None:
    """The public path is complete when it returns."""


def _seen() -> Message:
    return {"threads_seen": psutil.Process().num_threads(), "affinity": sorted(os.sched_getaffinity(0))}


def _hold_to(cores: list[int]) -> None:
    """Hold every thread to these cores; those that the runtime starts from here on inherit it."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), cores)


def main() -> None:
    """Serve the wire on the descriptor in argv until its other end closes."""
    die_with_parent()
    wire = Wire(socket.socket(fileno=int(sys.argv[1])))
    hello = wire.receive()
    assert hello is not None, "without a timeout a wire waits"
    worker = Worker(hello["backend"], Path(hello["cache"]), Path(hello["oracles"]))
    imported = reported(worker.load_framework, "run-failed")
    _hold_to(hello["affinity"])
    wire.send(imported)
    with suppress(WireClosedError):
        _serve(wire, worker)


def _serve(wire: Wire, worker: Worker) -> None:
    """Do what the wire says, until it says `end` or closes."""
    while (message := wire.receive()) is not None:
        do = message.pop("do")
        if do == "fork":
            preload(message["modules"])
            _lend(wire, worker)
        elif do == "end":
            wire.send({"modules": worker.imported})
            return
        else:
            command: Callable[..., Message] = getattr(worker, do)
            trial = read_trial(message.pop("trial"))
            wire.send(reported(partial(command, trial, **message), "run-failed"))
            sys.stdout.flush()


def _lend(wire: Wire, worker: Worker) -> None:
    """A forked child serves the wire up to `end`: this process imports, and does nothing else.

    What the child dies of this process dies of as well, so that the suite sees it.
    """
    child = os.fork()
    if child == 0:
        die_with_parent()
        with suppress(WireClosedError):
            wire.send({})
            _serve(wire, worker)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
    elif code := os.waitstatus_to_exitcode(status):
        os._exit(code)


if __name__ == "__main__":
    main()
