"""Judging trials on two sides: they are sampled in pairs of processes until each latency has a verdict.

Further pairs are started while a verdict is open and budget is left. Trials of the same sizes are sampled in turn.
`pair_sampling` samples the pairs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rnnbench.cases import Trial
from rnnbench.results import LOOKS, SMALLEST, Judgement
from rnnbench.sampling.context import Context
from rnnbench.sampling.groups import common_trial_of, device_holds, memory_of, split_by_memory
from rnnbench.sampling.interleaved import common_trial_figure
from rnnbench.sampling.pair_sampling import PairSampling, TrialPair
from rnnbench.sampling.started_ahead import StartedAhead, sets_at_once
from rnnbench.sampling.trial_sampling import TrialSampling
from rnnbench.sampling.verified_beside import cores_beside
from rnnbench.stages import Checked, RoofReadings, Sampled
from rnnbench.worker import by_worker

NO_ROOF = RoofReadings(unmeasured="`rnnbench ab` compares two sides and measures no roof; `rnnbench run` does")

CheckedPair = tuple[Checked, Checked]
"""One trial on both sides."""


@dataclass(frozen=True)
class JudgedTrial:
    """One trial on both sides, sampled in pairs of processes and judged."""

    sides: tuple[Sampled, Sampled]
    judgements: Mapping[str, Judgement]
    """The verdict of each latency path."""
    ratios: Mapping[str, Sequence[float]]
    """For each latency path, the ratio b / a of each pair of processes."""
    scatters: Mapping[str, Sequence[float]]
    """For each latency path, the scatter of the rounds of each pair."""
    seconds: float
    """Wall time of its pairs, divided evenly among the trials in the same processes."""
    means: Mapping[str, Judgement]
    """For each latency path, what the verdict on the mean of the calls would be."""


@dataclass(frozen=True)
class PairBudget:
    """Decides when to stop sampling pairs."""

    seconds: float
    """Wall time per trial."""
    smallest_change: float | None = None
    """Smallest relative change of latency that matters; None means that of each trial's case, or the default."""
    pairs: int | None = None
    """An exact number of pairs, within the budget; None means until there is a verdict."""

    def smallest_change_of(self, trial: Trial) -> float:
        if self.smallest_change is not None:
            return self.smallest_change
        return trial.thresholds.get("latency", SMALLEST)


def judge_trials(
    trials: Sequence[CheckedPair], contexts: tuple[Context, Context], budget: PairBudget, seed: int
) -> list[JudgedTrial]:
    """Sample trials of one workload on both sides until each latency has a verdict. Returns them in the order given."""
    common_a = common_trial_of([a for a, _ in trials])
    common = next(pair for pair in trials if pair[0] is common_a)
    groups = list(split_by_memory(trials, common, _memory_of_pairs, holds=_device_holds_pairs))
    judged: dict[str, JudgedTrial] = {}
    for number, group in enumerate(groups):
        pairs = [_pair_of(a, b, budget) for a, b in group.members]
        with StartedAhead(_pairs_at_once(group.members), budget.pairs or LOOKS[0]) as started:
            beside = cores_beside(group.members[0][0].trial, _memory_of_pairs(group.members))
            decide(pairs, budget, PairSampling(contexts, seed, started=started, beside=beside).sample_pair)
        of_group = [_judged(checked, pair) for checked, pair in zip(group.members, pairs, strict=True)]
        if len(groups) > 1:
            of_common = of_group[group.members.index(group.common)]
            of_group = [_with_common_trial(member, of_common, number, len(groups)) for member in of_group]
        for member in of_group:
            judged.setdefault(member.sides[0].trial.id, member)
    return [judged[a.trial.id] for a, _ in trials]


def decide(pairs: Sequence[TrialPair], budget: PairBudget, sample: Callable[[Sequence[TrialPair], int], None]) -> None:
    """Sample pairs of processes until all trials are judged, the budget is spent, or the last of LOOKS is reached.

    `sample` samples the trials in one pair of processes; its second argument is the pair's number. The end of the
    budget does not depend on the observations. If it comes before the first of LOOKS, there is one look, at the end.
    """
    for number in range(budget.pairs or LOOKS[-1]):
        current = [pair for pair in pairs if pair.is_alive and pair.undecided and pair.seconds < budget.seconds]
        if not current:
            break
        started = time.monotonic()
        sample(current, number)
        seconds = time.monotonic() - started
        for pair in current:
            pair.seconds += seconds / len(current)
            if budget.pairs is None:
                pair.judge(LOOKS)
    for pair in pairs:
        pair.judge()


def verdict_cost(trials: Sequence[JudgedTrial]) -> str:
    """The processes and seconds of the verdicts, in a sentence."""
    processes = [2 * len(ratios) for trial in trials for ratios in trial.ratios.values()]
    seconds = [trial.seconds for trial in trials if trial.ratios]
    if not processes:
        return "No verdict was reached."
    disturbed = sum(
        len(trial.ratios[path]) - judged.observations for trial in trials for path, judged in trial.judgements.items()
    )
    left_out = f" {2 * disturbed} processes were disturbed and left out." if disturbed else ""
    return (
        f"A verdict took {statistics.fmean(processes):.0f} processes and a trial {statistics.fmean(seconds):.0f} s "
        f"on average, and {max(processes)} processes and {max(seconds):.0f} s at most.{left_out}"
    )


def _pair_of(a: Checked, b: Checked, budget: PairBudget) -> TrialPair:
    smallest_change = budget.smallest_change_of(a.trial)
    return TrialPair(TrialSampling(a.examined), TrialSampling(b.examined), smallest_change=smallest_change)


def _pairs_at_once(pairs: Sequence[CheckedPair]) -> int:
    """The number of pairs of processes that may import their frameworks side by side."""
    workers = sum(len(by_worker((pair[side].examined, pair) for pair in pairs)) for side in range(2))
    return sets_at_once(workers, _memory_of_pairs(pairs))


def _memory_of_pairs(pairs: Sequence[CheckedPair]) -> int:
    return sum(memory_of([pair[side] for pair in pairs]) for side in range(2))


def _device_holds_pairs(pairs: Sequence[CheckedPair]) -> bool:
    return device_holds([checked for pair in pairs for checked in pair])


def _judged(checked: CheckedPair, pair: TrialPair) -> JudgedTrial:
    a, b = (sampling.sampled(side, NO_ROOF) for side, sampling in zip(checked, pair.sides, strict=True))
    return JudgedTrial((a, b), pair.judgements, pair.ratios, pair.scatters, pair.seconds, pair.mean_judgements)


def _with_common_trial(judged: JudgedTrial, common: JudgedTrial, group: int, groups: int) -> JudgedTrial:
    a, b = (
        replace(side, common_trial=common_trial_figure(of_common, group, groups))
        for side, of_common in zip(judged.sides, common.sides, strict=True)
    )
    return replace(judged, sides=(a, b))
