"""Timing trials that are to be compared, in turn, in fresh processes.

    interleaved      `sample_trials`: the trials of one workload, until each latency is known precisely enough
    pairs            `judge_trials`: the same trials on two sides, until each latency has a verdict
    path_sampling    one latency path of one trial: its blocks, and when to stop
    scenarios        the scenarios of one trial: real-time streams, requests at random
    energy           the energy of calls, in a block of seconds
    trial_sampling   what is collected of one trial
    sampling_worker  one process and the trials loaded in it
    command_watch    the suite's own clocks around a worker's commands
    started_ahead    processes that import side by side and are stopped until their turn
    verified_beside  the check after sampling, beside the preparation of the next processes
    groups           trials that memory does not hold at once
    dispatch_floor   the smallest program, sampled beside the trials
    roof             what the machine can do, measured beside the trials; `roof_worker` does it
    context          the folders and clocks that all stages share

How one block of calls is timed is in `rnnbench.measure.blocks`, which latencies there are in `rnnbench.measure.paths`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.sampling.context import Context
    from rnnbench.sampling.interleaved import sample_trials
    from rnnbench.sampling.pairs import COMPARED, NO_ROOF, SIDES, JudgedTrial, PairBudget, judge_trials, verdict_cost
    from rnnbench.sampling.path_sampling import PathBlocks
    from rnnbench.sampling.roof import cost_of
    from rnnbench.sampling.sampling_worker import SamplingWorker
    from rnnbench.sampling.trial_sampling import TrialSampling

_NAMES = {
    "context": ("Context",),
    "pairs": (
        "COMPARED",
        "NO_ROOF",
        "JudgedTrial",
        "PairBudget",
        "SIDES",
        "judge_trials",
        "verdict_cost",
    ),
    "path_sampling": ("PathBlocks",),
    "roof": ("cost_of",),
    "sampling_worker": ("SamplingWorker",),
    "trial_sampling": ("TrialSampling",),
    "interleaved": ("sample_trials",),
}
__all__ = [
    "COMPARED",
    "NO_ROOF",
    "SIDES",
    "Context",
    "JudgedTrial",
    "PairBudget",
    "PathBlocks",
    "SamplingWorker",
    "TrialSampling",
    "cost_of",
    "judge_trials",
    "sample_trials",
    "verdict_cost",
]
__getattr__ = lazy_names(__name__, _NAMES)
