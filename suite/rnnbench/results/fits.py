"""Lines through figures by chunk, each with its error: what a call costs and what a step does, and how costs grow."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

CONFIDENCE = 0.95
LEAST_POINTS = 3
"""Fewest points of a fit: two points have no error that could be estimated."""
TELLING_POINTS = 5
"""Fewest points with which a fixed part is fitted too: with fewer its interval is too wide to be of use."""
CHANCE = 0.2
"""Chance that a fixed part is fitted where there is none. That only widens the interval."""
CHANCE_IF_CONSTANT = 0.01
"""The same where the plain power is constant, as that of most costs is: few of them may lose that word by chance."""
LEAST_GROWTH = 1.1
"""The largest figure over the smallest one, below which a constant cost is not examined for a part that grows."""
MOST_POWER = 6.0
"""Largest exponent that a fit may have."""
ROUNDING = 1e-12
"""A sum of squares below this is rounding."""
NEAR = 0.25
"""An exponent within this distance of a whole number gets the word of that number."""
WORDS = ("constant", "linear", "quadratic", "cubic")


@dataclass(frozen=True)
class Estimate:
    """A fitted value with its interval, both in the unit of the value."""

    value: float
    half_width: float
    """Half of the interval at CONFIDENCE, by Student's t."""

    @property
    def interval(self) -> tuple[float, float]:
        return self.value - self.half_width, self.value + self.half_width


@dataclass(frozen=True)
class Growth:
    """Figures as `fixed` + scale · chunk^exponent."""

    exponent: Estimate
    fixed: float = 0.0
    """The part that does not depend on the chunk; 0 where the figures cannot show that there is one."""


@dataclass(frozen=True)
class CallCost:
    """Seconds of a call: `per_call` + `per_step` · chunk."""

    per_call: Estimate
    per_step: Estimate
    error: float
    """The largest distance of a point from the line, relative to the point."""


def fit_call(seconds: Mapping[int, float], scale: Mapping[int, float] | None = None) -> CallCost | None:
    """Weighted least squares over chunks; None for fewer than LEAST_POINTS.

    A latency's error is in proportion to it, so each point weighs by its size: by `scale` where `seconds` are
    differences of larger figures, whose errors they have.
    """
    if len(seconds) < LEAST_POINTS:
        return None
    chunks, values = np.array(list(seconds), float), np.array(list(seconds.values()))
    sizes = np.array([(scale or seconds)[chunk] for chunk in seconds])
    (slope, intercept), covariance = np.polyfit(chunks, values, 1, w=1 / sizes, cov=True)
    errors = _students_t(len(chunks) - 2) * np.sqrt(np.diag(covariance))
    off = np.abs(intercept + slope * chunks - values) / sizes
    return CallCost(
        Estimate(float(intercept), float(errors[1])), Estimate(float(slope), float(errors[0])), float(off.max())
    )


def fit_growth(values: Mapping[int, float]) -> Growth | None:
    """The exponent of figures by chunk, by regression on logarithms; None for fewer than LEAST_POINTS above 0.

    A fixed part hides growth from a plain power of the chunk: 1 s + (chunk/64)² s looks linear up to 512. It is fitted
    too where there are points enough, and kept where it explains the figures better than chance would (F test). A cost
    that looks constant, as 500 MB + 2 MB · chunk does up to 64, needs stronger evidence, and a growth worth a word.
    """
    positive = {chunk: value for chunk, value in values.items() if value > 0}
    if len(positive) < LEAST_POINTS:
        return None
    from scipy.special import fdtri  # After the return: its import takes most of the time of a small report.

    chunks, logs = np.array(list(positive), float), np.log(list(positive.values()))
    if np.ptp(logs) == 0:
        return Growth(Estimate(0.0, 0.0))
    (slope, intercept), covariance = np.polyfit(np.log(chunks), logs, 1, cov=True)
    plain = Growth(Estimate(float(slope), _students_t(len(chunks) - 2) * math.sqrt(covariance[0, 0])))
    constant = growth_word(plain.exponent) == WORDS[0]
    if len(chunks) < TELLING_POINTS or (constant and np.ptp(logs) < math.log(LEAST_GROWTH)):
        return plain
    above = _fit_above(chunks, logs)
    if above is None:
        return plain
    growth, left = above
    freedom, chance = len(chunks) - 3, CHANCE_IF_CONSTANT if constant else CHANCE
    left_of_plain = float(np.sum((intercept + slope * np.log(chunks) - logs) ** 2))
    better = left_of_plain - left > left / freedom * float(fdtri(1, freedom, 1 - chance))
    return growth if better and left_of_plain > ROUNDING else plain


def _fit_above(chunks: FloatArray, logs: FloatArray) -> tuple[Growth, float] | None:
    """Logarithms as those of fixed + scale · chunk^p, and the squares that are left; None where p cannot be told."""
    from scipy import optimize

    def model(chunk: FloatArray, fixed: float, scale: float, power: float) -> FloatArray:
        logarithms: FloatArray = np.log(fixed + scale * (chunk / chunks[-1]) ** power)
        return logarithms

    least = float(logs.min())
    begin, bounds = (0.9, float(np.exp(logs[-1] - least)), 1.0), ([0.0, 1e-9, 0.0], [np.inf, np.inf, MOST_POWER])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", optimize.OptimizeWarning)
            fitted, covariance = optimize.curve_fit(model, chunks, logs - least, begin, bounds=bounds)
    except (RuntimeError, ValueError, optimize.OptimizeWarning):
        return None
    half_width = _students_t(len(chunks) - 3) * float(np.sqrt(covariance[2, 2]))
    left = float(np.sum((model(chunks, *fitted) - (logs - least)) ** 2))
    return Growth(Estimate(float(fitted[2]), half_width), float(fitted[0] * np.exp(least))), left


def _students_t(degrees: int) -> float:
    """How many standard errors the interval at CONFIDENCE reaches, by degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))


def growth_word(exponent: Estimate) -> str:
    """The word for the exponent, as far as its interval allows one."""
    low, high = exponent.interval
    near = [power for power in range(len(WORDS)) if low - NEAR <= power <= high + NEAR]
    if len(near) > 1:
        return "undecided"
    if near and abs(exponent.value - near[0]) <= NEAR:
        return WORDS[near[0]]
    below = math.floor(exponent.value)
    if below < 0:
        return "falling"
    return f"between {WORDS[below]} and {WORDS[below + 1]}" if below + 1 < len(WORDS) else f"beyond {WORDS[-1]}"


def calls_until_paid(start: float, call: float, other_start: float, other_call: float) -> float | None:
    """Calls after which a later start has saved the time that it took beyond the other; None where it never does."""
    if call >= other_call:
        return None
    return max(0.0, start - other_start) / (other_call - call)


def by_chunk(pairs: Sequence[tuple[int, float | None]]) -> dict[int, float]:
    """Figures by chunk, the smallest chunk first; those that are None left out."""
    return {chunk: value for chunk, value in sorted(pairs, key=lambda pair: pair[0]) if value is not None}
