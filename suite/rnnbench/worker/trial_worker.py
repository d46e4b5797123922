"""A trial's worker: the process that a program is built in, loaded, checked and sampled."""

from __future__ import annotations

import os
import time
import traceback
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

import psutil

from rnnbench.backends import Backend, Program, check_program, find
from rnnbench.cases import Trial
from rnnbench.conformance import PublicPath, ReferenceTrajectories, TimedPath, run_checks, worst
from rnnbench.measure import (
    PATHS,
    Block,
    Evictor,
    GrowthLog,
    ImportClock,
    LatencyPath,
    ThreadTimes,
    TimedCall,
    memory,
    read_metrics,
    sample_block,
)
from rnnbench.plan import request_of
from rnnbench.results import CheckResult, Finding
from rnnbench.stages import BuildFigures, CheckResults, ImportFigures, LoadFigures, WorkerState
from rnnbench.worker import commands
from rnnbench.worker.channel import Channel, ChannelClosedError
from rnnbench.worker.forked import run_forked
from rnnbench.worker.kernel import adopt_orphans, die_with_parent
from rnnbench.worker.preload import modules, modules_since, preload
from rnnbench.worker.process_state import ProcessWatch, WatchedWork
from rnnbench.worker.protocol import Done, Failed, encode_reply
from rnnbench.worker.server import Handlers, attempt, open_channel, receive_command, serve

FIRST_CALLS = 16
"""Bound calls after which memory is taken to be steady: two passes over the ring."""


class PreparedProgram:
    """A program ready to be sampled: its bound path, and the public path on a session of its own."""

    def __init__(self, program: Program, reference: ReferenceTrajectories, evict: Callable[[], object]) -> None:
        self.timed = TimedPath(program.open(), reference)
        self.public = PublicPath(program.open(), reference)
        bound = self.timed.bound
        self._calls = {
            "bound": TimedCall(bound, bound.sync, evict),
            "public": TimedCall(self.public.timed_call, _do_nothing, evict),
        }

    def verify(self) -> CheckResult:
        """Check what the timed calls of both paths came to."""
        return worst(self.timed.verify(), self.public.verify())

    def timed_call(self, path: LatencyPath) -> TimedCall:
        return self._calls[path.entry]

    def copy_state(self) -> None:
        """The state's round trip through NumPy, there and back again."""
        session = self.public.session
        session.set_state(session.get_state())


class TrialWorker:
    """Carries out commands for trials of one backend."""

    def __init__(self, start: commands.Start) -> None:
        self._backend: Backend = find(start.backend)
        self._cache = start.cache
        self._reference_files = start.references
        self._references: dict[str, ReferenceTrajectories] = {}
        self._programs: dict[str, Program] = {}
        self._prepared: dict[str, PreparedProgram] = {}
        self._threads: defaultdict[str, ThreadTimes] = defaultdict(ThreadTimes)
        self._growth = GrowthLog()
        self._imported_by_builds: tuple[str, ...] = ()
        self._evictor: Evictor | None = None
        self._findings: list[Finding] = []
        self._watch = ProcessWatch()

    def take_findings(self) -> tuple[Finding, ...]:
        """What was found since the last call of this method."""
        taken, self._findings = (*self._findings, *self._watch.take_findings()), []
        return taken

    @property
    def handlers(self) -> Handlers:
        return {
            commands.Build: self.build,
            commands.Load: self._watched(WatchedWork.LOAD, self.load),
            commands.RunChecks: self._watched(WatchedWork.CHECK, self.check),
            commands.Prepare: self._watched(WatchedWork.PREPARE, self.prepare),
            commands.SamplePath: self._watched(WatchedWork.SAMPLE, self.sample_path),
            commands.SampleStateCopy: self._watched(WatchedWork.SAMPLE, self.sample_state_copy),
            commands.Verify: self._watched(WatchedWork.VERIFY, self.verify),
            commands.EndFork: self.end_fork,
        }

    def _watched(self, work: WatchedWork, handler: Callable[[Any], object]) -> Callable[[Any], object]:
        """The handler, with the process compared before and after it. A build's process ends with the build."""
        return lambda command: self._watch.around(work, command.trial.id, partial(handler, command))

    def import_framework(self) -> ImportFigures | Failed:
        return self._watch.around(WatchedWork.IMPORT, "", self._import_framework)

    def _import_framework(self) -> ImportFigures:
        harness, start = memory.resident(), time.perf_counter()
        self._backend.load()
        return ImportFigures(harness, memory.resident(), time.perf_counter() - start)

    def build(self, command: commands.Build) -> BuildFigures | Failed:
        weights = self._reference(command.trial).weights
        request = request_of(command.trial, weights)
        before_fork = memory.resident()

        def compile_and_measure() -> BuildFigures:
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
            before = set(modules())
            memory.reset_peak()
            inherited = memory.resident()
            with ImportClock() as imports:
                start = time.perf_counter()
                program = self._backend.build(request, self._cache)
                seconds = time.perf_counter() - start
            figures = BuildFigures(
                "cold",
                build_s=seconds - imports.seconds,
                import_s=imports.seconds,
                peak=before_fork + memory.peak() - inherited + memory.children_peak(),
                modules=modules_since(before),
            )
            check_program(self._backend.name, program, request)
            return BuildFigures("cached") if program.cached else figures

        answer = run_forked(command, lambda: attempt(compile_and_measure, "build-failed"), self.take_findings)
        self._findings += answer.findings
        figures = answer.reply
        self._imported_by_builds = () if isinstance(figures, Failed) else figures.modules
        return figures

    def load(self, command: commands.Load) -> LoadFigures:
        memory.reset_peak()
        finished = memory.children_peak()
        with ImportClock() as imports:
            start = time.perf_counter()
            program = self._loaded(command.trial)
            load_s = time.perf_counter() - start - imports.seconds
            self._check_program(command.trial)
            session = program.open()
            bound = session.bind(self._reference(command.trial).ring)
            start = time.perf_counter() - imports.seconds
            bound()
            bound.sync()
            first_call_s = time.perf_counter() - start - imports.seconds
        for _ in range(FIRST_CALLS - 1):
            bound()
        bound.sync()
        run_peak, steady = memory.peak() + memory.finished_beyond(finished), memory.resident()
        metrics = read_metrics("loaded")
        session.close()
        return LoadFigures(
            load_s=load_s if program.cached else None,
            import_s=imports.seconds,
            first_call_s=first_call_s,
            run_peak=run_peak,
            steady=steady,
            artifact=program.artifact,
            metrics=metrics,
        )

    def check(self, command: commands.RunChecks) -> CheckResults:
        program, reference = self._program(command.trial), self._reference(command.trial)
        results = dict(self._watch.explained(command.trial.id, run_checks(program, reference)))
        return CheckResults(results, program.tail_build_s, reference.seconds, _worker_state())

    def prepare(self, command: commands.Prepare) -> CheckResult:
        program, reference = self._program(command.trial), self._reference(command.trial)
        prepared = PreparedProgram(program, reference, self._evict)
        self._prepared[command.trial.id] = prepared
        return prepared.verify()

    def sample_path(self, command: commands.SamplePath) -> commands.SentBlock:
        trial, path = command.trial, PATHS[command.path]
        prepared = self._prepared[trial.id]
        call = prepared.timed_call(path)
        if path.evicts and self._evictor is None:
            # Filling its buffer takes longer than a block.
            self._evictor = Evictor()
        self._growth.begin()
        if path.entry == "public":
            block = path.sample(call, command.plan)
            prepared.public.called(block.calls)
        else:
            prepared.timed.start()
            with self._threads[trial.id].watched():
                block = path.sample(call, command.plan)
            prepared.timed.called(block.calls)
        # A block of the warm-up has no calls that re-warm. Memory allocated in it belongs to the start.
        if path.watch_memory and block.warm_calls:
            self._growth.called((trial.id, path.name), block.calls)
        return commands.SentBlock.of(block)

    def sample_state_copy(self, command: commands.SampleStateCopy) -> commands.SentBlock:
        self._growth.begin()
        block: Block = sample_block(self._prepared[command.trial.id].copy_state, _do_nothing, command.seconds)
        return commands.SentBlock.of(block)

    def verify(self, command: commands.Verify) -> commands.Verified:
        trial = command.trial
        self._growth.begin()
        growth = {
            name: tuple(self._growth.steps((trial.id, name))) for name, path in PATHS.items() if path.watch_memory
        }
        return commands.Verified(
            timed=self._prepared[trial.id].verify(),
            state=_worker_state(),
            busy_threads=self._threads[trial.id].busy,
            growth=growth,
            metrics=read_metrics("sampled"),
        )

    def end_fork(self, command: commands.EndFork) -> commands.ImportedModules:
        return commands.ImportedModules(self._imported_by_builds)

    def _evict(self) -> None:
        assert self._evictor is not None, "it is there before a path that evicts is sampled"
        self._evictor()

    def _program(self, trial: Trial) -> Program:
        program = self._loaded(trial)
        self._check_program(trial)
        return program

    def _check_program(self, trial: Trial) -> None:
        request = request_of(trial, self._reference(trial).weights)
        check_program(self._backend.name, self._programs[trial.id], request)

    def _loaded(self, trial: Trial) -> Program:
        """As the adapter returned it: validating it takes time that is no part of a load."""
        if trial.id not in self._programs:
            request = request_of(trial, self._reference(trial).weights)
            self._programs[trial.id] = self._backend.build(request, self._cache)
        return self._programs[trial.id]

    def _reference(self, trial: Trial) -> ReferenceTrajectories:
        return self._references.setdefault(trial.id, ReferenceTrajectories(trial, self._reference_files))


def _do_nothing() -> None:
    """The public path is complete when it returns."""


def _worker_state() -> WorkerState:
    return WorkerState(psutil.Process().num_threads(), tuple(sorted(os.sched_getaffinity(0))))


def _hold_to(cores: tuple[int, ...]) -> None:
    """Hold every thread to these cores. Threads that the runtime starts later inherit them."""
    for thread in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):  # A thread of the framework's import may end meanwhile.
            os.sched_setaffinity(int(thread), cores)


def main() -> None:
    """Carry out the commands of the channel until its other end closes."""
    die_with_parent()
    adopt_orphans()
    channel = open_channel()
    start = receive_command(channel, {commands.Start: None})
    assert isinstance(start, commands.Start), "the first command says what the worker is"
    worker = TrialWorker(start)
    imports = attempt(worker.import_framework, "run-failed")
    _hold_to(start.affinity)
    channel.send(encode_reply(imports, worker.take_findings()))
    with suppress(ChannelClosedError):
        handlers: Handlers = {**worker.handlers, commands.Fork: _Forking(channel, worker)}
        serve(channel, handlers, take_findings=worker.take_findings)


class _Forking:
    """Carries out `Fork`: a child serves the channel up to `EndFork`, while this process only imports and waits.

    The child answers, and nobody else. This process dies of whatever the child dies of, so that the suite sees it.
    """

    def __init__(self, channel: Channel, worker: TrialWorker) -> None:
        self._channel = channel
        self._worker = worker

    def __call__(self, command: commands.Fork) -> None:
        preload(command.modules)
        parent = os.getpid()
        served, tell_served = os.pipe()
        child = os.fork()
        if child == 0:
            die_with_parent(parent)
            self._serve_in_child(tell_served)
        os.close(tell_served)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            os.kill(os.getpid(), os.WTERMSIG(status))
        os.set_blocking(served, False)
        with os.fdopen(served, "rb", buffering=0) as pipe:
            if not pipe.read(1):
                os._exit(os.waitstatus_to_exitcode(status))

    def _serve_in_child(self, tell_served: int) -> NoReturn:
        """Serve up to `EndFork`, then say so to the parent: a program that exits with status 0 has not served.

        The child ends here whatever happens: the loop above this call is its parent's.
        """
        status = 0
        try:
            self._channel.send(encode_reply(Done()))
            serve(self._channel, self._worker.handlers, commands.EndFork, self._worker.take_findings)
            os.write(tell_served, b".")
        except ChannelClosedError:
            pass
        except BaseException:  # noqa: BLE001 its parent ends with the same status
            traceback.print_exc()
            status = 1
        os._exit(status)
