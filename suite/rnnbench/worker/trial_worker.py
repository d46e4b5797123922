"""A trial's worker: the process that a program is built in, loaded, checked and sampled."""

from __future__ import annotations

import os
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, TypeVar

import numpy as np
import psutil

from rnnbench.backends import Backend, Program, ProgramStore, Request, find, request_of, sources_digest
from rnnbench.cases import Trial
from rnnbench.conformance import ReferenceTrajectories, run_checks
from rnnbench.measure import (
    PATHS,
    Block,
    BlockSurroundings,
    Evictor,
    GrowthLog,
    ImportClock,
    ThreadTimes,
    arrival_times,
    deferred_work,
    memory,
    read_metrics,
    replaced_clocks,
    sample_block,
    surrounded,
)
from rnnbench.results import CheckResult, Finding, FindingKind
from rnnbench.stages import BuildFigures, CheckResults, ImportFigures, LoadFigures, WorkerState
from rnnbench.worker import commands
from rnnbench.worker.channel import Channel, ChannelClosedError
from rnnbench.worker.forked import run_forked
from rnnbench.worker.kernel import adopt_orphans, die_with_parent
from rnnbench.worker.open_streams import OpenStreams
from rnnbench.worker.preload import modules, modules_since, preload
from rnnbench.worker.prepared_program import PreparedProgram
from rnnbench.worker.process_state import ProcessWatch, WatchedWork
from rnnbench.worker.protocol import Done, Failed, encode_reply
from rnnbench.worker.server import Handlers, attempt, open_channel, receive_command, serve
from rnnbench.worker.trial_programs import CHECKING, LOADING, PREPARING, TrialPrograms

COMPARED_BLOCKS, COMPARED_BLOCK_S = 6, 0.002
"""Blocks of each of two equal programs, and seconds of a block: 25 ms for the pair, of which its re-warming is part."""
FIRST_CALLS = 16
"""Bound calls after which memory is taken to be steady: two passes over the ring."""
Result = TypeVar("Result")


class TrialWorker:
    """Carries out commands for trials of one backend."""

    def __init__(self, start: commands.Start) -> None:
        self._backend: Backend = find(start.backend)
        sources = start.sources or sources_digest(start.backend)
        self._programs = TrialPrograms(self._backend, ProgramStore(start.cache), sources)
        self._reference_files = start.references
        self._references: dict[str, ReferenceTrajectories] = {}
        self._prepared: dict[str, PreparedProgram] = {}
        self._streams: dict[str, OpenStreams] = {}
        self._threads: defaultdict[str, ThreadTimes] = defaultdict(ThreadTimes)
        self._surroundings: defaultdict[tuple[str, str], list[BlockSurroundings]] = defaultdict(list)
        self._growth = GrowthLog()
        self._imported_by_builds: tuple[str, ...] = ()
        self._evictor: Evictor | None = None
        self._findings: list[Finding] = []
        self._watch = ProcessWatch()

    def take_findings(self) -> tuple[Finding, ...]:
        """What was found since the last call of this method."""
        taken = (*self._findings, *self._programs.take_findings(), *self._watch.take_findings())
        self._findings = []
        return taken

    @property
    def handlers(self) -> Handlers:
        return {
            commands.Build: self.build,
            commands.Restore: self.restore,
            commands.Load: self._watched(WatchedWork.LOAD, self.load),
            commands.RunChecks: self._watched(WatchedWork.CHECK, self.check),
            commands.Compare: self.compare,
            commands.Prepare: self._watched(WatchedWork.PREPARE, self.prepare),
            commands.SamplePath: self._watched(WatchedWork.SAMPLE, self.sample_path),
            commands.SampleStateCopy: self._watched(WatchedWork.SAMPLE, self.sample_state_copy),
            commands.OpenStreams: self._watched(WatchedWork.PREPARE, self.open_streams),
            commands.ServeFrames: self._watched(WatchedWork.SAMPLE, self.serve_frames),
            commands.ServeRequests: self._watched(WatchedWork.SAMPLE, self.serve_requests),
            commands.CloseStreams: self._watched(WatchedWork.VERIFY, self.close_streams),
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
        trial, request = command.trial, self._request(command.trial)
        before_fork = memory.resident()

        def compile_and_measure() -> BuildFigures:
            self.take_findings()  # This process tells them, which the child was forked from.
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
            cache_before = self._programs.begin_build(trial)
            before = set(modules())
            memory.reset_peak()
            inherited = memory.resident()
            with ImportClock() as imports:
                start = time.perf_counter()
                program = self._programs.build(request)
                seconds = time.perf_counter() - start
            figures = BuildFigures(
                "cold",
                build_s=seconds - imports.seconds,
                import_s=imports.seconds,
                peak=before_fork + memory.peak() - inherited + memory.children_peak(),
                modules=modules_since(before),
            )
            origin = self._programs.end_build(trial, request, program, cache_before)
            return figures if origin == "cold" else BuildFigures("cached")

        answer = run_forked(command, lambda: attempt(compile_and_measure, "build-failed"), self.take_findings)
        self._findings += answer.findings
        figures = answer.reply
        self._imported_by_builds = () if isinstance(figures, Failed) else figures.modules
        return figures

    def restore(self, command: commands.Restore) -> Done | Failed:
        """Build in a child again what is not as its build left it. Not once a runtime was started in this process."""
        trial = command.trial
        if self._programs.is_intact(trial):
            return Done()
        if self._programs.holds_any:
            return Failed("run-failed", "its files in the cache changed while it was sampled")
        rebuilt = self.build(commands.Build(trial))
        return rebuilt if isinstance(rebuilt, Failed) else Done()

    def load(self, command: commands.Load) -> LoadFigures | Failed:
        restored = self.restore(commands.Restore(command.trial))
        if isinstance(restored, Failed):
            return restored
        with self._programs.watched(command.trial, LOADING):
            return self._load(command.trial)

    def _load(self, trial: Trial) -> LoadFigures:
        request = self._request(trial)
        memory.reset_peak()
        finished = memory.children_peak()
        with ImportClock() as imports:
            start = time.perf_counter()
            program = self._programs.load(trial, request)
            load_s = time.perf_counter() - start - imports.seconds
            artifact = self._programs.described(trial, request)
            ring = self._reference(trial).ring
            session, open_s = _timed(program.open, imports)
            bound, bind_s = _timed(lambda: session.bind(ring), imports)
            start = time.perf_counter() - imports.seconds
            bound()
            bound.sync()
            first_call_s = time.perf_counter() - start - imports.seconds
        for _ in range(FIRST_CALLS - 1):
            bound()
        bound.sync()
        run_peak, steady = memory.peak() + memory.finished_beyond(finished), memory.resident()
        metrics = read_metrics("loaded")
        start = time.perf_counter()
        session.close()
        return LoadFigures(
            load_s=load_s if program.cached else None,
            import_s=imports.seconds,
            open_s=open_s,
            bind_s=bind_s,
            first_call_s=first_call_s,
            close_s=time.perf_counter() - start,
            run_peak=run_peak,
            steady=steady,
            artifact=artifact,
            metrics=metrics,
        )

    def check(self, command: commands.RunChecks) -> CheckResults:
        trial, reference = command.trial, self._reference(command.trial)
        program = self._program(trial)
        seen: list[float] = []

        def results() -> Iterator[tuple[str, CheckResult]]:
            if reference.is_stream and trial.strategy.chunk > 1:
                # Before any check: the first ragged call builds.
                seen.append(self._programs.time_tail(trial, {"x": reference.x[:1]}))
            yield from run_checks(program, reference)

        with self._programs.watched(trial, CHECKING):
            explained = dict(self._watch.explained(trial.id, results()))
        tail_build_s = self._programs.tail_build_s(trial, seen[0] if seen else None)
        return CheckResults(explained, tail_build_s, reference.seconds, _worker_state())

    def compare(self, command: commands.Compare) -> commands.ComparedBlocks:
        trials = (command.first, command.second)
        sessions = [self._program(trial).open() for trial in trials]
        bounds = [session.bind(self._reference(trial).ring) for session, trial in zip(sessions, trials, strict=True)]
        medians: tuple[list[float], list[float]] = ([], [])
        for _ in range(COMPARED_BLOCKS):
            for bound, of_trial in zip(bounds, medians, strict=True):
                block = sample_block(bound, bound.sync, COMPARED_BLOCK_S)
                of_trial.append(float(np.median(block.seconds)))
        for session in sessions:
            session.close()
        return commands.ComparedBlocks(tuple(medians[0]), tuple(medians[1]))

    def prepare(self, command: commands.Prepare) -> CheckResult:
        trial, reference = command.trial, self._reference(command.trial)
        with self._programs.watched(trial, PREPARING):
            prepared = PreparedProgram(self._program(trial), reference, self._evict)
            self._prepared[trial.id] = prepared
            verified = prepared.verify()
            prepared.sync()
            return verified

    def sample_path(self, command: commands.SamplePath) -> commands.SentBlock:
        trial, path = command.trial, PATHS[command.path]
        prepared = self._prepared[trial.id]
        call = prepared.timed_call(path)
        if path.evicts and self._evictor is None:
            # Filling its buffer takes longer than a block.
            self._evictor = Evictor()
        self._growth.begin()
        if path.entry == "public":
            sample = partial(path.sample, call, command.plan)
            block, around = surrounded(sample, _do_nothing, prepared.look_at_public)
            prepared.public.called(block.calls)
        else:

            def watched() -> Block:
                with self._threads[trial.id].watched():
                    return path.sample(call, command.plan)

            block, around = surrounded(watched, prepared.timed.start, prepared.look_at_bound)
            prepared.timed.called(block.calls)
        self._surroundings[trial.id, path.name].append(around)
        prepared.sync()
        # A block of the warm-up has no calls that re-warm. Memory allocated in it belongs to the start.
        if path.watch_memory and block.warm_calls:
            self._growth.called((trial.id, path.name), block.calls)
        return commands.SentBlock.of(block)

    def sample_state_copy(self, command: commands.SampleStateCopy) -> commands.SentBlock:
        self._growth.begin()
        block: Block = sample_block(self._prepared[command.trial.id].copy_state, _do_nothing, command.seconds)
        return commands.SentBlock.of(block)

    def open_streams(self, command: commands.OpenStreams) -> commands.OpenedStreams:
        trial = command.trial
        if trial.id not in self._streams:
            self._streams[trial.id] = OpenStreams(self._program(trial), self._reference(trial))
        return commands.OpenedStreams(self._streams[trial.id].open(command.streams, command.room))

    def serve_frames(self, command: commands.ServeFrames) -> commands.SentServed:
        streams = self._streams[command.trial.id]
        return commands.SentServed.of(streams.serve_frames(command.streams, command.frames, command.period))

    def serve_requests(self, command: commands.ServeRequests) -> commands.SentServed:
        streams = self._streams[command.trial.id]
        arrivals = arrival_times(command.requests, command.rate, command.seed)
        return commands.SentServed.of(streams.serve_requests(arrivals, command.longest))

    def close_streams(self, command: commands.CloseStreams) -> CheckResult:
        return self._streams.pop(command.trial.id).verify_and_close()

    def verify(self, command: commands.Verify) -> commands.Verified:
        trial = command.trial
        self._growth.begin()
        growth = {
            name: tuple(self._growth.steps((trial.id, name))) for name, path in PATHS.items() if path.watch_memory
        }
        timed = self._prepared[trial.id].verify()
        self._find_moved_work(trial)
        self._prepared[trial.id].sync()
        return commands.Verified(
            timed=timed,
            state=_worker_state(),
            busy_threads=self._threads[trial.id].busy,
            growth=growth,
            metrics=read_metrics("sampled"),
        )

    def _find_moved_work(self, trial: Trial) -> None:
        """Note what the blocks of a trial show that a timed call does not."""
        blocks = {path: self._surroundings.pop((trial.id, path), []) for path in PATHS}
        call_s = min((block.median for block in blocks["bound"]), default=None)
        found = [replaced_clocks(), *self._prepared[trial.id].moved_work(call_s)]
        for path, of_path in blocks.items():
            found += deferred_work(path, of_path, trial.threads)
        self._findings += [
            Finding(kind=FindingKind.TIME, detail=detail, disbelieved=True) for detail in found if detail
        ]

    def end_fork(self, command: commands.EndFork) -> commands.ImportedModules:
        return commands.ImportedModules(self._imported_by_builds)

    def _evict(self) -> None:
        assert self._evictor is not None, "it is there before a path that evicts is sampled"
        self._evictor()

    def _program(self, trial: Trial) -> Program:
        request = self._request(trial)
        program = self._programs.load(trial, request)
        self._programs.described(trial, request)
        return program

    def _request(self, trial: Trial) -> Request:
        return request_of(trial, self._reference(trial).weights)

    def _reference(self, trial: Trial) -> ReferenceTrajectories:
        return self._references.setdefault(trial.id, ReferenceTrajectories(trial, self._reference_files))


def _do_nothing() -> None:
    """The public path needs no preparation, and the state's copy is complete when it returns."""


def _timed(work: Callable[[], Result], imports: ImportClock) -> tuple[Result, float]:
    """What it returns, and its seconds without imports."""
    start = time.perf_counter() - imports.seconds
    result = work()
    return result, time.perf_counter() - start - imports.seconds


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
