"""A sampling worker: one process and the trials loaded in it. If a command kills the process, its trial is dropped.

A command for a figure beside the latencies that every trial has costs only this figure: the trial goes on in a new
process without it.

A trial's limits hold for each of its commands. `added_memory` has those of memory.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import replace

from rnnbench.measure import (
    DEVICE_TIME,
    SERVER,
    STATE_COPY,
    STREAMS,
    Block,
    BlockPlan,
    DeviceSpell,
    Served,
    WallTime,
    WarmUp,
)
from rnnbench.results import Finding, FindingKind
from rnnbench.sampling.added_memory import AddedMemory
from rnnbench.sampling.command_watch import CommandWatch
from rnnbench.sampling.context import Context
from rnnbench.sampling.groups import eviction_memory
from rnnbench.sampling.path_sampling import PathBlocks
from rnnbench.sampling.trial_sampling import TrialSampling
from rnnbench.spelling import count
from rnnbench.stages import ImportFigures
from rnnbench.worker import (
    Build,
    CloseStreams,
    Command,
    OpenStreams,
    Prepare,
    Reply,
    Restore,
    SamplePath,
    SampleStateCopy,
    SentBlock,
    SentServed,
    ServeFrames,
    ServeRequests,
    TimeOnDevice,
    Verify,
    WorkerError,
    WorkerProcess,
    start_trial_worker,
    worker_cores,
)

SHARED_DEATH = Finding(
    kind=FindingKind.PROCESS,
    detail="a process that it shared with other trials ended while another one was sampled; either may be the cause",
)
UNCHECKED = Finding(
    kind=FindingKind.PROCESS,
    detail="a process in which its calls were timed ended before their results were checked",
)
TRIES = 3
"""Times that the same calls are timed at most, because the suite was stopped meanwhile."""
STOPPED = Finding(
    kind=FindingKind.TIME,
    detail=f"the suite was stopped in each of {TRIES} tries to time the same calls: they may have been stopped too",
    disbelieved=True,
)


class SamplingWorker:
    """One process and its trials. If a trial kills the process, a new process takes over the other trials."""

    def __init__(self, trials: list[TrialSampling], context: Context, log: str) -> None:
        self.trials = trials
        self._replaces_one = True
        """Whether a process that dies without a trial's fault is replaced. This happens once."""
        self._context = context
        self._log = log
        self._process: WorkerProcess[ImportFigures] | None = None
        self._watch: CommandWatch | None = None
        self._memory = AddedMemory(max(eviction_memory(sampling.trial) for sampling in trials))
        self._timed_on: tuple[int, ...] = ()
        """The cores of the process while it was timed. Empty until it is bound to others."""
        self._ran: set[str] = set()
        """The ids of the trials that have had a command in the process."""
        self._unchecked: set[str] = set()
        """The ids of those with timed calls whose results are not checked yet."""
        self.stops = 0
        """How often the suite was stopped while calls were timed."""

    def start(self) -> None:
        """Start a process, without waiting for it. An abandoned worker starts none."""
        self.close()
        if not (trials := list(self.trials)):  # `abandon` removes them at any moment.
            return
        self._process = start_trial_worker(trials[0].examined, self._context.folders, self._log)

    def keep(self, trials: Container[TrialSampling]) -> None:
        """Remove all other trials. Close the process if no trial is left."""
        self.trials = [sampling for sampling in self.trials if sampling in trials]
        if not self.trials:
            self.close()

    def prepare(self) -> None:
        """Load, bind and check every trial in the process. If one kills it, prepare the others in a new process.

        Trials that are not built are built first, in children of the process, before it loads anything. A fork would
        copy a runtime's locks, and not its threads.
        """
        prepared = False
        while self.trials and not prepared:
            if self._process is None:
                self.start()
            elif not self._ran and self._process.has_ended and self._replaces_one:
                self._start_another("while it waited, before it had a program")
            self.import_framework()
            for sampling in [sampling for sampling in self.trials if not sampling.is_built]:
                sampling.is_built = self._ask(sampling, Build(sampling.trial), "build") is not None
            for sampling in list(self.trials):
                self._ask(sampling, Restore(sampling.trial), "build")
            for sampling in list(self.trials):
                ready = self._ask(sampling, Prepare(sampling.trial), "check")
                if ready is not None:
                    sampling.note_timed(ready.timed)
                    sampling.note_unmeasured(ready.unmeasured)
            prepared = self._process is not None

    def import_framework(self) -> None:
        """Wait until the process has imported its framework, and stop it. No trial is left if all of them failed.

        Other processes of this run have imported the framework for these trials. So if this one dies, no trial is the
        cause, and another process takes its place, once.
        """
        while self._watch is None:
            if not (trials := list(self.trials)):  # The worker was abandoned.
                return
            assert self._process is not None, "it was started"
            try:
                with self._context.wall_time.spent_on("import"):
                    self._process.ready(memory=max(sampling.trial.limits.memory for sampling in trials))
            except WorkerError as error:
                if error.outcome == "crashed" and self._replaces_one:
                    self._start_another(f"during its import, before it had a program ({error.reason})")
                    continue
                for sampling in trials:
                    sampling.fail(error)
                self.trials = []
                return
            self._process.pause()
            self._watch = CommandWatch(self._process.pid, set(worker_cores(trials[0].trial)))

    def _start_another(self, when: str) -> None:
        """Replace a process that died before its first trial, or between two commands."""
        self._replaces_one = False
        finding = Finding(
            kind=FindingKind.PROCESS,
            detail=f"a process for its samples died {when}; another one took its place",
        )
        for sampling in list(self.trials):
            sampling.note_findings([finding])
        self._end_early()
        self.start()

    def sample(self, sampling: TrialSampling, blocks: PathBlocks, plan: BlockPlan, figure: str = "") -> Block | None:
        """Sample one block of a latency path. Returns None if the trial fails, or has failed before.

        `figure` names the figure that the block is for, if it is not a latency.
        """
        command = SamplePath(sampling.trial, blocks.path.name, plan)
        return self._sample(sampling, command, plan.calls_per_sample, figure or blocks.path.figure)

    def sample_state_copy(self, sampling: TrialSampling, seconds: float) -> Block | None:
        """Sample one block of the state's round trip through NumPy. Returns None if the trial fails."""
        return self._sample(sampling, SampleStateCopy(sampling.trial, seconds), figure=STATE_COPY)

    def warm_up(self, sampling: TrialSampling, blocks: PathBlocks, warmup: WarmUp) -> None:
        """Call the program without counting, until the warm-up is over or the trial fails."""
        while not warmup.is_over:
            window = self.sample(sampling, blocks, BlockPlan(warmup.window_s, rewarm=False, setting=blocks.setting))
            if window is None:
                return
            warmup.windows.append(window)

    def open_streams(self, sampling: TrialSampling, streams: int, scenario: str) -> int:
        """Open streams until `streams` are open, or memory or time runs out. Returns how many are open; 0 on failure.

        They may use half of the memory that the trial has left, so that the trial does not fail for one more stream.
        """
        command = OpenStreams(sampling.trial, streams, self._memory.left(sampling.trial) // 2)
        opened = self._ask_or_restart(sampling, command, "sample", scenario)
        if opened is not None and opened.streams > streams:
            problem = f"{opened.streams} streams are open, and {streams} were requested"
            self._drop(sampling, WorkerError("run-failed", problem, alive=True))
            return 0
        return opened.streams if opened else 0

    def serve_frames(self, sampling: TrialSampling, streams: int, frames: int, period: float) -> Served | None:
        """Test the first `streams` open streams, a frame every `period` seconds. Returns None if the trial fails."""
        return self._serve(sampling, ServeFrames(sampling.trial, streams, frames, period), STREAMS.name)

    def serve_requests(
        self, sampling: TrialSampling, rate: float, requests: int, seed: int, longest: float
    ) -> Served | None:
        """Send requests at random to the first open stream. Returns None if the trial fails."""
        return self._serve(sampling, ServeRequests(sampling.trial, rate, requests, seed, longest), SERVER.name)

    def close_streams(self, sampling: TrialSampling, scenario: str) -> bool:
        """Check the results of the streams' calls, and close the streams. Returns False if that was not possible."""
        result = self._ask_or_restart(sampling, CloseStreams(sampling.trial), "check", scenario)
        if result is not None:
            sampling.note_timed(result)
        return result is not None

    def verify(self) -> None:
        """Check the results of every trial's timed calls. Then time some calls by the device's own events."""
        for sampling in list(self.trials):
            verified = self._ask_or_restart(sampling, Verify(sampling.trial), "check")
            if verified is not None:
                self._unchecked.discard(sampling.trial.id)
                state = replace(verified.state, affinity=self._timed_on or verified.state.affinity)
                sampling.note_verified(replace(verified, state=state))
        self._time_on_device()

    def end_sampling(self) -> None:
        """Add the findings of the clocks around the blocks. Nothing is timed in this process after this call."""
        for sampling in self.trials:
            assert self._watch is not None, "the process has answered"
            sampling.note_findings(self._watch.findings(sampling.trial.id, len(worker_cores(sampling.trial))))

    def step_aside(self, cores: Sequence[int]) -> None:
        """Bind the process to other cores. Its wall time is no longer counted, since others work at the same time."""
        if self._process is not None:
            self._timed_on = self._process.hold_to(cores)
        self._context = replace(self._context, wall_time=WallTime())

    def abandon(self) -> None:
        """Kill the process, even while another thread waits for it. No process takes over its trials.

        The other thread notices the end. Call `close` only after that thread.
        """
        self.trials.clear()
        if (process := self._process) is not None:
            process.kill()

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = self._watch = None
        self._memory.clear()
        self._ran.clear()
        self._unchecked.clear()

    def _end_early(self) -> None:
        """Close the process of a trial that ended it. The other trials say what was not checked there."""
        for sampling in list(self.trials):
            if sampling.trial.id in self._unchecked:
                sampling.note_findings([UNCHECKED])
        self.close()

    def _time_on_device(self) -> None:
        """Time calls by the device's own events. If one trial loses the process, those after it have no such figure.

        Everything else is measured and verified by then. So no process is started for it.
        """
        for sampling in [trial_sampling for trial_sampling in self.trials if trial_sampling.has_device_clock]:
            if self._process is None:
                sampling.miss_device_time()
                continue
            timed = self._ask(sampling, TimeOnDevice(sampling.trial), "sample", DEVICE_TIME)
            if timed is not None:
                sampling.note_device_time(timed)

    def _sample(
        self, sampling: TrialSampling, command: Command[SentBlock], calls_per_sample: int = 1, figure: str = ""
    ) -> SentBlock | None:
        """Sample one block. If its times are impossible, the trial fails."""
        before = sampling.device_conditions()
        block = self._time(sampling, command, figure)
        after = sampling.device_conditions()
        if block is None:
            return None
        self._unchecked.add(sampling.trial.id)
        assert self._watch is not None, "the process has answered"
        if problem := self._watch.contradiction(sampling.trial.id, block, calls_per_sample):
            self._drop_impossible(sampling, problem)
            return None
        return replace(block, device=DeviceSpell(before, after) if before and after else None)

    def _serve(self, sampling: TrialSampling, command: Command[SentServed], scenario: str) -> Served | None:
        """Serve frames or requests. If the times are impossible, the trial fails."""
        served = self._time(sampling, command, scenario)
        if served is None:
            return None
        assert self._watch is not None, "the process has answered"
        if problem := self._watch.contradiction_of_served(served):
            self._drop_impossible(sampling, problem)
            return None
        return served

    def _time(self, sampling: TrialSampling, command: Command[Reply], figure: str) -> Reply | None:
        """As `_ask_or_restart`, for a command that times calls.

        If the suite was stopped meanwhile, the command is sent again: the worker may have been stopped in a call.
        """
        for _ in range(TRIES):
            reply = self._ask_or_restart(sampling, command, "sample", figure)
            if reply is None or self._process is None or not self._process.stopped_s:
                return reply
            self.stops += 1
        sampling.note_findings([STOPPED])
        return reply

    def _ask_or_restart(
        self, sampling: TrialSampling, command: Command[Reply], purpose: str, figure: str = ""
    ) -> Reply | None:
        """As `_ask`. If the process dies of the command, a new process takes over the trials that have not failed.

        A process that has ended before the command was killed while it was stopped. This is no trial's fault, and the
        process is replaced once.
        """
        if self._process is not None and self._process.has_ended and self._replaces_one and sampling in self.trials:
            self._start_another("while it was stopped")
            self.prepare()
        reply = self._ask(sampling, command, purpose, figure)
        if reply is None and self._process is None:
            self.prepare()
        return reply

    def _ask(self, sampling: TrialSampling, command: Command[Reply], purpose: str, figure: str = "") -> Reply | None:
        """Let the process carry out one command, and stop it again. Returns None if the trial fails and is dropped.

        A command for a `figure` beside the latencies drops no trial: without it the figure is unmeasured. The process
        is closed then, since a failed call may have left its runtime unusable.
        """
        if self._process is None or self._watch is None or sampling not in self.trials:
            return None
        self._ran.add(sampling.trial.id)
        try:
            self._watch.begin(sampling.trial.id)
            self._process.resume()
            with self._context.wall_time.spent_on(purpose):
                reply = self._memory.ask(self._process, sampling.trial, command)
            self._process.pause()
            self._watch.end()
            sampling.note_findings(self._process.take_findings())
        except WorkerError as error:
            sampling.note_findings(self._process.take_findings())
            # A failed call may have left its runtime unusable: after a GPU is lost, every later call fails too.
            is_whole = error.alive and isinstance(command, Build | Restore)
            reason = error.reason if error.answered else self._shared_death(sampling, error)
            failure = WorkerError(error.outcome, reason, is_whole)
            if figure:
                sampling.lose(figure, failure)
                self._unchecked.discard(sampling.trial.id)  # `lose` has told it.
                self._end_early()
            else:
                self._drop(sampling, failure)
            return None
        return reply

    def _shared_death(self, asked: TrialSampling, error: WorkerError) -> str:
        """The reason of a death for the asked trial. Other trials that ran in the process get a finding.

        A thread of an earlier trial may have ended or stopped the process.
        """
        others = self._ran - {asked.trial.id}
        if error.outcome not in ("crashed", "timed-out") or not others:
            return error.reason
        for sampling in self.trials:
            if sampling.trial.id in others:
                sampling.note_findings([SHARED_DEATH])
        counted = count(len(others), "other trial")
        return f"{error.reason}; {counted} had run in its process, and may be the cause"

    def _drop(self, sampling: TrialSampling, error: WorkerError) -> None:
        sampling.fail(error)
        with suppress(ValueError):  # `abandon` removes all trials at any moment.
            self.trials.remove(sampling)
        if not error.alive:
            self._end_early()

    def _drop_impossible(self, sampling: TrialSampling, problem: str) -> None:
        """Drop a trial whose program showed impossible times."""
        self._drop(sampling, WorkerError("run-failed", f"times that cannot be: {problem}", alive=True))
