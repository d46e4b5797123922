"""Sampling trials on two sides in one pair of fresh processes after the other, one process of each side.

The two processes of a pair are sampled block by block in turn. One pair gives one observation (`results.verdict`).
Trials of one backend share their pairs of processes, since imports take longer than sampling.
"""

from __future__ import annotations

import random
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from rnnbench.measure import PATHS, BlockPlan, WarmUp
from rnnbench.results import SMALLEST, Judgement, judge_pairs, pair_ratio, pair_scatter
from rnnbench.sampling.context import Context
from rnnbench.sampling.path_sampling import PROCESS_SHARE, PathBlocks
from rnnbench.sampling.sampling_worker import SamplingWorker
from rnnbench.sampling.started_ahead import StartedAhead
from rnnbench.sampling.trial_sampling import TrialSampling
from rnnbench.sampling.verified_beside import verified_beside
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
    mean_ratios: dict[str, list[float]] = field(default_factory=dict)
    mean_scatters: dict[str, list[float]] = field(default_factory=dict)
    """The same of the blocks' means, which have the calls that medians leave out."""
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

    def judge(self, looks: Container[int] | None = None) -> None:
        """Judge the undecided paths whose number of observations has grown, and is one of `looks` (None: any number).

        A disturbed pair adds no observation. Without a new observation there is no look: each look costs some of the
        error probability.
        """
        for path in self.undecided:
            if ratios := self.ratios.get(path):
                before = self.judgements.get(path)
                judged = judge_pairs(ratios, self.smallest_change, self.scatters.get(path))
                is_look = looks is None or judged.observations in looks
                if is_look and (before is None or judged.observations > before.observations):
                    self.judgements[path] = judged

    @property
    def mean_judgements(self) -> dict[str, Judgement]:
        """Of each latency path, the verdict on the mean of the calls at the last look at their median."""
        return {
            path: judge_pairs(ratios, self.smallest_change, self.mean_scatters[path])
            for path, ratios in self.mean_ratios.items()
        }

    def note_ratios(self, paths: Sequence[str]) -> None:
        """Note the ratio and the scatter of each of these paths in the last pair of processes.

        A trial that has failed gets none, and the last process of each path in which it has no block is removed.
        """
        if not self.is_alive:
            self._forget_empty()
            return
        for path in paths:
            blocks = [sampling.paths[path].processes[-1] for sampling in self.sides]
            medians = [[float(np.median(block.seconds)) for block in of_side] for of_side in blocks]
            self.ratios.setdefault(path, []).append(pair_ratio(*medians))
            self.scatters.setdefault(path, []).append(pair_scatter(*medians))
            means = [[float(np.mean(block.seconds)) for block in of_side] for of_side in blocks]
            self.mean_ratios.setdefault(path, []).append(pair_ratio(*means))
            self.mean_scatters.setdefault(path, []).append(pair_scatter(*means))

    def _forget_empty(self) -> None:
        for sampling in self.sides:
            for blocks in sampling.paths.values():
                if blocks.processes and not blocks.processes[-1]:
                    blocks.processes.pop()
                    blocks.warmups.pop()


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
            turns = [
                PairTurn(pair, worker_of[id(pair.a)], worker_of[id(pair.b)], shuffled, self._rounds) for pair in alive
            ]
            for turn in shuffled.sample(turns, len(turns)):
                self._contexts[0].on_stage(turn.pair.a.trial, f"pair {number + 1}")
                for path in plan[id(turn.pair)]:
                    turn.warm_up(path)
            for _ in range(self._rounds):
                _sample_round(turns, plan, shuffled)
            for worker in workers:
                worker.end_sampling()
            self._verify(workers, pairs, number)
        for pair in pairs:
            pair.note_ratios(plan[id(pair)])

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


class PairTurn:
    """One trial on both sides, with the worker of each."""

    def __init__(
        self, pair: TrialPair, a: SamplingWorker, b: SamplingWorker, shuffled: random.Random, rounds: int
    ) -> None:
        self.pair = pair
        self._workers = (a, b)
        self._shuffled = shuffled
        self._first_sides = {path: _in_half_of_the_rounds_each(rounds, shuffled) for path in pair.paths}

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
        first = next(self._first_sides[path])
        for side in (first, 1 - first):
            sampling = pair.sides[side]
            plan = BlockPlan(pair.block_s, pair.calls_per_sample[path])
            block = self._workers[side].sample(sampling, sampling.paths[path], plan)
            if block is None:
                return
            sampling.paths[path].add(block)


def _in_half_of_the_rounds_each(rounds: int, shuffled: random.Random) -> Iterator[int]:
    """The side that comes first in each round, in random order: each in half of them.

    The second block of a round may be faster or slower, by what the first one left in caches. Where one side came first
    more often, a pair would show that as a difference.
    """
    sides = [0, 1] * (rounds // 2) + [shuffled.randrange(2)] * (rounds % 2)
    return iter(shuffled.sample(sides, rounds))


def _sample_round(turns: Sequence[PairTurn], plan: Mapping[int, Sequence[str]], shuffled: random.Random) -> None:
    """Sample one block of each path of each trial. `plan` has the paths by the pair's `id`."""
    for turn in shuffled.sample(turns, len(turns)):
        for path in plan[id(turn.pair)]:
            turn.sample(path)


def _samplings(pairs: Sequence[TrialPair]) -> list[TrialSampling]:
    return [sampling for pair in pairs for sampling in pair.sides]
