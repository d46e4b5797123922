"""Lines through figures by chunk, each with its error: what a call costs and what a step does, and how costs grow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

CONFIDENCE = 0.95
LEAST_POINTS = 3
"""Points of a fit: two would leave no error to see."""
NEAR = 0.25
"""An exponent this near to a whole number is called by that number's word."""
WORDS = ("constant", "linear", "quadratic", "cubic")


@dataclass(frozen=True)
class Estimate:
    value: float
    half_width: float
    """Half of the interval at CONFIDENCE, by Student's t."""

    @property
    def interval(self) -> tuple[float, float]:
        return self.value - self.half_width, self.value + self.half_width


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
    from scipy import stats

    chunks, values = np.array(list(seconds), float), np.array(list(seconds.values()))
    sizes = np.array([(scale or seconds)[chunk] for chunk in seconds])
    (slope, intercept), covariance = np.polyfit(chunks, values, 1, w=1 / sizes, cov=True)
    quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(chunks) - 2))
    errors = quantile * np.sqrt(np.diag(covariance))
    off = np.abs(intercept + slope * chunks - values) / sizes
    return CallCost(
        Estimate(float(intercept), float(errors[1])), Estimate(float(slope), float(errors[0])), float(off.max())
    )


def fit_exponent(values: Mapping[int, float]) -> Estimate | None:
    """The exponent p of chunk^p, by regression on logarithms; None for fewer than LEAST_POINTS or for none above 0."""
    positive = {chunk: value for chunk, value in values.items() if value > 0}
    if len(positive) < LEAST_POINTS:
        return None
    from scipy import stats

    logs = np.log(list(positive.values()))
    if np.ptp(logs) == 0:
        return Estimate(0.0, 0.0)
    line = stats.linregress(np.log(list(positive)), logs)
    quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(positive) - 2))
    return Estimate(float(line.slope), quantile * float(line.stderr))


def growth_word(exponent: Estimate) -> str:
    """What the exponent is called, as far as its interval tells."""
    low, high = exponent.interval
    near = [word for power, word in enumerate(WORDS) if low - NEAR <= power <= high + NEAR]
    if len(near) == 1:
        return near[0]
    if near:
        return "undecided"
    power = math.floor(exponent.value)
    if power < 0:
        return "falling"
    return f"between {WORDS[power]} and {WORDS[power + 1]}" if power + 1 < len(WORDS) else f"beyond {WORDS[-1]}"


def calls_until_paid(build: float, call: float, cheap_build: float, cheap_call: float) -> float | None:
    """Calls after which the longer build has saved what it took beyond the cheap one; None where it never does."""
    if call >= cheap_call:
        return None
    return max(0.0, build - cheap_build) / (cheap_call - call)


def by_chunk(pairs: Sequence[tuple[int, float | None]]) -> dict[int, float]:
    return {chunk: value for chunk, value in sorted(pairs) if value is not None}
