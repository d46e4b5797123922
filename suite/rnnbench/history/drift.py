"""Drift: a level that rises or falls little by little, which a search for steps cuts into several of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
RAMP_PARAMETERS = 4
"""A level before, a level after, and the two nights between which a straight line joins them."""
JUMP_PARAMETERS = 2
"""Its night and its size."""


def drifts(
    values: Array, cuts: Sequence[int], sizes: Sequence[float], deviation: float, reach: int
) -> Iterator[tuple[int, ...]]:
    """The cuts of a series [nights], in groups: those of a drift together, each other one alone.

    Neighbouring steps of one direction are a drift where a ramp explains their nights better than levels do, and no
    jump at a cut is left beside the ramp (both by the Bayesian information criterion). Otherwise the largest jump is a
    step of its own. Without it the others are tried again. `deviation` is the noise of a night; up to `reach` nights on
    either side count.
    """
    edges = [0, *cuts, len(values)]
    for is_rise, of_direction in groupby(range(len(cuts)), key=lambda k: sizes[k] > 0):
        group = list(of_direction)
        first, end = max(edges[group[0]], cuts[group[0]] - reach), min(edges[group[-1] + 2], cuts[group[-1]] + reach)
        rise = values[first:end] if is_rise else -values[first:end]
        for part in _split(rise, [cuts[k] - first for k in group], deviation):
            yield tuple(first + cut for cut in part)


def _split(values: Array, cuts: Sequence[int], deviation: float) -> Iterator[list[int]]:
    together, nights = list(cuts), np.arange(len(values))
    price = deviation**2 * math.log(len(values))
    while len(together) > 1:
        pieces = pairwise([0, *together, len(values)])
        of_levels = sum(float(np.square(values[a:b] - values[a:b].mean()).sum()) for a, b in pieces)
        ramp = _best_ramp(values, together)
        rest = values - values.mean() - ramp * (ramp @ values) / (ramp @ ramp)
        jumps = [_jump(rest, ramp, nights >= cut) for cut in together]
        size, gain, at = max((size, gain, at) for at, (size, gain) in enumerate(jumps))
        saved = 2 * len(together) + 1 - RAMP_PARAMETERS
        if rest @ rest <= of_levels + price * saved and gain <= price * JUMP_PARAMETERS:
            break
        sudden = together.pop(at)
        values = values - size * (nights >= sudden)
        yield [sudden]
    yield together


def _best_ramp(values: Array, cuts: Sequence[int]) -> Array:
    """[nights]: of mean 0, and begun by the first cut and ended after the last one, so that it explains the most."""
    nights, ends = np.arange(len(values)), np.arange(cuts[-1], len(values))[:, None]
    most, best = -math.inf, np.zeros(len(values))
    for start in range(cuts[0] + 1):  # All at once take a gigabyte where the first cut is far from the first night.
        ramps = np.clip((nights - start) / (ends - start), 0, 1)
        ramps -= ramps.mean(axis=1, keepdims=True)
        explained = np.square(ramps @ values) / np.square(ramps).sum(axis=1)
        at = int(np.argmax(explained))
        if explained[at] > most:
            most, best = float(explained[at]), ramps[at]
    return best


def _jump(rest: Array, ramp: Array, is_after: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """The size of a jump beside a ramp, and the sum of squares that it explains of the rest."""
    step = is_after - is_after.mean()
    step = step - ramp * (ramp @ step) / (ramp @ ramp)
    size = float(step @ rest / (step @ step))
    return size, size * float(step @ rest)
