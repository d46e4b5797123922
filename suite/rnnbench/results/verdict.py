"""Verdicts: from ratios of latencies to FASTER, SLOWER, SAME or UNDECIDED, each with an interval of the ratio.

The unit of replication is the process. Calls of one process share an address layout, which alone moves a latency by 1
to 2 %, so neither calls nor blocks are independent. Processes are. All computations use logarithms. With m the smallest
effect that matters, and the interval one of Student's t:

    SLOWER     the interval lies above 1, and the ratio is nearer to 1 + m than to 1
    FASTER     the interval lies below 1, and the ratio is nearer to 1 / (1 + m) than to 1
    SAME       the whole interval lies within 1 / (1 + m) and 1 + m, and the ratio is nearer to 1 than to either
    UNDECIDED  anything else: too few processes, or too much noise to tell

So a SAME has shown that nothing as large as m is there, and a SLOWER that something is; between them the ratio decides
at half of m. If SLOWER asked for a ratio of m itself, an effect of just m would be found half of the time.

Pairs of processes, one of each side, are sampled in turn and give one observation each. The drift of the machine hits
both sides and cancels. The scatter that is left from pair to pair has the variance between processes and within them.
Pairs are added until there is a verdict. It is looked for after each pair, and all looks together miss the truth with a
chance of at most ERROR_RATE (`looks`). A SAME of pairs needs no more than that each of two limits is excluded, which
are two one-sided tests (Schuirmann 1987). Each may be wrong with ERROR_RATE, since only one of them can be the truth.

A pair whose rounds disagree far more than those of the other pairs was disturbed, and is left out. That looks at the
scatter of the rounds alone, which is the same when the sides change places, so that it favours neither side.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from rnnbench.optional import require
from rnnbench.results.looks import SCIPY_FOR, critical_t

Verdict = Literal["FASTER", "SLOWER", "SAME", "UNDECIDED"]
SMALLEST = 0.03
"""Smallest relative change that matters, where none is given."""
ERROR_RATE = 0.01
"""Chance that the interval of a verdict misses the truth, and so the most that a change is seen where none is."""
DISTURBED = 4.0
"""Times the scatter of the median pair, beyond which a pair was disturbed: 2 % of pairs on a quiet machine, 10 % on a
busy one. Any limit from 3 to 8 costs as much."""


@dataclass(frozen=True)
class Judgement:
    """The ratio new / base, its interval and the verdict on them."""

    ratio: float
    interval: tuple[float, float] | None
    """None where there are too few processes for one."""
    verdict: Verdict
    observations: int
    """Pairs of processes that it rests on; or, where they are not paired, processes of the side that has fewer."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends of its interval; the ratio twice where there is none."""
        return self.interval or (self.ratio, self.ratio)


def judge_pairs(
    ratios: Sequence[float], smallest: float = SMALLEST, scatters: Sequence[float] | None = None
) -> Judgement:
    """The verdict on the ratios new / base of pairs of processes, where there was a look after each of LOOKS.

    `scatters` has the scatter of the rounds of each pair; None where it is not known.
    """
    kept = ratios if scatters is None else undisturbed(ratios, scatters)
    logs = [math.log(ratio) for ratio in kept]
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return Judgement(math.exp(mean), None, "UNDECIDED", len(logs))
    error = math.sqrt(_variance(logs) / len(logs))
    interval, within = (
        (mean - half, mean + half)
        for half in (critical_t(len(logs), rate) * error for rate in (ERROR_RATE, 2 * ERROR_RATE))
    )
    return _judgement(mean, interval, smallest, len(logs), within)


def judge_once(ratios: Sequence[float], confidence: float) -> Judgement:
    """The verdict on the ratios of pairs that are looked at once, their number having been fixed before."""
    logs = [math.log(ratio) for ratio in ratios]
    if len(logs) < 2:
        return Judgement(math.exp(statistics.fmean(logs)), None, "UNDECIDED", len(logs))
    interval = _paired(logs, confidence)
    return _judgement(statistics.fmean(logs), interval, SMALLEST, len(logs))


def judge_apart(
    base: Sequence[float], new: Sequence[float], smallest: float = SMALLEST, error_rate: float = ERROR_RATE
) -> Judgement:
    """The verdict on two sets of process medians that were not sampled in turn, by Welch's t interval (Welch, 1947).

    A drift of the machine between the two sets is in the ratio, and nothing in them can tell it from a change.
    """
    log_base, log_new = ([math.log(seconds) for seconds in medians] for medians in (base, new))
    difference = statistics.fmean(log_new) - statistics.fmean(log_base)
    fewest = min(len(log_base), len(log_new))
    if fewest < 2:
        return Judgement(math.exp(difference), None, "UNDECIDED", fewest)
    return _judgement(difference, _welch(log_base, log_new, 1 - error_rate), smallest, fewest)


def pair_ratio(base: Sequence[float], new: Sequence[float]) -> float:
    """One observation: the ratio new / base of the block medians of a pair of processes, round by round.

    The median over the rounds, since a block that was disturbed shows in its own round only.
    """
    return math.exp(statistics.median(math.log(b / a) for a, b in zip(base, new, strict=True)))


def pair_scatter(base: Sequence[float], new: Sequence[float]) -> float:
    """How far the rounds of a pair disagree: the median deviation of their logarithms from that of `pair_ratio`."""
    logs = [math.log(b / a) for a, b in zip(base, new, strict=True)]
    middle = statistics.median(logs)
    return statistics.median(abs(log - middle) for log in logs)


def undisturbed(ratios: Sequence[float], scatters: Sequence[float]) -> list[float]:
    """The ratios of the pairs that were not disturbed: more than half of them."""
    limit = DISTURBED * statistics.median(scatters)
    return [ratio for ratio, scatter in zip(ratios, scatters, strict=True) if scatter <= limit]


def checked_smallest(smallest: float) -> float:
    """`smallest` where it is a fraction. Raises ValueError."""
    if not 0 < smallest < 1:
        raise ValueError(f"threshold is a relative change between 0 and 1 (0.03 for 3 %), not {smallest}")
    return smallest


def _paired(logs: Sequence[float], confidence: float) -> tuple[float, float]:
    """The interval of SciPy's `ttest_1samp`, which takes a hundred times as long.

    Where the ratios do not scatter at all, it is the point that they agree on.
    """
    mean = statistics.fmean(logs)
    half = _students_t(len(logs) - 1, confidence) * math.sqrt(_variance(logs) / len(logs))
    return mean - half, mean + half


@cache
def _students_t(freedoms: int, confidence: float) -> float:
    return float(require("scipy.special", *SCIPY_FOR).stdtrit(freedoms, (1 + confidence) / 2))


def _welch(base: Sequence[float], new: Sequence[float], confidence: float) -> tuple[float, float]:
    """The interval of SciPy's `ttest_ind(new, base, equal_var=False)`, which takes two hundred times as long.

    Where neither side scatters at all, it is the point of their difference.
    """
    special = require("scipy.special", *SCIPY_FOR)
    difference = statistics.fmean(new) - statistics.fmean(base)
    parts = [_variance(side) / len(side) for side in (base, new)]
    squared = sum(parts)
    freedoms = sum(part**2 / (len(side) - 1) for part, side in zip(parts, (base, new), strict=True))
    if freedoms <= 0:
        return difference, difference
    half = float(special.stdtrit(squared**2 / freedoms, (1 + confidence) / 2)) * math.sqrt(squared)
    return difference - half, difference + half


def _variance(values: Sequence[float]) -> float:
    """Variance of a sample. `statistics.variance` computes with fractions, which takes a hundred times as long."""
    mean = statistics.fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _judgement(
    log_ratio: float,
    interval: tuple[float, float],
    smallest: float,
    observations: int,
    within: tuple[float, float] | None = None,
) -> Judgement:
    """`within` is the interval that SAME asks for, where that is another one."""
    low, high = interval
    inner_low, inner_high = within or interval
    limit = math.log1p(checked_smallest(smallest))
    verdict: Verdict = "UNDECIDED"
    if low > 0 and log_ratio >= limit / 2:
        verdict = "SLOWER"
    elif high < 0 and log_ratio <= -limit / 2:
        verdict = "FASTER"
    elif abs(log_ratio) < limit / 2 and -limit <= inner_low and inner_high <= limit:
        verdict = "SAME"
    return Judgement(math.exp(log_ratio), (_exp(low), _exp(high)), verdict, observations)


def _exp(value: float) -> float:
    """Infinity for what no float holds: an interval from two processes may reach there."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
