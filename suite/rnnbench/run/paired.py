"""Sampling trials on two sides: pairs of fresh processes, one of each side, block by block in turn, until all is known.

What one pair shows is one observation (`results.verdict`). Further pairs are started while a verdict is open and its
budget lasts; trials of one backend and the same sizes share a pair's processes, since imports cost more than sampling.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from rnnbench.measure.sampling import Block, measure_clock
from rnnbench.results.compare import KINDS, Kind
from rnnbench.results.verdict import LOOKS, Judgement, judge_pairs, pair_ratio
from rnnbench.run.account import Account
from rnnbench.run.messages import read_block
from rnnbench.run.prepare import Findings, Stage
from rnnbench.run.process import Workplace
from rnnbench.run.seat import Seat, verify

ROUNDS = 8
"""Turns of a pair; in each, every latency has a block on either side. Many and short: the machine drifts meanwhile."""
BLOCK_S = 0.02
"""Seconds of one block; a call that is longer is a block of its own."""
SIDES = ("a", "b")


@dataclass(eq=False)
class Match:
    """One trial on both sides, and what its pairs of processes have shown so far."""

    a: Findings
    b: Findings
    paths: tuple[Kind, ...] = KINDS
    ratios: dict[Kind, list[float]] = field(default_factory=dict)
    """Of each latency, the ratio b / a that each pair of processes showed."""
    judged: dict[Kind, Judgement] = field(default_factory=dict)
    calls_per_sample: dict[Kind, int] = field(default_factory=dict)
    """How many calls are timed at once on either side, so that the clock's cost hides no change: by the first block."""
    seconds: float = 0.0
    """Wall time that its pairs took, shared evenly with the trials in the same processes."""

    @property
    def sides(self) -> tuple[Findings, Findings]:
        return self.a, self.b

    @property
    def whole(self) -> bool:
        return self.a.failure is None and self.b.failure is None

    @property
    def undecided(self) -> list[Kind]:
        """The latencies that have no verdict yet."""
        return [path for path in self.paths if path not in self.judged or self.judged[path].verdict == "UNDECIDED"]

    def judge(self, smallest: float) -> None:
        for path in self.undecided:
            if ratios := self.ratios.get(path):
                self.judged[path] = judge_pairs(ratios, smallest)


def decide(
    matches: Sequence[Match],
    budget: float,
    smallest: float,
    sample: Callable[[Sequence[Match], int], None],
) -> None:
    """Sample pair after pair of processes until all is judged, `budget` wall seconds a trial are spent, or LOOKS end.

    `sample` samples one pair, of that number, for the matches given. A budget ends without regard to what was seen, so
    the look at its end is one that LOOKS has paid for.
    """
    for number in range(LOOKS[-1]):
        under_way = [match for match in matches if match.whole and match.undecided and match.seconds < budget]
        if not under_way:
            break
        begun = time.monotonic()
        sample(under_way, number)
        taken = time.monotonic() - begun
        for match in under_way:
            match.seconds += taken / len(under_way)
            if number + 1 in LOOKS:
                match.judge(smallest)
    for match in matches:
        match.judge(smallest)


def sample_pair(
    matches: Sequence[Match],
    workplaces: tuple[Workplace, Workplace],
    account: Account,
    stage: Stage,
    seed: str,
    rounds: int = ROUNDS,
) -> None:
    """Sample the matches in one fresh process a side, and note the ratio that the pair showed of each latency.

    Blocks are added to the findings of both sides; a match that fails on one of them is left without this pair's ratio.
    """
    shuffled = random.Random(seed)
    with ExitStack() as opened:
        seats = [
            Seat([match.sides[side] for match in matches], workplaces[side], account, f"pair-{SIDES[side]}.log")
            for side in range(2)
        ]
        for seat in seats:
            opened.callback(seat.close)
            seat.start()
        for seat in seats:
            seat.prepare()
        plan = {id(match): match.undecided for match in matches}
        for match in matches:
            for path in plan[id(match)]:
                for findings in match.sides:
                    findings.blocks.setdefault(path, []).append([])
        for _ in range(rounds):
            for match in shuffled.sample(matches, len(matches)):
                stage(match.a.trial, f"pair {1 + len(match.ratios.get(plan[id(match)][0], ()))}")
                for path in plan[id(match)]:
                    _take_turns(match, path, seats, shuffled)
        for seat in seats:
            for findings in list(seat.trials):
                verify(seat, findings)
    for match in filter(lambda match: match.whole, matches):
        for path in plan[id(match)]:
            medians = [_medians(findings.blocks[path][-1]) for findings in match.sides]
            match.ratios.setdefault(path, []).append(pair_ratio(*medians))


def _take_turns(match: Match, path: Kind, seats: Sequence[Seat], shuffled: random.Random) -> None:
    """One block on each side, one right after the other, in an order of chance; neither where the match has failed."""
    if not match.whole:
        return
    how = {"seconds": BLOCK_S, "calls_per_sample": match.calls_per_sample.get(path, 1)}
    for side in shuffled.sample(range(2), 2):
        findings, seat = match.sides[side], seats[side]
        reply = seat.ask(findings, f"sample_{path}", "sample", how)
        if reply is None:
            if seat.vacant:
                seat.prepare()
            return
        findings.blocks[path][-1].append(block := read_block(reply))
        match.calls_per_sample.setdefault(path, measure_clock().calls_per_sample(float(np.median(block.seconds))))


def _medians(blocks: Sequence[Block]) -> list[float]:
    return [float(np.median(block.seconds)) for block in blocks]


def cost(matches: Sequence[Match]) -> str:
    """What the verdicts cost, in a sentence."""
    processes = [2 * len(ratios) for match in matches for ratios in match.ratios.values()]
    seconds = [match.seconds for match in matches if match.judged]
    if not processes:
        return "No verdict was reached."
    return (
        f"A verdict took {statistics.fmean(processes):.0f} processes and a trial {statistics.fmean(seconds):.0f} s "
        f"in the mean, {max(processes)} processes and {max(seconds):.0f} s at most."
    )
