"""Sampling trials on two sides until there is a verdict, in pairs of fresh processes, one of each side.

The two processes of a pair are sampled block by block in turn. One pair gives one observation (`results.verdict`).
Further pairs are started while a verdict is open and budget is left. Trials of the same sizes are sampled in turn.
Those of one backend share their pairs of processes, since imports take longer than sampling.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import numpy as np

from rnnbench.cases import Trial
from rnnbench.measure import PATHS, Block, BlockPlan, WarmUp
from rnnbench.results import LOOKS, SMALLEST, Judgement, judge_pairs, pair_ratio, pair_scatter
from rnnbench.sampling.context import Context
from rnnbench.sampling.groups import anchor_of, device_holds, memory_of, split_by_memory
from rnnbench.sampling.interleaved import anchor_figure
from rnnbench.sampling.path_sampling import PROCESS_SHARE, PathBlocks
from rnnbench.sampling.sampling_worker import SamplingWorker
from rnnbench.sampling.started_ahead import StartedAhead, sets_at_once
from rnnbench.sampling.trial_sampling import TrialSampling
from rnnbench.sampling.verified_beside import cores_beside, verified_beside
from rnnbench.stages import Checked, RoofReadings, Sampled
from rnnbench.worker import by_worker

ROUNDS = 8
"""Rounds of a pair. In each round, every latency has a block on either side. In a short round the drift is small."""
BLOCK_S = 0.01
"""Seconds of one block. A longer call is a block of its own."""
LONG_BLOCK_S = 0.02
"""Seconds of one block if changes below SMALL_CHANGE matter. Pairs then scatter less, and a verdict needs a quarter
fewer of them."""
SMALL_CHANGE = 0.02
WARMUP_S = 0.05
"""The longest warm-up of a latency in one process, in seconds: a quarter of its time there, as in a run."""
SIDES = ("a", "b")
COMPARED = tuple(path.name for path in PATHS.values() if path.compared)
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


@dataclass(eq=False)
class TrialPair:
    """One trial on both sides while it is sampled."""

    a: TrialSampling
    b: TrialSampling
    paths: tuple[str, ...] = COMPARED
    smallest_change: float = SMALLEST
    """Smallest relative change of latency that matters."""
    ratios: dict[str, list[float]] = field(default_factory=dict)
    scatters: dict[str, list[float]] = field(default_factory=dict)
    judgements: dict[str, Judgement] = field(default_factory=dict)
    calls_per_sample: dict[str, int] = field(default_factory=dict)
    """Calls per sample on either side, from the first pair: so many that the clock's cost does not hide a change."""
    seconds: float = 0.0

    @property
    def sides(self) -> tuple[TrialSampling, TrialSampling]:
        return self.a, self.b

    @property
    def is_alive(self) -> bool:
        return not self.a.has_failed and not self.b.has_failed

    @property
    def block_s(self) -> float:
        """Seconds of each of its blocks."""
        return BLOCK_S if self.smallest_change >= SMALL_CHANGE else LONG_BLOCK_S

    @property
    def undecided(self) -> list[str]:
        """The latency paths that have no verdict yet."""
        judged = self.judgements
        return [path for path in self.paths if path not in judged or judged[path].verdict == "UNDECIDED"]

    def judge(self, counts: Container[int] = range(1, LOOKS[-1] + 1)) -> None:
        """Judge the undecided paths, if the number of their observations is one of `counts` and has grown.

        A disturbed pair adds no observation. Without a new observation there is no look: each look costs some of the
        error probability.
        """
        for path in self.undecided:
            if ratios := self.ratios.get(path):
                before = self.judgements.get(path)
                judged = judge_pairs(ratios, self.smallest_change, self.scatters.get(path))
                if judged.observations in counts and (before is None or judged.observations > before.observations):
                    self.judgements[path] = judged


def judge_trials(
    trials: Sequence[CheckedPair], contexts: tuple[Context, Context], budget: PairBudget, seed: int
) -> list[JudgedTrial]:
    """Sample trials of one workload on both sides until each latency has a verdict. Returns them in the order given."""
    anchor_a = anchor_of([a for a, _ in trials])
    anchor = next(pair for pair in trials if pair[0] is anchor_a)
    groups = list(split_by_memory(trials, anchor, _memory_of_pairs, holds=_device_holds_pairs))
    judged: dict[str, JudgedTrial] = {}
    for number, group in enumerate(groups):
        pairs = [_pair_of(a, b, budget) for a, b in group.members]
        with StartedAhead(_pairs_at_once(group.members), budget.pairs or LOOKS[0]) as started:
            beside = cores_beside(group.members[0][0].trial, _memory_of_pairs(group.members))
            decide(pairs, budget, PairSampling(contexts, seed, started=started, beside=beside).sample_pair)
        of_group = [_judged(checked, pair) for checked, pair in zip(group.members, pairs, strict=True)]
        if len(groups) > 1:
            of_anchor = of_group[group.members.index(group.anchor)]
            of_group = [_with_anchor(one, of_anchor, number, len(groups)) for one in of_group]
        for one in of_group:
            judged.setdefault(one.sides[0].trial.id, one)
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


class PairSampling:
    """Samples one pair of processes after the other. A pair has one fresh process per side and backend."""

    def __init__(
        self,
        contexts: tuple[Context, Context],
        seed: int,
        rounds: int = ROUNDS,
        started: StartedAhead | None = None,
        beside: Sequence[int] = (),
    ) -> None:
        self._contexts = contexts
        self._seed = seed
        self._rounds = rounds
        self._started = started or StartedAhead()
        self._cores_beside = beside
        """The cores on which timed calls are checked while the next pair is prepared. Empty if there is no room."""
        self._following: list[SamplingWorker] = []
        """The workers of the next pair, if they are prepared already."""

    def sample_pair(self, pairs: Sequence[TrialPair], number: int) -> None:
        """Sample these trials in the pair of this number, and note the ratio of each latency.

        A trial that fails on one side gets no ratio of this pair.
        """
        shuffled = random.Random(f"{self._seed}/{number}")
        plan = {id(pair): pair.undecided for pair in pairs}
        with ExitStack() as open_workers:
            workers = self._take_following(pairs) or self._prepared(pairs, number)
            for worker in workers:
                open_workers.callback(worker.close)
            worker_of = {id(sampling): worker for worker in workers for sampling in worker.trials}
            alive = [pair for pair in pairs if pair.is_alive]
            turns = [_PairTurn(pair, worker_of[id(pair.a)], worker_of[id(pair.b)], shuffled) for pair in alive]
            for turn in shuffled.sample(turns, len(turns)):
                self._contexts[0].on_stage(turn.pair.a.trial, f"pair {number + 1}")
                for path in plan[id(turn.pair)]:
                    turn.warm_up(path)
            for _ in range(self._rounds):
                for turn in shuffled.sample(turns, len(turns)):
                    for path in plan[id(turn.pair)]:
                        turn.sample(path)
            for worker in workers:
                worker.end_sampling()
            self._verify(workers, pairs, number)
        for pair in pairs:
            _note_ratios(pair, plan[id(pair)])

    def _prepared(self, pairs: Sequence[TrialPair], number: int) -> list[SamplingWorker]:
        """The workers of the pair of this number, ready to be timed."""
        workers = self._started.take(number, _samplings(pairs), lambda _: self._workers(pairs))
        for worker in workers:
            worker.prepare()
        return workers

    def _take_following(self, pairs: Sequence[TrialPair]) -> list[SamplingWorker]:
        """The workers that were prepared during the previous check, with the trials that are left."""
        workers, self._following = self._following, []
        for worker in workers:
            worker.keep(_samplings(pairs))
        return [worker for worker in workers if worker.trials]

    def _verify(self, workers: Sequence[SamplingWorker], pairs: Sequence[TrialPair], number: int) -> None:
        """Check the results of the timed calls. Meanwhile prepare the next pair, if one is certain to follow."""
        if not self._cores_beside:
            for worker in workers:
                worker.verify()
            return
        with verified_beside(workers, self._cores_beside, self._contexts[0].wall_time):
            if self._started.is_certain(number + 1):
                self._following = self._prepared(pairs, number + 1)

    def _workers(self, pairs: Sequence[TrialPair]) -> list[SamplingWorker]:
        return [
            SamplingWorker(sharing, self._contexts[side], f"pair-{SIDES[side]}.log")
            for side in range(2)
            for sharing in by_worker((pair.sides[side].examined, pair.sides[side]) for pair in pairs)
        ]


class _PairTurn:
    """One trial on both sides, with the worker of each."""

    def __init__(self, pair: TrialPair, a: SamplingWorker, b: SamplingWorker, shuffled: random.Random) -> None:
        self.pair = pair
        self._workers = (a, b)
        self._shuffled = shuffled

    def warm_up(self, path: str) -> None:
        """Call on each side until both are stationary or their time is spent. Do nothing if the trial has failed."""
        pair = self.pair
        if not pair.is_alive:
            return
        warmups = [WarmUp(WARMUP_S, sampling.trial.measure.precision * PROCESS_SHARE) for sampling in pair.sides]
        blocks = [sampling.paths.setdefault(path, PathBlocks(PATHS[path])) for sampling in pair.sides]
        for of_side, warmup in zip(blocks, warmups, strict=True):
            of_side.begin_process(warmup)
        for side in self._shuffled.sample(range(2), 2):
            self._workers[side].warm_up(pair.sides[side], blocks[side], warmups[side])
        pair.calls_per_sample.setdefault(path, max(warmup.calls_per_sample for warmup in warmups))

    def sample(self, path: str) -> None:
        """Sample one block on each side, in random order. Do nothing if the trial has failed."""
        pair = self.pair
        if not pair.is_alive:
            return
        for side in self._shuffled.sample(range(2), 2):
            sampling = pair.sides[side]
            plan = BlockPlan(pair.block_s, pair.calls_per_sample[path])
            block = self._workers[side].sample(sampling, sampling.paths[path], plan)
            if block is None:
                return
            sampling.paths[path].add(block)


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
    return device_holds([one for pair in pairs for one in pair])


def _judged(checked: CheckedPair, pair: TrialPair) -> JudgedTrial:
    a, b = (sampling.sampled(one, NO_ROOF) for one, sampling in zip(checked, pair.sides, strict=True))
    return JudgedTrial((a, b), pair.judgements, pair.ratios, pair.scatters, pair.seconds)


def _with_anchor(judged: JudgedTrial, anchor: JudgedTrial, group: int, groups: int) -> JudgedTrial:
    a, b = (
        replace(side, anchor=anchor_figure(of_anchor, group, groups))
        for side, of_anchor in zip(judged.sides, anchor.sides, strict=True)
    )
    return replace(judged, sides=(a, b))


def _note_ratios(pair: TrialPair, paths: Sequence[str]) -> None:
    if not pair.is_alive:
        _forget_empty(pair)
        return
    for path in paths:
        medians = [_block_medians(sampling.paths[path].processes[-1]) for sampling in pair.sides]
        pair.ratios.setdefault(path, []).append(pair_ratio(*medians))
        pair.scatters.setdefault(path, []).append(pair_scatter(*medians))


def _samplings(pairs: Sequence[TrialPair]) -> list[TrialSampling]:
    return [sampling for pair in pairs for sampling in pair.sides]


def _forget_empty(pair: TrialPair) -> None:
    """Remove the last process of a failed trial from each path in which it has no block."""
    for sampling in pair.sides:
        for blocks in sampling.paths.values():
            if blocks.processes and not blocks.processes[-1]:
                blocks.processes.pop()
                blocks.warmups.pop()


def _block_medians(blocks: Sequence[Block]) -> list[float]:
    return [float(np.median(block.seconds)) for block in blocks]
