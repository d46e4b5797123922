"""A sampling worker: one process and the trials loaded in it. A trial that it dies of is dropped.

A trial's limits hold for each of its commands. The limit of memory is on what the process has resident, without what
the commands of its other trials have added to it. So a trial has as much here as in a worker of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import replace

from rnnbench.devices import KINDS, UnmeasuredError
from rnnbench.measure import Block, BlockPlan, DeviceConditions, DeviceSpell, Served, WallTime, WarmUp
from rnnbench.results import Finding, FindingKind
from rnnbench.sampling.command_watch import CommandWatch
from rnnbench.sampling.context import Context
from rnnbench.sampling.groups import eviction_memory
from rnnbench.sampling.path_sampling import PathBlocks
from rnnbench.sampling.trial_sampling import TrialSampling
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
    Verify,
    WorkerError,
    WorkerProcess,
    start_trial_worker,
    worker_cores,
)

SHARED_DEATH = Finding(
    kind=FindingKind.PROCESS,
    detail="a process that it shared with other trials ended while another one was asked; either may have led to that",
)


class SamplingWorker:
    """Where a trial kills the process, a new one takes over the trials that are left."""

    def __init__(self, trials: list[TrialSampling], context: Context, log: str) -> None:
        self.trials = trials
        self._replaces_one = True
        """Whether another process takes the place of one that dies before it is asked: the next time."""
        self._is_unasked = True
        """Whether the process was not asked for any trial yet."""
        self._context = context
        self._log = log
        self._process: WorkerProcess[ImportFigures] | None = None
        self._watch: CommandWatch | None = None
        self._buffer = max(eviction_memory(one.trial) for one in trials)
        """Bytes of the suite's own that stay in the process once a trial is sampled with cold caches."""
        self._added: defaultdict[str, int] = defaultdict(int)
        """Bytes that each trial's commands have made resident in the process, by the trial's id."""
        self._timed_on: tuple[int, ...] = ()
        """The cores that the process was held to while it was timed, once it is held to others."""
        self._ran: set[str] = set()
        """The trials that the process was asked for, by id."""

    def start(self) -> None:
        """Start a process, without waiting for it."""
        self.close()
        self._is_unasked = True
        self._process = start_trial_worker(self.trials[0].examined, self._context.folders, self._log)

    def keep(self, trials: Container[TrialSampling]) -> None:
        """Leave out all other trials. Without one that is left, there is no process."""
        self.trials = [sampling for sampling in self.trials if sampling in trials]
        if not self.trials:
            self.close()

    def prepare(self) -> None:
        """Load, bind and check every trial in the process. Where one kills it, do so in another with the rest.

        A trial that is not built yet is built first, in a child of the process, before anything is loaded there. A
        runtime's threads do not come through a fork, and its locks do.
        """
        prepared = False
        while self.trials and not prepared:
            if self._process is None:
                self.start()
            elif self._is_unasked and self._process.has_ended and self._replaces_one:
                self._start_another("while it waited, before it had a program")
            if not self.import_framework():
                return
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

    def import_framework(self) -> bool:
        """Whether the process has imported its framework, and is stopped. Where not, all of its trials have failed.

        Processes of this run have imported it before, for each of the trials. So one that dies of it has not died of a
        trial, and another one takes its place, once.
        """
        while self._watch is None:
            if not (trials := list(self.trials)):  # It was abandoned.
                return False
            assert self._process is not None, "it was started"
            try:
                with self._context.wall_time.spent_on("import"):
                    self._process.ready(memory=max(one.trial.limits.memory for one in trials))
            except WorkerError as error:
                if error.outcome == "crashed" and self._replaces_one:
                    self._start_another(f"during its import, before it had a program ({error.reason})")
                    continue
                for sampling in trials:
                    sampling.fail(error)
                self.trials = []
                return False
            self._process.pause()
            self._watch = CommandWatch(self._process.pid, set(worker_cores(trials[0].trial)))
        return True

    def _start_another(self, when: str) -> None:
        """Start a process in the place of one that died before it was asked for a trial, or between two commands."""
        self._replaces_one = False
        finding = Finding(
            kind=FindingKind.PROCESS,
            detail=f"a process for its samples died {when}; another one took its place",
        )
        for sampling in self.trials:
            sampling.note_findings([finding])
        if self.trials:
            self.start()

    def sample(self, sampling: TrialSampling, blocks: PathBlocks, plan: BlockPlan) -> Block | None:
        """One block of a latency path; None if the trial has failed, or had failed before."""
        return self._sample(sampling, SamplePath(sampling.trial, blocks.path.name, plan), plan.calls_per_sample)

    def sample_state_copy(self, sampling: TrialSampling, seconds: float) -> Block | None:
        """One block of the state's round trip through NumPy."""
        return self._sample(sampling, SampleStateCopy(sampling.trial, seconds))

    def warm_up(self, sampling: TrialSampling, blocks: PathBlocks, warmup: WarmUp) -> None:
        """Calls that do not count, until the warm-up is over."""
        while not warmup.is_over:
            window = self.sample(sampling, blocks, BlockPlan(warmup.window_s, rewarm=False, setting=blocks.setting))
            if window is None:
                return
            warmup.windows.append(window)

    def open_streams(self, sampling: TrialSampling, streams: int) -> int:
        """How many streams are open, so many if memory and time allow; 0 if the trial has failed.

        They may take half of the memory that the trial has left: its figures are worth more than one stream more.
        """
        room = (sampling.trial.limits.memory - self._added[sampling.trial.id]) // 2
        opened = self._ask_or_restart(sampling, OpenStreams(sampling.trial, streams, room), "sample")
        return opened.streams if opened else 0

    def serve_frames(self, sampling: TrialSampling, streams: int, frames: int, period: float) -> Served | None:
        """One test of so many open streams; None if the trial has failed."""
        return self._serve(sampling, ServeFrames(sampling.trial, streams, frames, period))

    def serve_requests(
        self, sampling: TrialSampling, rate: float, requests: int, seed: int, longest: float
    ) -> Served | None:
        """Requests at random to the first open stream; None if the trial has failed."""
        return self._serve(sampling, ServeRequests(sampling.trial, rate, requests, seed, longest))

    def close_streams(self, sampling: TrialSampling) -> None:
        """Check what the streams' calls led to, and close them."""
        result = self._ask_or_restart(sampling, CloseStreams(sampling.trial), "check")
        if result is not None:
            sampling.note_timed(result)

    def verify(self) -> None:
        """Check what the timed calls of every trial led to."""
        for sampling in list(self.trials):
            verified = self._ask_or_restart(sampling, Verify(sampling.trial), "check")
            if verified is not None:
                state = replace(verified.state, affinity=self._timed_on or verified.state.affinity)
                sampling.note_verified(replace(verified, state=state))

    def end_sampling(self) -> None:
        """Note what the clocks around the blocks show. Nothing is timed in this process any more."""
        for sampling in self.trials:
            assert self._watch is not None, "the process has answered"
            sampling.note_findings(self._watch.findings(sampling.trial.id, len(worker_cores(sampling.trial))))

    def step_aside(self, cores: Sequence[int]) -> None:
        """Hold the process to other cores. Its seconds count for nobody from now on: others are waited for."""
        if self._process is not None:
            self._timed_on = self._process.hold_to(cores)
        self._context = replace(self._context, wall_time=WallTime())

    def abandon(self) -> None:
        """Kill the process, while another thread may be waiting for it. No other one takes over its trials.

        That thread sees that it has ended. `close` comes after that thread.
        """
        self.trials.clear()
        if (process := self._process) is not None:
            process.kill()

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = self._watch = None
        self._added.clear()
        self._ran.clear()

    def _sample(
        self, sampling: TrialSampling, command: Command[SentBlock], calls_per_sample: int = 1
    ) -> SentBlock | None:
        """One block. A block whose times cannot be is a failure of its trial, and no figure."""
        before = _conditions(sampling)
        block = self._ask_or_restart(sampling, command, "sample")
        after = _conditions(sampling)
        if block is None:
            return None
        assert self._watch is not None, "the process has answered"
        if problem := self._watch.contradiction(sampling.trial.id, block, calls_per_sample):
            self._drop_impossible(sampling, problem)
            return None
        return replace(block, device=DeviceSpell(before, after) if before and after else None)

    def _serve(self, sampling: TrialSampling, command: Command[SentServed]) -> Served | None:
        """Work that is due. Times that cannot be are a failure of its trial, and no figure."""
        served = self._ask_or_restart(sampling, command, "sample")
        if served is None:
            return None
        assert self._watch is not None, "the process has answered"
        if problem := self._watch.contradiction_of_served(served):
            self._drop_impossible(sampling, problem)
            return None
        return served

    def _ask_or_restart(self, sampling: TrialSampling, command: Command[Reply], purpose: str) -> Reply | None:
        """As `_ask`. Where the process died of it, another one takes over the trials that are left.

        One that has ended before it is asked was killed while it was stopped. No trial is blamed for that, once.
        """
        if self._process is not None and self._process.has_ended and self._replaces_one and sampling in self.trials:
            self._start_another("while it was stopped")
            self.prepare()
        reply = self._ask(sampling, command, purpose)
        if reply is None and self._process is None:
            self.prepare()
        return reply

    def _ask(self, sampling: TrialSampling, command: Command[Reply], purpose: str) -> Reply | None:
        """The reply. The process runs no longer than it takes. None if the trial has failed and was dropped."""
        if self._process is None or self._watch is None or sampling not in self.trials:
            return None
        self._is_unasked = False
        self._ran.add(sampling.trial.id)
        try:
            self._watch.begin(sampling.trial.id)
            self._process.resume()
            with self._context.wall_time.spent_on(purpose):
                reply = self._ask_within_limits(self._process, sampling, command)
            self._process.pause()
            self._watch.end()
            sampling.note_findings(self._process.take_findings())
        except WorkerError as error:
            sampling.note_findings(self._process.take_findings())
            # A call that failed may have left its runtime unusable: where a GPU was lost, every later call fails too.
            is_whole = error.alive and isinstance(command, Build | Restore)
            reason = error.reason if error.answered else self._shared_death(sampling, error)
            self._drop(sampling, WorkerError(error.outcome, reason, is_whole))
            return None
        return reply

    def _shared_death(self, asked: TrialSampling, error: WorkerError) -> str:
        """Tell both sides of a death that may be the doing of another trial than the one that was asked.

        A thread of an earlier one may have ended the process, or stopped it. Returns the reason of the asked one.
        """
        others = self._ran - {asked.trial.id}
        if error.outcome not in ("crashed", "timed-out") or not others:
            return error.reason
        for sampling in self.trials:
            if sampling.trial.id in others:
                sampling.note_findings([SHARED_DEATH])
        counted = f"{len(others)} other trial{'s' * (len(others) > 1)}"
        return f"{error.reason}; {counted} had run in its process, and may have led to it"

    def _drop(self, sampling: TrialSampling, error: WorkerError) -> None:
        sampling.fail(error)
        if sampling in self.trials:  # They are gone where the process was abandoned.
            self.trials.remove(sampling)
        if not error.alive:
            self.close()

    def _drop_impossible(self, sampling: TrialSampling, problem: str) -> None:
        """Its program has shown times that cannot be."""
        self._drop(sampling, WorkerError("run-failed", f"times that cannot be: {problem}", alive=True))

    def _ask_within_limits(
        self, process: WorkerProcess[ImportFigures], sampling: TrialSampling, command: Command[Reply]
    ) -> Reply:
        """Raises WorkerError. A block is not worth a look for new children of the process after it."""
        limits, name = sampling.trial.limits, sampling.trial.id
        looks = not isinstance(command, SamplePath | SampleStateCopy | ServeFrames | ServeRequests)
        before = process.resident(look=looks)
        others = sum(self._added.values()) - self._added[name]
        try:
            return process.ask(command, limits.trial, limits.memory + others + self._buffer)
        except WorkerError as error:
            if error.outcome == "out-of-memory" and others:
                reason = f"{error.reason}; {others >> 20} MiB of both are of other trials in its process"
                raise WorkerError(error.outcome, reason, error.alive) from error
            raise
        finally:
            self._added[name] = max(0, self._added[name] + process.resident(look=looks) - before)


def _conditions(sampling: TrialSampling) -> DeviceConditions | None:
    """What the trial's device does now; None if it does not tell."""
    if (read := KINDS[sampling.trial.device].conditions) is None:
        return None
    try:
        return read()
    except UnmeasuredError as error:
        sampling.note_unmeasured({"device_conditions": str(error)})
        return None
