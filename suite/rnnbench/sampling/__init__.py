"""Sampling: timing trials that are compared, in turn, in fresh processes.

    interleaved      `sample_trials`: the trials of one workload, until each latency is known precisely enough
    judged_pairs     `judge_trials`: the same trials on two sides, until each latency has a verdict
    pair_sampling    trials on two sides in one pair of fresh processes after the other
    path_sampling    one latency path of one trial: its blocks, and when to stop
    scenarios        the scenarios of one trial: real-time streams, requests at random
    energy           the energy of calls, in a block of seconds
    trial_sampling   the samples and results of one trial, while it is sampled
    sampling_worker  one process and the trials loaded in it
    added_memory     the memory limits of trials that share a process
    command_watch    the suite's own clocks around a worker's commands
    started_ahead    processes that import side by side and are stopped until their turn
    verified_beside  the check after sampling, while the next processes are prepared
    groups           trials split into groups that fit in memory
    dispatch_floor   the smallest program, sampled beside the trials
    roof             the machine's bandwidth and arithmetic, measured beside the trials in `roof_worker`
    context          the folders and clocks that all stages share

`rnnbench.measure.blocks` times one block of calls, and `rnnbench.measure.paths` declares the latency paths.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.sampling.context import Context
    from rnnbench.sampling.groups import most_workers
    from rnnbench.sampling.interleaved import sample_trials
    from rnnbench.sampling.judged_pairs import NO_ROOF, JudgedTrial, PairBudget, judge_trials, verdict_cost
    from rnnbench.sampling.pair_sampling import COMPARED, SIDES
    from rnnbench.sampling.path_sampling import PathBlocks
    from rnnbench.sampling.roof import cost_of
    from rnnbench.sampling.sampling_worker import SamplingWorker
    from rnnbench.sampling.trial_sampling import TrialSampling

__getattr__, __all__ = lazy_names(__name__, __file__)
