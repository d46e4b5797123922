"""Sampling trials on two sides: pairs of fresh processes, one of each side, block by block in turn, until all is known.

What one pair shows is one observation (`results.verdict`). Further pairs are started while a verdict is open and its
budget lasts. Trials of the same sizes are sampled in turn, those of one backend in the same pairs of processes, since
imports cost more than sampling.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from rnnbench.measure.course import OWN_SHARE
from rnnbench.measure.sampling import Block
from rnnbench.measure.warmup import WarmUp
from rnnbench.results.verdict import LOOKS, Judgement, judge_pairs, pair_ratio
from rnnbench.run.account import Account
from rnnbench.run.parts import Part, anchor_of, memory_of, note_anchor, once_more, split_by
from rnnbench.run.prepare import Findings, Stage
from rnnbench.run.process import Workplace
from rnnbench.run.sample import by_worker
from rnnbench.run.seat import Seat, verify

ROUNDS = 8
"""Turns of a pair; in each, every latency has a block on either side. Many and short: the machine drifts meanwhile."""
BLOCK_S = 0.02
"""Seconds of one block; a call that is longer is a block of its own."""
WARMUP_S = 0.05
"""Longest that a latency's warm-up may take in one process; a quarter of its time there, as in a run."""
SIDES = ("a", "b")
Kind = Literal["bound", "public"]
KINDS: tuple[Kind, ...] = ("bound", "public")


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
    """How many calls are timed at once on either side, so that the clock's cost hides no change: by the first pair."""
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


def split_matches(group: Sequence[Match], available: int | None = None) -> Iterator[Part[Match]]:
    """Matches in parts that memory holds, both sides of each together; see `parts.split`."""
    anchor_a = anchor_of([match.a for match in group])
    anchor = next(match for match in group if match.a is anchor_a)
    return split_by(
        lambda matches: sum(memory_of([match.sides[side] for match in matches]) for side in range(2)),
        group,
        anchor,
        lambda match: Match(once_more(match.a), once_more(match.b), match.paths),
        available,
    )


def note_anchors(parts: Sequence[Part[Match]]) -> None:
    """Tell the trials of a group that had more than one part what their anchor took beside them, on their own side."""
    for side in range(2):
        note_anchor([Part([match.sides[side] for match in part.trials], part.anchor.sides[side]) for part in parts])


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
    """Sample the matches in one fresh process a side and backend, and note the ratio each pair showed of each latency.

    Blocks are added to the findings of both sides; a match that fails on one of them is left without this pair's ratio.
    """
    shuffled = random.Random(seed)
    with ExitStack() as opened:
        seats = [
            Seat(held, workplaces[side], account, f"pair-{SIDES[side]}.log")
            for side in range(2)
            for held in by_worker(match.sides[side] for match in matches)
        ]
        seat_of = {id(findings): seat for seat in seats for findings in seat.trials}
        for seat in seats:
            opened.callback(seat.close)
            seat.start()
        for seat in seats:
            seat.prepare()
        plan = {id(match): match.undecided for match in matches}
        places = {id(match): (seat_of[id(match.a)], seat_of[id(match.b)]) for match in matches}
        for match in shuffled.sample(matches, len(matches)):
            stage(match.a.trial, f"pair {1 + len(match.ratios.get(plan[id(match)][0], ()))}")
            for path in plan[id(match)]:
                _warm_up(match, path, places[id(match)], shuffled)
        for _ in range(rounds):
            for match in shuffled.sample(matches, len(matches)):
                for path in plan[id(match)]:
                    _take_turns(match, path, places[id(match)], shuffled)
        for seat in seats:
            for findings in list(seat.trials):
                verify(seat, findings)
    for match in matches:
        if not match.whole:
            _forget_empty(match)
            continue
        for path in plan[id(match)]:
            medians = [_medians(findings.blocks[path][-1]) for findings in match.sides]
            match.ratios.setdefault(path, []).append(pair_ratio(*medians))


def _warm_up(match: Match, path: Kind, seats: Sequence[Seat], shuffled: random.Random) -> None:
    """Calls on each side until both are at rest, or their time is spent; on neither where the match has failed."""
    if not match.whole:
        return
    warmups = [WarmUp(WARMUP_S, findings.trial.measure.precision * OWN_SHARE) for findings in match.sides]
    for findings, warmup in zip(match.sides, warmups, strict=True):
        findings.blocks.setdefault(path, []).append([])
        findings.warmups.setdefault(path, []).append(warmup)
    for side in shuffled.sample(range(2), 2):
        seats[side].warm_up(match.sides[side], path, warmups[side])
    match.calls_per_sample.setdefault(path, max(warmup.calls_per_sample for warmup in warmups))


def _take_turns(match: Match, path: Kind, seats: Sequence[Seat], shuffled: random.Random) -> None:
    """One block on each side, one right after the other, in an order of chance; neither where the match has failed."""
    if not match.whole:
        return
    for side in shuffled.sample(range(2), 2):
        findings = match.sides[side]
        block = seats[side].sample(findings, path, BLOCK_S, calls_per_sample=match.calls_per_sample[path])
        if block is None:
            return
        findings.blocks[path][-1].append(block)


def _forget_empty(match: Match) -> None:
    """Of a match that failed on one side, leave out on the other the process that never got to a block."""
    for findings in match.sides:
        for path, processes in list(findings.blocks.items()):
            if not processes[-1]:
                processes.pop()
                findings.warmups[path].pop()
            if not processes:
                del findings.blocks[path]


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
