"""The dispatch floor: the cost of a call of the smallest program that an adapter can build.

This program is a counter of one unit, with one step per call. It adds one number and has no weights. It is called like
`bound`, so its time is that of Python, the runtime's dispatch and passing the state in and out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rnnbench.cases import Launch, State, Strategy, Target
from rnnbench.measure import DEVICE_TIME, PATHS, WarmUp
from rnnbench.plan import examine
from rnnbench.rnn import DTYPES, Model
from rnnbench.sampling.path_sampling import PathBlocks
from rnnbench.sampling.sampling_worker import SamplingWorker
from rnnbench.sampling.trial_sampling import TrialSampling
from rnnbench.stages import DispatchFloorSamples, Examined, Failure
from rnnbench.worker import worker_key

COUNTER = Model(cell="counter", input=1, hidden=1)
TIMES = ("unrolled", "looped")
"""The counter's strategies of time; the first supported one is used. A compiler may keep a loop of one step."""
BLOCKS = 6
"""Blocks of the counter in each process, in the first rounds of the trials."""
BLOCK_S = 0.004
WARMUP_S = 0.02
BOUND = PATHS["bound"]


class DispatchFloor:
    """The smallest program of each target and state in a group, sampled in the same processes and rounds."""

    def __init__(self, group: Sequence[Examined]) -> None:
        self._smallest: dict[tuple[Target, State, Launch], TrialSampling] = {}
        for examined in group:
            if (key := _key(examined)) not in self._smallest:
                self._smallest[key] = _smallest_program(examined)

    def for_trials(self, trials: Sequence[TrialSampling]) -> list[TrialSampling]:
        """The smallest programs that can be sampled in the workers of these trials."""
        keys = dict.fromkeys(_key(sampling.examined) for sampling in trials)
        return [self._smallest[key] for key in keys if not self._smallest[key].has_failed]

    def warm_up(self, workers: Sequence[SamplingWorker]) -> None:
        for worker, smallest in self._places(workers):
            blocks = smallest.paths.setdefault(BOUND.name, PathBlocks(BOUND))
            warmup = WarmUp(WARMUP_S, smallest.trial.measure.precision)
            blocks.begin_process(warmup)
            worker.warm_up(smallest, blocks, warmup)

    def sample(self, workers: Sequence[SamplingWorker]) -> None:
        """Sample one block of each program that has fewer than BLOCKS of them in this process."""
        for worker, smallest in self._places(workers):
            blocks = smallest.paths[BOUND.name]
            if len(blocks.processes[-1]) < BLOCKS:
                block = worker.sample(smallest, blocks, blocks.plan(BLOCK_S))
                if block is not None:
                    blocks.add(block)

    def samples_of(self, examined: Examined) -> DispatchFloorSamples:
        smallest = self._smallest[_key(examined)]
        strategy = str(smallest.trial.strategy)
        processes = smallest.paths[BOUND.name].samples().processes if smallest.paths else ()
        if smallest.failure is not None:
            return DispatchFloorSamples(strategy, unmeasured=smallest.failure.reason)
        if smallest.not_believed:
            return DispatchFloorSamples(strategy, unmeasured=f"not believed: {smallest.not_believed}")
        if not processes or not all(processes):
            return DispatchFloorSamples(strategy, unmeasured="sampling ended before it had a block")
        return DispatchFloorSamples(strategy, processes)

    def _places(self, workers: Sequence[SamplingWorker]) -> list[tuple[SamplingWorker, TrialSampling]]:
        programs = {id(smallest) for smallest in self._smallest.values()}
        return [(worker, one) for worker in workers for one in list(worker.trials) if id(one) in programs]


def _key(examined: Examined) -> tuple[Target, State, Launch]:
    strategy = examined.trial.strategy
    return examined.trial.target, strategy.state, strategy.launch


def _smallest_program(examined: Examined) -> TrialSampling:
    """The smallest program of the trial's target, state and launch. It has failed if it cannot share the worker."""
    trial = examined.trial
    for time in TIMES:
        strategy = Strategy(time, trial.strategy.state, 1, trial.strategy.launch)
        dtype = DTYPES[trial.dtype].sampled_with
        small = replace(trial, model=COUNTER, strategy=strategy, steps=1, batch=1, seed=0)
        counter = replace(small, dtype=dtype, lengths="full")
        smallest = TrialSampling(examine(counter), is_built=False)
        smallest.note_unmeasured({DEVICE_TIME: "the floor is of bound calls only"})
        smallest.failure = smallest.examined.failure
        if smallest.failure is None and worker_key(smallest.examined) != worker_key(examined):
            reason = "a counter needs another environment than this trial"
            smallest.failure = Failure("support", "unsupported", reason)
        if smallest.failure is None and examined.on_software_device:
            smallest.failure = Failure("support", "unsupported", "a software device has no dispatch floor")
        if smallest.failure is None:
            break
    return smallest
