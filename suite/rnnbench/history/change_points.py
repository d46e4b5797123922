"""Change points of series of nights.

Single outliers are clipped, and the series is cut into pieces of constant level. A cut is kept where both sides differ
by enough to matter and by more than chance.

`docs/history.md` has the formula, and `tests/benchmarks/test_change_points.py` what it finds and what it invents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import special

from rnnbench.history.drift import drifts
from rnnbench.measure import exact_rank_p

Array = npt.NDArray[np.float64]
NORMAL = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""Standard error of the median over that of the mean, for many values of a normal distribution."""
HAMPEL_NIGHTS = 7
HAMPEL_LIMIT = 3.5
"""A value is an outlier where it is so many deviations of the noise away from the median of the nights around it."""
SPREAD_NIGHTS, SPREAD_LIMIT = 15, 2.5
"""It is also so many deviations of these nights around it away. Where the noise has just grown, clipped nights would
look like a quiet new level."""
LEAST_NIGHTS = 3
"""Nights of a piece. With two, every bad night beside an outlier would be a change."""
OVER_NIGHTS = 2
"""Newest nights that all have the old level again, after which a step is not told: nobody can do anything about it."""
LEAST_BEFORE = 5
"""Nights before a change: its level must be known."""
REACH = 28
"""Nights on either side that a change is judged by: further away, slow drift counts more than noise."""
LEAST_NOISE = 1e-4
"""Least noise of a latency, as a fraction. Rounded or constant figures have less, which is no estimate of noise."""
WEEK = 7
"""Nights on either side of a cut by which a step is compared with the ordinary differences of the series."""
UNUSUAL = 2.5
"""A step that is told is so many times as large as the ordinary difference between neighbouring weeks."""
RANK_P = 1e-3
"""Largest p of the rank test of a step that is told. 7 nights on either side can have a smaller one."""
BATCH = 32
"""Series that are cut at once: so many have their tables in the processor's cache."""
CONFIDENCE = 0.95
DATED = 2 * math.log(100)
"""The new level may have begun on a night on which, rather than on the likeliest one, its nights are at least a
hundredth as likely: so far may twice the logarithm of their likelihood fall."""


@dataclass(frozen=True)
class ChangeCriteria:
    """What counts as a change."""

    penalty: float
    """The price of a cut, in variances of the noise times the natural logarithm of the number of nights."""
    least: float
    """The smallest difference of both sides' medians, as a logarithm of the ratio."""
    p: float
    """Largest two-sided p of the t-test. It is small because the cut was chosen where both sides differ most."""
    nights: int = LEAST_NIGHTS
    """Least nights of the new level."""
    is_strict: bool = False
    """Whether a step must also pass a rank test, and be larger than neighbouring weeks of the series differ anyway."""


SCREEN = ChangeCriteria(penalty=2, least=0.01, p=1e-3)
"""For candidates: one is worth a measurement that confirms it, and nobody is told."""
PUBLISH = ChangeCriteria(penalty=3, least=0.015, p=1e-4, nights=7, is_strict=True)
"""For what is told without such a measurement. Several bad nights in a row are over in a week, a change is not."""


@dataclass(frozen=True)
class Step:
    """A change of level between two nights of one series."""

    index: int
    """The first night of the new level."""
    size: float
    """New over old level, as a natural logarithm."""
    low: float
    high: float
    """Its 95 % interval."""
    p: float
    drift: int | None = None
    """The first night of the first step of the drift that it is a part of. None: it is sudden."""
    between: tuple[int, int] | None = None
    """The earliest and the latest night that may be the first one of the new level. None: it is not known."""


def find_steps(series: Sequence[Array], criteria: ChangeCriteria = SCREEN) -> list[tuple[Step, ...]]:
    """The steps of each series [nights] of logarithms. NaN: the night has no value."""
    present = [np.flatnonzero(np.isfinite(values)) for values in series]
    noises = [noise(values[nights]) for values, nights in zip(series, present, strict=True)]
    clipped = [clip(v[nights], s) for v, nights, s in zip(series, present, noises, strict=True)]
    long_enough = [number for number, nights in enumerate(present) if len(nights) >= 2 * LEAST_NIGHTS]
    order = sorted(long_enough, key=lambda number: len(present[number]))
    found: list[tuple[Step, ...]] = [()] * len(series)
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        cuts = find_cuts([clipped[k] / noises[k] for k in batch], criteria.penalty)
        for number, at in zip(batch, cuts, strict=True):
            steps = _certain_steps(clipped[number], at, noises[number], criteria)
            steps = _with_drifts(_dated(steps, clipped[number], noises[number]), clipped[number], noises[number])
            found[number] = tuple(_on_nights(step, present[number]) for step in steps)
    return found


def noise(values: Array) -> float:
    """Deviation of a night, from the differences of values [nights]: steps and drift hardly enter it."""
    if len(values) < LEAST_NIGHTS:
        return LEAST_NOISE
    differences = np.diff(values)
    spread = _median(np.abs(differences - _median(differences)))
    return max(NORMAL * spread / math.sqrt(2), LEAST_NOISE)


def clip(values: Array, deviation: float) -> Array:
    """The values [nights] with single outliers at the median of their neighbours (Hampel's filter).

    The last two nights stay: an outlier there cannot be told from a step.
    """
    if len(values) < HAMPEL_NIGHTS:
        return values
    medians = _rolling_median(values, HAMPEL_NIGHTS)
    distances = np.abs(values - medians)
    spreads = NORMAL * _rolling_median(distances, SPREAD_NIGHTS)
    outlying = distances > np.maximum(HAMPEL_LIMIT * deviation, SPREAD_LIMIT * spreads)
    outlying[-2:] = False
    return np.where(outlying, medians, values)


def _rolling_median(values: Array, nights: int) -> Array:
    padded = np.pad(values, nights // 2, mode="reflect")
    around: Array = np.sort(np.lib.stride_tricks.sliding_window_view(padded, nights), axis=1)
    return around[:, nights // 2]


def find_cuts(series: Sequence[Array], penalty: float) -> list[list[int]]:
    """For each series [nights], where the pieces begin with the least squared deviations from their means plus penalty.

    Exact, by dynamic programming over all series at once: as KernelCPD with a linear kernel, O(nights²).
    """
    lengths = np.array([len(values) for values in series])
    longest = int(lengths.max(initial=0))
    sums = np.zeros((len(series), longest + 1))
    for number, values in enumerate(series):
        sums[number, 1 : len(values) + 1] = np.cumsum(values - np.median(values)) if len(values) else 0.0
    price = penalty * np.log(np.maximum(lengths, 2))
    best = np.full((len(series), longest + 1), np.inf)
    best[:, 0] = -price
    previous = np.zeros((len(series), longest + 1), dtype=np.intp)
    rows = np.arange(len(series))
    for end in range(LEAST_NIGHTS, longest + 1):
        starts = end - LEAST_NIGHTS + 1
        gain = sums[:, end, None] - sums[:, :starts]
        np.square(gain, out=gain)
        gain /= np.arange(end, end - starts, -1.0)
        cost = np.subtract(best[:, :starts], gain, out=gain)
        chosen = np.argmin(cost, axis=1)
        best[:, end] = cost[rows, chosen] + price
        previous[:, end] = chosen
    return [_walk_back(previous[number], int(lengths[number])) for number in rows]


def _walk_back(previous: npt.NDArray[np.intp], end: int) -> list[int]:
    cuts = []
    while end > 0 and (end := int(previous[end])) > 0:
        cuts.append(end)
    return cuts[::-1]


def _certain_steps(values: Array, cuts: Sequence[int], deviation: float, criteria: ChangeCriteria) -> list[Step]:
    """The steps at the cuts that pass. The least certain one is taken out first, and its neighbours are judged anew.

    Once all pass, a level of too few nights is joined to the neighbour from which it differs less certainly.
    """
    if cuts and _began_later(values, cuts):
        cuts = cuts[:-1]
    judged: dict[tuple[int, int, int], tuple[Step, bool]] = {}
    while cuts:
        found = []
        for piece in zip([0, *cuts[:-1]], cuts, [*cuts[1:], len(values)], strict=True):
            if piece not in judged:
                step = step_of(values, piece, deviation)
                judged[piece] = step, passes(step, values, piece, criteria)
            found.append(judged[piece])
        steps = [step for step, _ in found]
        failing = [step for step, has_passed in found if not has_passed]
        failing = failing or list(_at_short_levels(steps, len(values), criteria.nights))
        failing = failing or [step for step in steps[-1:] if _is_over(step, values)]
        if not failing:
            return steps
        worst = max(failing, key=lambda step: (step.p, -abs(step.size)))
        cuts = [cut for cut in cuts if cut != worst.index]
    return []


def _dated(steps: Sequence[Step], values: Array, deviation: float) -> list[Step]:
    edges = [0, *(step.index for step in steps), len(values)]
    pieces = zip(edges, edges[1:], edges[2:], strict=False)
    return [
        replace(step, between=_dates(step, values, piece, deviation)) for step, piece in zip(steps, pieces, strict=True)
    ]


def _dates(step: Step, values: Array, piece: tuple[int, int, int], deviation: float) -> tuple[int, int]:
    """The nights, at most a week away, on which the new level of a step may have begun."""
    first, cut, end = piece
    middle = _median(_sides(values, piece)[0]) + step.size / 2
    # What it costs that a night belongs to the old level, and not to the new one.
    cost = 2 * step.size * (values - middle) / deviation**2
    later = np.cumsum(cost[cut : min(cut + WEEK, end - 1)])
    earlier = np.cumsum(-cost[max(cut - WEEK, first + 1) : cut][::-1])
    earliest, latest = (int(np.flatnonzero(moved <= DATED).max(initial=-1)) + 1 for moved in (earlier, later))
    return cut - earliest, cut + latest


def _with_drifts(steps: Sequence[Step], values: Array, deviation: float) -> list[Step]:
    groups = drifts(values, [step.index for step in steps], [step.size for step in steps], deviation, REACH)
    first = {cut: group[0] for group in groups for cut in group if len(group) > 1}
    return [replace(step, drift=first.get(step.index)) for step in steps]


def passes(step: Step, values: Array, piece: tuple[int, int, int], criteria: ChangeCriteria) -> bool:
    """Whether the step of a piece counts as a change."""
    if abs(step.size) < criteria.least or step.p > criteria.p:
        return False
    return not criteria.is_strict or (is_unusual(values, piece) and exact_rank_p(*_sides(values, piece)) <= RANK_P)


def is_unusual(values: Array, piece: tuple[int, int, int]) -> bool:
    """Whether the weeks at either side of a cut differ by more than other neighbouring weeks of the series do.

    So the series itself says how far its level wanders, which the differences from night to night do not show.
    """
    first, cut, end = piece
    before, after = min(WEEK, cut - first), min(WEEK, end - cut)
    around = np.lib.stride_tricks.sliding_window_view(values, before + after)
    differences = np.abs(around[:, before:].mean(axis=1) - around[:, :before].mean(axis=1))
    at = np.arange(before, before + len(differences))
    others = differences[(at <= cut - after) | (at >= cut + before)]
    usual = NORMAL * _median(others) if len(others) else 0.0
    return bool(differences[cut - before] > UNUSUAL * usual)


def _began_later(values: Array, cuts: Sequence[int]) -> bool:
    """Whether the last piece is as short as a piece can be, and its first night still has the level before."""
    old, new = values[[0, *cuts][-2] : cuts[-1]], values[cuts[-1] :]
    return len(new) == LEAST_NIGHTS and abs(new[0] - _median(old)) < abs(new[0] - _median(new[1:]))


def _is_over(step: Step, values: Array) -> bool:
    """Whether each of the newest nights has the level before the last step again. They are too few to be a level."""
    newest, new = values[-OVER_NIGHTS:], _median(values[step.index :][:REACH])
    return bool((np.abs(newest - (new - step.size)) < np.abs(newest - new)).all())


def _at_short_levels(steps: Sequence[Step], end: int, nights: int) -> Iterator[Step]:
    """The steps at either side of each level that has too few nights to be known, as an old level or as a new one."""
    least = [LEAST_BEFORE, *[max(LEAST_BEFORE, nights)] * (len(steps) - 1), nights]
    edges = [0, *(step.index for step in steps), end]
    for number, (first, after) in enumerate(pairwise(edges)):
        if after - first < least[number]:
            yield from steps[max(0, number - 1) : number + 1]


def step_of(values: Array, piece: tuple[int, int, int], deviation: float) -> Step:
    """The step of a piece of values [nights]: the first night of its old level, the cut, and the end of its new level.

    Its noise is that of the series or of the old level, the larger one.
    """
    cut = piece[1]
    old, new = _sides(values, piece)
    level = _median(old)
    size = _median(new) - level
    spread = max(deviation, NORMAL * _median(np.abs(old - level)))
    error = MEDIAN_ERROR * spread * math.sqrt(1 / len(old) + 1 / len(new))
    freedom = len(old) + len(new) - 2
    p = 2 * float(special.stdtr(freedom, -abs(size) / error))
    reach = float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error
    return Step(cut, size, size - reach, size + reach, p)


def _sides(values: Array, piece: tuple[int, int, int]) -> tuple[Array, Array]:
    first, cut, end = piece
    return values[max(first, cut - REACH) : cut], values[cut : min(end, cut + REACH)]


def _median(values: Array) -> float:
    """Ten times as fast as NumPy's for the few nights of a level."""
    ordered, middle = np.sort(values), len(values) // 2
    return float(ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2)


def _on_nights(step: Step, present: npt.NDArray[np.intp]) -> Step:
    drift = None if step.drift is None else int(present[step.drift])
    between = step.between and (int(present[step.between[0]]), int(present[step.between[1]]))
    return replace(step, index=int(present[step.index]), drift=drift, between=between)
