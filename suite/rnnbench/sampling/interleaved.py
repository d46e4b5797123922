"""Sampling trials that are compared. All are loaded side by side; one runs at a time, in turn and in shuffled order.

So a drift of the machine affects all of them alike. Everything is repeated in fresh processes, since the layout of
memory differs between processes and changes a latency by itself. One process holds all trials of one backend, since
further imports would take longer than the sampling. `path_sampling` decides how long each trial is sampled. While the
results of timed calls are checked, the next processes are prepared.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from rnnbench.measure import STATE_COPY, overall_median, requested
from rnnbench.plan import close_adapters
from rnnbench.results import CommonTrial
from rnnbench.sampling.context import Context
from rnnbench.sampling.dispatch_floor import DispatchFloor
from rnnbench.sampling.energy import EnergyMeter
from rnnbench.sampling.groups import common_trial_of, device_holds, memory_of, split_by_memory
from rnnbench.sampling.path_sampling import PathSampling
from rnnbench.sampling.roof import RoofLog, RoofWorker
from rnnbench.sampling.sampling_worker import SamplingWorker
from rnnbench.sampling.scenarios import sample_scenarios
from rnnbench.sampling.started_ahead import StartedAhead, sets_at_once
from rnnbench.sampling.trial_sampling import TrialSampling
from rnnbench.sampling.verified_beside import cores_beside, verified_beside
from rnnbench.stages import Checked, RoofReadings, Sampled
from rnnbench.worker import by_worker

STATE_COPY_S = 0.004
"""Seconds of the block that times the state's round trip through NumPy. Each process has one."""


def sample_trials(trials: Sequence[Checked], context: Context, seed: int) -> list[Sampled]:
    """Sample trials that are compared, in an order drawn from `seed`. Returns them in the order given.

    If memory does not hold all of them at once, they are sampled in groups that share one trial, the common trial.
    """
    groups = list(split_by_memory(trials, common_trial_of(trials), memory_of, holds=device_holds))
    sampled: dict[str, Sampled] = {}
    for number, group in enumerate(groups):
        turns = InterleavedSampling(group.members, context, seed)
        of_group = turns.sample()
        if len(groups) > 1:
            common = common_trial_figure(of_group[group.members.index(group.common)], number, len(groups))
            of_group = [replace(member, common_trial=common) for member in of_group]
        for member in of_group:
            sampled.setdefault(member.trial.id, member)
    return [sampled[checked.trial.id] for checked in trials]


def common_trial_figure(common: Sampled, group: int, groups: int) -> CommonTrial:
    """The common trial's median latency in one of the groups."""
    bound = overall_median(common.paths["bound"].processes) if common.is_measured else None
    return CommonTrial(trial=common.trial.id, group=group, groups=groups, bound=bound)


@dataclass(frozen=True)
class Turn:
    """A trial and the worker that holds it."""

    worker: SamplingWorker
    sampling: TrialSampling

    def unfinished(self) -> list[PathSampling]:
        return _unfinished(self.sampling)

    def running(self) -> list[PathSampling]:
        """The paths that need more blocks from this process."""
        return [path for path in self.unfinished() if not path.process_is_done]


@dataclass
class ProcessSet:
    """Fresh processes that hold some trials, and the process that measures the roof."""

    number: int
    samplings: list[TrialSampling]
    workers: list[SamplingWorker]
    roof: RoofWorker
    shuffled: random.Random

    @property
    def doing(self) -> str:
        return f"sample, process {self.number + 1}"

    def turns(self) -> list[Turn]:
        """The trials that the workers hold, in a new random order. A nonconforming one is sampled to the end, too."""
        ids = {id(sampling) for sampling in self.samplings}
        turns = [Turn(worker, sampling) for worker in self.workers for sampling in worker.trials if id(sampling) in ids]
        self.shuffled.shuffle(turns)
        return turns

    def leave_out_failed(self) -> None:
        """Remove the trials that have failed since the set was prepared."""
        self.samplings = [sampling for sampling in self.samplings if not sampling.has_failed]
        for worker in self.workers:
            worker.keep([sampling for sampling in worker.trials if not sampling.has_failed])
        self.workers = [worker for worker in self.workers if worker.trials]

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self.roof.close()


class InterleavedSampling:
    """The trials of one group, process by process."""

    def __init__(self, trials: Sequence[Checked], context: Context, seed: int) -> None:
        self._trials = trials
        self._context = context
        self._seed = seed
        self._samplings = [_sampling_of(checked) for checked in trials]
        self._roof_logs = [RoofLog() for _ in trials]
        self._floor = DispatchFloor([checked.examined for checked in trials])
        self._energy = EnergyMeter(trials[0].trial.device)
        self._cores_beside = cores_beside(trials[0].trial, memory_of(trials))
        close_adapters()

    def sample(self) -> list[Sampled]:
        """Sample every trial in fresh processes until it is precise enough or its budget is spent."""
        certain = min(checked.trial.measure.processes for checked in self._trials)
        with StartedAhead(self._sets_at_once(), certain) as started, ExitStack() as open_sets:
            current = self._prepared(0, started, open_sets)
            while current is not None:
                self._time(current)
                current = self._verify(current, started, open_sets)
        return [
            sampling.sampled(
                checked, RoofReadings(tuple(log.processes), log.unmeasured), self._floor.samples_of(checked.examined)
            )
            for checked, sampling, log in zip(self._trials, self._samplings, self._roof_logs, strict=True)
        ]

    def _prepared(self, number: int, started: StartedAhead, open_sets: ExitStack) -> ProcessSet | None:
        """Fresh processes for the trials that need one, ready to be timed; None if no trial does."""
        numbers = [n for n, s in enumerate(self._samplings) if not s.has_failed and _unfinished(s)]
        if not numbers:
            return None
        shuffled = random.Random(f"{self._seed}/{number}")
        shuffled.shuffle(numbers)
        samplings = [self._samplings[n] for n in numbers]
        together = [*samplings, *self._floor.for_trials(samplings)]
        workers = started.take(number, together, partial(self._workers, together))
        for worker in workers:
            open_sets.callback(worker.close)
        roof = RoofWorker(
            [self._trials[n] for n in numbers],
            [self._roof_logs[n] for n in numbers],
            self._context,
            f"roof-{number}.log",
        )
        open_sets.callback(roof.close)
        prepared = ProcessSet(number, samplings, workers, roof, shuffled)
        for worker in workers:
            self._context.on_stage(worker.trials[0].trial, prepared.doing)
            worker.prepare()
        roof.ready()
        return prepared

    def _time(self, timed: ProcessSet) -> None:
        """Time everything in one set of processes, from the warm-ups on."""
        self._warm_up(timed)
        while turns := [turn for turn in timed.turns() if turn.running()]:
            timed.roof.read()
            self._floor.sample(timed.workers)
            for turn in turns:
                self._context.on_stage(turn.sampling.trial, timed.doing)
                for path in timed.shuffled.sample(running := turn.running(), len(running)):
                    _take_turn(turn, path)
        for turn in timed.turns():
            say = partial(self._context.on_stage, turn.sampling.trial)
            sample_scenarios(turn.worker, turn.sampling, say)
            self._energy.sample(turn.worker, turn.sampling, say)
        timed.roof.close()
        for worker in timed.workers:
            worker.end_sampling()
            for sampling in worker.trials:
                for path in _unfinished(sampling):
                    path.end_process()

    def _verify(self, timed: ProcessSet, started: StartedAhead, open_sets: ExitStack) -> ProcessSet | None:
        """Check the results of the timed calls, and prepare the next set, at the same time if the machine has room."""
        if not self._cores_beside:
            for worker in timed.workers:
                worker.verify()
            timed.close()
            return self._prepared(timed.number + 1, started, open_sets)
        with verified_beside(timed.workers, self._cores_beside, self._context.wall_time):
            following = self._prepared(timed.number + 1, started, open_sets)
        timed.close()
        if following is not None:
            following.leave_out_failed()
        return following

    def _workers(self, samplings: Sequence[TrialSampling], process: int) -> list[SamplingWorker]:
        return [
            SamplingWorker(sharing, self._context, f"sample-{process}.log")
            for sharing in by_worker((sampling.examined, sampling) for sampling in samplings)
        ]

    def _sets_at_once(self) -> int:
        workers = by_worker((checked.examined, checked) for checked in self._trials)
        return sets_at_once(len(workers), memory_of(self._trials))

    def _warm_up(self, timed: ProcessSet) -> None:
        warmups = {id(path): path.begin() for sampling in timed.samplings for path in _unfinished(sampling)}
        for turn in timed.turns():
            self._context.on_stage(turn.sampling.trial, timed.doing)
            for path in turn.unfinished():
                warmup = warmups[id(path)]
                if warmup is not None:
                    turn.worker.warm_up(turn.sampling, path, warmup)
            _copy_state(turn)
        self._floor.warm_up(timed.workers)


def _sampling_of(checked: Checked) -> TrialSampling:
    sampling, measure = TrialSampling(checked.examined), checked.trial.measure
    sampling.paths.update({path.name: PathSampling(measure, path) for path in requested(measure.settings)})
    return sampling


def _unfinished(sampling: TrialSampling) -> list[PathSampling]:
    """The paths of a trial whose sampling has not stopped."""
    return [path for path in sampling.paths.values() if isinstance(path, PathSampling) and path.stopped_by is None]


def _copy_state(turn: Turn) -> None:
    """Time one block of the state's round trip through NumPy, if the strategy carries a state."""
    if turn.sampling.trial.strategy.state != "none" and STATE_COPY not in turn.sampling.unmeasured:
        block = turn.worker.sample_state_copy(turn.sampling, STATE_COPY_S)
        if block is not None:
            turn.sampling.state_copies.append(block)


def _take_turn(turn: Turn, path: PathSampling) -> None:
    block = turn.worker.sample(turn.sampling, path, path.plan(path.block_s))
    if block is not None:
        path.add(block)
