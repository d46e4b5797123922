"""Sampling the programs of a worker: blocks of calls, streams and requests, and observations around them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from rnnbench.cases import Trial
from rnnbench.devices import KINDS, UnmeasuredError
from rnnbench.measure import (
    DEVICE_TIME,
    PATHS,
    SERVER,
    STREAMS,
    Block,
    BlockSurroundings,
    GrowthLog,
    Served,
    ThreadTimes,
    arrival_times,
    cheap_service,
    deferred_work,
    device_metrics,
    hidden_work,
    read_metrics,
    replaced_clocks,
    requested,
    sample_block,
    surrounded,
)
from rnnbench.results import CheckResult, Finding, FindingKind
from rnnbench.worker import commands
from rnnbench.worker.finding_log import FindingLog
from rnnbench.worker.held_trials import HeldTrials, worker_state
from rnnbench.worker.prepared_program import PreparedProgram
from rnnbench.worker.process_state import WatchedWork
from rnnbench.worker.program_streams import ProgramStreams
from rnnbench.worker.protocol import Command, Failed
from rnnbench.worker.trial_programs import PREPARING

LOST_STREAMS = Failed("run-failed", "its open streams ended with a process whose place this one has taken")


class TrialSampler:
    """Carries out the commands of sampling, from `Prepare` to `Verify`."""

    def __init__(self, held: HeldTrials, findings: FindingLog) -> None:
        self._findings = findings
        self._held = held
        self._prepared: dict[str, PreparedProgram] = {}
        self._streams: dict[str, ProgramStreams] = {}
        self._threads: defaultdict[str, ThreadTimes] = defaultdict(ThreadTimes)
        self._surroundings: defaultdict[tuple[str, str], list[BlockSurroundings]] = defaultdict(list)
        self._served: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        """The mean seconds of a call in each test of a trial's scenario."""
        self._growth = GrowthLog()
        self._evictor: Callable[[], object] | None = None
        self._replaced: dict[str, str] = {}
        """The clocks that a trial replaced in its commands, or in a block of its calls."""

    @property
    def handlers(self) -> Mapping[type[Command[Any]], tuple[WatchedWork, Callable[[Any], object]]]:
        """The handler of each command, and the kind of work that it is."""
        return {
            commands.Prepare: (WatchedWork.PREPARE, self.prepare),
            commands.SamplePath: (WatchedWork.SAMPLE, self.sample_path),
            commands.SampleStateCopy: (WatchedWork.SAMPLE, self.sample_state_copy),
            commands.OpenStreams: (WatchedWork.PREPARE, self.open_streams),
            commands.ServeFrames: (WatchedWork.SAMPLE, self.serve_frames),
            commands.ServeRequests: (WatchedWork.SAMPLE, self.serve_requests),
            commands.CloseStreams: (WatchedWork.VERIFY, self.close_streams),
            commands.Verify: (WatchedWork.VERIFY, self.verify),
            commands.TimeOnDevice: (WatchedWork.VERIFY, self.time_on_device),
        }

    def prepare(self, command: commands.Prepare) -> commands.Prepared:
        trial, reference = command.trial, self._held.reference(command.trial)
        with self._held.programs.watched(trial, PREPARING):
            prepared = PreparedProgram(self._held.program(trial), reference, self._evict)
            self._prepared[trial.id] = prepared
            verified = prepared.verify_first_calls()
            prepared.sync()
        # The evictor is made here: filling its buffer takes longer than a block.
        return commands.Prepared(verified, {**self._make_evictor(trial), **self._open_device_clock(trial)})

    def _make_evictor(self, trial: Trial) -> dict[str, str]:
        """Make the function that empties the device's caches, if the case has cold calls. Returns why it cannot."""
        paths = [path.name for path in requested(trial.measure.settings) if path.evicts]
        make = KINDS[trial.device].make_evictor
        if paths and make and self._evictor is None:
            try:
                self._evictor = make()
            except UnmeasuredError as error:
                return dict.fromkeys(paths, str(error))
        return {}

    def _open_device_clock(self, trial: Trial) -> dict[str, str]:
        """Open the device's own clock, if it has one. Returns why it cannot."""
        try:
            self._prepared[trial.id].open_device_clock(KINDS[trial.device])
        except UnmeasuredError as error:
            return {DEVICE_TIME: str(error)}
        return {}

    def sample_path(self, command: commands.SamplePath) -> commands.SentBlock:
        trial, path = command.trial, PATHS[command.path]
        prepared = self._prepared[trial.id]
        call = prepared.timed_call(path)
        self._growth.begin()

        def sample() -> Block:
            """Time a block, and examine the clocks before it and after it: another call may put them back."""
            self._note_clocks(trial)
            block = path.sample(call, command.plan)
            self._note_clocks(trial)
            return block

        def watched() -> Block:
            with self._threads[trial.id].watched():
                return sample()

        if path.entry == "public":
            block, around = surrounded(sample, _do_nothing, prepared.look_at_public, prepared.sync)
            prepared.public.called(block.calls)
        else:
            block, around = surrounded(watched, prepared.timed.start, prepared.look_at_bound, prepared.sync)
            prepared.timed.called(block.calls)
        self._surroundings[trial.id, path.name].append(around)
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
        self._growth.begin()
        if trial.id not in self._streams:
            self._streams[trial.id] = ProgramStreams(self._held.program(trial), self._held.reference(trial))
        return commands.OpenedStreams(self._streams[trial.id].open(command.streams, command.room))

    def serve_frames(self, command: commands.ServeFrames) -> commands.SentServed | Failed:
        if (streams := self._streams.get(command.trial.id)) is None:
            return LOST_STREAMS
        self._note_clocks(command.trial)
        served = streams.serve_frames(command.streams, command.frames, command.period)
        self._note_served(command.trial, STREAMS.name, served, command.streams)
        return commands.SentServed.of(served)

    def serve_requests(self, command: commands.ServeRequests) -> commands.SentServed | Failed:
        if (streams := self._streams.get(command.trial.id)) is None:
            return LOST_STREAMS
        arrivals = arrival_times(command.requests, command.rate, command.seed)
        self._note_clocks(command.trial)
        served = streams.serve_requests(arrivals, command.longest)
        self._note_served(command.trial, SERVER.name, served)
        return commands.SentServed.of(served)

    def close_streams(self, command: commands.CloseStreams) -> CheckResult | Failed:
        streams = self._streams.pop(command.trial.id, None)
        return LOST_STREAMS if streams is None else streams.verify_and_close()

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
            state=worker_state(),
            busy_threads=self._threads[trial.id].busy,
            growth=growth,
            metrics=read_metrics("sampled"),
        )

    def time_on_device(self, command: commands.TimeOnDevice) -> commands.DeviceTime:
        trial = command.trial
        try:
            seconds = self._prepared[trial.id].device_seconds()
        except UnmeasuredError as error:
            return commands.DeviceTime(unmeasured={DEVICE_TIME: str(error)})
        return commands.DeviceTime({} if seconds is None else device_metrics(seconds, trial.strategy.chunk))

    def _find_moved_work(self, trial: Trial) -> None:
        """Add findings about work that was moved out of the timed calls, as the trial's blocks show."""
        blocks = {path: self._surroundings.pop((trial.id, path), []) for path in PATHS}
        call_s = min((block.median for block in blocks["bound"]), default=None)
        signs = list(self._prepared[trial.id].moved_work(call_s))
        self._note_clocks(trial)
        if replaced := self._replaced.pop(trial.id, ""):
            signs.append(f"the program replaced {replaced} in its process")
        for path, of_path in blocks.items():
            signs += deferred_work(path, of_path, trial.threads)
            if PATHS[path].entry == "bound":
                signs.append(hidden_work(path, of_path, blocks["bound"]))
        for scenario in (STREAMS.name, SERVER.name):
            signs.append(cheap_service(scenario, self._served.pop((trial.id, scenario), []), blocks["bound"]))
        self._findings.add(
            Finding(kind=FindingKind.TIME, detail=detail, disbelieved=True) for detail in signs if detail
        )

    def _note_served(self, trial: Trial, scenario: str, served: Served, streams: int = 1) -> None:
        self._note_clocks(trial)
        self._served[trial.id, scenario].append(served.busy / (served.calls * streams))

    def _note_clocks(self, trial: Trial) -> None:
        """Note the clocks that the trial has replaced. They are put back after each command."""
        if replaced := replaced_clocks():
            self._replaced[trial.id] = replaced

    def _evict(self) -> None:
        assert self._evictor is not None, "`prepare` makes the evictor before a path that evicts is sampled"
        self._evictor()


def _do_nothing() -> None:
    """The public path needs no preparation, and the state's copy is complete when it returns."""
