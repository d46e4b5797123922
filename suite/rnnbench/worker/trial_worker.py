"""A trial's worker: the process that builds, loads, checks and samples programs."""

from __future__ import annotations

import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from rnnbench.backends import AdapterError, Backend, PreparesBuilds, ProgramStore, find, is_own, sources_digest
from rnnbench.cases import Trial
from rnnbench.conformance import run_checks
from rnnbench.measure import STARTED_ON, ImportClock, memory, read_metrics, sample_block
from rnnbench.results import CheckResult
from rnnbench.stages import BuildFigures, CheckResults, ImportFigures, LoadFigures
from rnnbench.temporary import keep_folder
from rnnbench.worker import commands
from rnnbench.worker.channel import ChannelClosedError
from rnnbench.worker.finding_log import FindingLog
from rnnbench.worker.forked_build import run_forked
from rnnbench.worker.forked_trial import Forking
from rnnbench.worker.held_trials import HeldTrials, worker_state
from rnnbench.worker.kept_checks import KeptChecks, Key
from rnnbench.worker.kept_programs import KeptPrograms
from rnnbench.worker.outside_files import OutsideFiles
from rnnbench.worker.preload import modules_since
from rnnbench.worker.process_family import adopt_orphans, bind_threads, die_with_parent
from rnnbench.worker.process_state import ProcessWatch, WatchedWork
from rnnbench.worker.protocol import Done, Failed, prepare_messages
from rnnbench.worker.server import Handlers, answer, attempt, open_channel, receive_command, serve
from rnnbench.worker.trial_programs import CHECKING, LOADING, TrialPrograms, folder_of
from rnnbench.worker.trial_sampler import TrialSampler

COMPARED_BLOCKS, COMPARED_BLOCK_S = 6, 0.002
"""Blocks of each of two equal programs, and seconds per block: 25 ms for the pair, re-warming included."""
FORKED = (
    commands.Build,
    commands.Forget,
    commands.Load,
    commands.ComputeReference,
    commands.RunChecks,
    commands.EndFork,
)
"""The commands to a forked child."""
FIRST_CALLS = 16
"""Bound calls after which memory counts as steady: two passes over the ring."""
Result = TypeVar("Result")


class TrialWorker:
    """Carries out commands for trials of one backend."""

    def __init__(self, start: commands.Start) -> None:
        self._backend: Backend = find(start.backend)
        sources = start.sources or sources_digest(start.backend)
        store = ProgramStore(start.cache)
        kept = KeptPrograms(start.kept, start.backend, sources, start.cache, store) if start.kept else None
        self.findings = FindingLog()
        self._programs = TrialPrograms(self._backend, store, folder_of(start.backend, sources), self.findings, kept)
        self._kept_checks = KeptChecks(kept) if kept and is_own(start.backend) else None
        self.held = HeldTrials(self._programs, start.references, start.kept.folder if start.kept else None)
        self.sampler = TrialSampler(self.held, self.findings)
        self._imported_by_builds: tuple[str, ...] = ()
        self._forked_with: set[str] = set()
        """Modules that a forked child has from its parent."""
        self._prepared: set[tuple[str, str]] = set()
        """Routes and devices for whose builds this process was prepared."""
        self._watch = ProcessWatch(self.findings)

    @property
    def handlers(self) -> Handlers:
        return {
            commands.Build: self.build,
            commands.Restore: self.restore,
            commands.Forget: self.forget,
            commands.ComputeReference: self._watched(WatchedWork.CHECK, self.compute_reference),
            commands.Load: self._watched(WatchedWork.LOAD, self.load),
            commands.RunChecks: self.check,
            commands.Compare: self.compare,
            **{command: self._sampled(*carried_out) for command, carried_out in self.sampler.handlers.items()},
            commands.EndFork: self.end_fork,
        }

    def _watched(self, work: WatchedWork, handler: Callable[[Any], object]) -> Callable[[Any], object]:
        """The handler, with a comparison of the process before and after it."""
        return lambda command: self._watch.around(work, command.trial.id, partial(handler, command))

    def _sampled(self, work: WatchedWork, handler: Callable[[Any], object]) -> Callable[[Any], object]:
        """As `_watched`. If timed calls fail their check, the kept results of checks are removed."""

        def carried_out(command: Any) -> object:
            reply = self._watched(work, handler)(command)
            timed = reply.timed if isinstance(reply, commands.Prepared | commands.Verified) else reply
            if self._kept_checks and isinstance(timed, CheckResult) and timed.verdict == "fail":
                with suppress(AdapterError, OSError):  # If its program cannot be described, nothing is kept.
                    self._kept_checks.forget(self._key_of_checks(self._kept_checks, command.trial))
            return reply

        return carried_out

    def import_framework(self) -> ImportFigures | Failed:
        return self._watch.around(WatchedWork.IMPORT, "", self._import_framework)

    def _import_framework(self) -> ImportFigures:
        harness, start = memory.resident(), perf_counter()
        self._backend.load()
        return ImportFigures(harness, memory.resident(), perf_counter() - start)

    def build(self, command: commands.Build) -> BuildFigures | Failed:
        trial, request = command.trial, self.held.request(command.trial)
        keep_folder()
        before_fork = memory.resident()

        def compile_and_measure() -> BuildFigures:
            self.findings.take()  # The parent has these findings too, and reports them.
            os.sched_setaffinity(0, STARTED_ON)
            cache_before = self._programs.begin_build(trial, request)
            before, imports = frozenset(sys.modules), ImportClock()
            outside = OutsideFiles(imports)
            stops: list[int] = []
            signal.signal(signal.SIGCONT, lambda number, _: stops.append(number))
            memory.reset_peak()
            inherited = memory.resident()
            with imports:
                start = perf_counter()
                program = self._programs.build(request)
                seconds = perf_counter() - start
            figures = BuildFigures(
                "cold",
                build_s=seconds - imports.seconds,
                import_s=imports.seconds,
                peak=before_fork + memory.peak() - inherited + memory.children_peak(),
                modules=modules_since(before),
                stopped=bool(stops),
            )
            origin = self._programs.end_build(trial, request, program, cache_before)
            if origin == "cached":
                return BuildFigures("cached")
            if findings := tuple(self._programs.outside_findings(outside, request)):
                self.findings.add(findings)
            elif not figures.stopped:
                self._programs.keep(trial, request, figures)
            return figures

        answer = run_forked(command, lambda: attempt(compile_and_measure, "build-failed"), self.findings.take)
        self.findings.add(answer.findings)
        figures = answer.reply
        self._imported_by_builds = () if isinstance(figures, Failed) else figures.modules
        return figures

    def restore(self, command: commands.Restore) -> Done | Failed:
        """Build the program again, in a child, if its files have changed. Fails if a program is loaded already."""
        trial = command.trial
        if self._programs.is_intact(trial):
            return Done()
        if self._programs.holds_any:
            return Failed("run-failed", "its files in the cache changed while it was sampled")
        rebuilt = self.build(commands.Build(trial))
        return rebuilt if isinstance(rebuilt, Failed) else Done()

    def forget(self, command: commands.Forget) -> Done:
        trial = command.trial
        self._programs.forget(trial, self.held.request(trial))
        if self._kept_checks is not None and self._programs.holds(trial):
            self._kept_checks.forget(self._key_of_checks(self._kept_checks, trial))
        return Done()

    def load(self, command: commands.Load) -> LoadFigures | Failed:
        restored = self.restore(commands.Restore(command.trial))
        if isinstance(restored, Failed):
            return restored
        with self._programs.watched(command.trial, LOADING):
            return self._load(command.trial)

    def _load(self, trial: Trial) -> LoadFigures:
        request = self.held.request(trial)
        # Without a program the runtime has allocated nothing on the device, and a count would start it.
        before = self._programs.allocated(trial) if self._programs.holds_any else None
        memory.reset_peak()
        finished = memory.children_peak()
        with ImportClock() as imports:
            start = perf_counter()
            program = self._programs.load(trial, request)
            load_s = perf_counter() - start - imports.seconds
            artifact = self._programs.described(trial, request)
            ring = self.held.reference(trial).ring
            session, open_s = _timed(program.open, imports)
            bound, bind_s = _timed(lambda: session.bind(ring), imports)
            start = perf_counter() - imports.seconds
            bound()
            bound.sync()
            first_call_s = perf_counter() - start - imports.seconds
        for _ in range(FIRST_CALLS - 1):
            bound()
        bound.sync()
        run_peak, steady = memory.peak() + memory.finished_beyond(finished), memory.resident()
        metrics = read_metrics("loaded")
        count = self._programs.allocated(trial, before)
        start = perf_counter()
        session.close()
        return LoadFigures(
            load_s=load_s if program.cached else None,
            import_s=imports.seconds,
            open_s=open_s,
            bind_s=bind_s,
            first_call_s=first_call_s,
            close_s=perf_counter() - start,
            run_peak=run_peak,
            steady=steady,
            artifact=artifact,
            metrics=metrics,
            allocated=None if isinstance(count, str) else count,
            not_counted=count if isinstance(count, str) else "",
        )

    def compute_reference(self, command: commands.ComputeReference) -> commands.ReferenceFigures | Failed:
        reference = self.held.reference(command.trial)
        reference.compute()
        if why := reference.not_finite():
            return Failed("run-failed", why)
        self.held.keep_references()
        return commands.ReferenceFigures(reference.seconds)

    def check(self, command: commands.RunChecks) -> CheckResults | Failed:
        """Run the checks, or return the results of an earlier run if the command allows it."""
        kept, trial = self._kept_checks, command.trial
        run = partial(self._watch.around, WatchedWork.CHECK, trial.id, partial(self._check, trial, command.seconds))
        if kept is None:
            return run()
        key = self._key_of_checks(kept, trial)
        if command.reuse and (earlier := kept.restore(key, worker_state())):
            return earlier
        checked = run()
        self.findings.add(found := self.findings.take())
        if found or isinstance(checked, Failed) or any(result.not_begun for result in checked.results.values()):
            kept.forget(key)
        else:
            kept.keep(key, checked)
        return checked

    def _key_of_checks(self, kept: KeptChecks, trial: Trial) -> Key:
        request = self.held.request(trial)
        self.held.program(trial)
        return kept.key(trial, request, self._programs.described(trial, request).digest)

    def _check(self, trial: Trial, seconds: float | None) -> CheckResults:
        reference = self.held.reference(trial)
        program = self.held.program(trial)
        seen: list[float] = []

        def results() -> Iterator[tuple[str, CheckResult]]:
            if reference.is_stream and trial.strategy.chunk > 1:
                # Before any check: the first ragged call builds.
                seen.append(self._programs.time_tail(trial, {"x": reference.x[:1]}))
            yield from run_checks(program, reference, seconds)

        with self._programs.watched(trial, CHECKING, math.inf if seconds is None else seconds):
            explained = dict(self._watch.explained(trial.id, results()))
        self.held.keep_references()
        tail_build_s = self._programs.tail_build_s(trial, seen[0] if seen else None)
        tail_build_s = self._programs.keep_tail(trial, self.held.request(trial), tail_build_s)
        return CheckResults(explained, tail_build_s, reference.seconds, worker_state())

    def compare(self, command: commands.Compare) -> commands.ComparedBlocks:
        trials = (command.first, command.second)
        sessions = [self.held.program(trial).open() for trial in trials]
        references = [self.held.reference(trial) for trial in trials]
        bounds = [session.bind(ref.ring) for session, ref in zip(sessions, references, strict=True)]
        medians: tuple[list[float], list[float]] = ([], [])
        for _ in range(COMPARED_BLOCKS):
            for bound, of_trial in zip(bounds, medians, strict=True):
                block = sample_block(bound, bound.sync, COMPARED_BLOCK_S)
                of_trial.append(float(np.median(block.seconds)))
        for session in sessions:
            session.close()
        return commands.ComparedBlocks(tuple(medians[0]), tuple(medians[1]))

    def prepare_fork(self, command: commands.Fork) -> None:
        """Do once, before this process forks a child, what every child would do anew."""
        keep_folder()
        prepare_messages(FORKED)
        if isinstance(self._backend, PreparesBuilds):
            for route, device in command.built:
                if (route, device) not in self._prepared:
                    self._prepared.add((route, device))
                    with suppress(AdapterError):  # If this fails, each build does it.
                        self._backend.prepare_builds(route, device)
        self._forked_with = set(sys.modules)
        if self._kept_checks is not None:
            self._kept_checks.read_sources()

    def end_fork(self, command: commands.EndFork) -> commands.ImportedModules:
        """The modules that the trial's child and its build imported."""
        imported = modules_since(self._forked_with | set(self._imported_by_builds))
        return commands.ImportedModules((*self._imported_by_builds, *imported))


def _timed(work: Callable[[], Result], imports: ImportClock) -> tuple[Result, float]:
    """The result of `work`, and its seconds without imports."""
    start = perf_counter() - imports.seconds
    result = work()
    return result, perf_counter() - start - imports.seconds


def main() -> None:
    """Carry out the commands of the channel until its other end closes."""
    die_with_parent()
    adopt_orphans()
    channel = open_channel()
    start = receive_command(channel, {commands.Start: None})
    assert isinstance(start, commands.Start), "the first command says what the worker is"
    worker = TrialWorker(start)
    imports = attempt(worker.import_framework, "run-failed")
    bind_threads(os.getpid(), start.affinity)
    answer(channel, imports, worker.findings.take())
    with suppress(ChannelClosedError):
        forking = Forking(channel, worker.handlers, worker.findings.take, worker.prepare_fork)
        handlers: Handlers = {**worker.handlers, commands.Fork: forking}
        serve(channel, handlers, take_findings=worker.findings.take)
