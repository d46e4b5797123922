"""Rules that stop pairs of processes, side by side: what each costs, and how often it is wrong.

A rule says after which pairs it looks, and how wide the interval is there. All have an error rate of 1 % for all looks.
Their critical values come from random numbers here, so that they also check those of `rnnbench.results.looks`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy import stats

from rnnbench.results.looks import LOOKS, critical_t
from rnnbench.results.verdict import DISTURBED, ERROR_RATE

MOST = LOOKS[-1]
NULL_SERIES = 400_000
Critical = Mapping[int, float]
"""By pairs: half of the interval there, in standard errors."""


@dataclass(frozen=True)
class Rule:
    """`same` is the interval that SAME asks for. `leaves_out`: whether disturbed pairs are left out."""

    name: str
    change: Critical
    same: Critical
    leaves_out: bool = False


@dataclass(frozen=True)
class Outcomes:
    """[repetitions]: what a rule said, and after how many pairs."""

    verdicts: np.ndarray
    pairs: np.ndarray

    def percent(self, *verdicts: str) -> float:
        return 100 * float(np.isin(self.verdicts, verdicts).mean())


def rules() -> list[Rule]:
    """The rule before, candidates, and the rule of `rnnbench ab` last, step by step."""
    from_fourth = range(4, MOST + 1)
    six = (5, 8, 12, 18, 27, 40)
    before = {pairs: float(stats.t.ppf(1 - ERROR_RATE / len(six) / 2, pairs - 1)) for pairs in six}
    found = [Rule("six equal looks (before)", before, before)]
    spendings = {
        "O'Brien-Fleming, from 4": (from_fourth, obrien_fleming),
        "Pocock, from 4": (from_fourth, pocock),
        "power 1/6, from 3": (range(3, MOST + 1), power),
        "power 1/6, from 5": (range(5, MOST + 1), power),
    }
    for name, (looks, spending) in spendings.items():
        critical = by_spending(looks, spending, ERROR_RATE)
        found.append(Rule(name, critical, critical))
    mixture = confidence_sequence(0.2, ERROR_RATE)
    found.append(Rule("confidence sequence", mixture, mixture))
    change, same = ({pairs: critical_t(pairs, rate) for pairs in LOOKS} for rate in (ERROR_RATE, 2 * ERROR_RATE))
    chosen = Rule("power 1/6, from 4", change, change)
    one_sided = replace(chosen, name="… SAME one-sided", same=same)
    return [*found, chosen, one_sided, replace(one_sided, name="… disturbed left out", leaves_out=True)]


Spending = Callable[[int, Sequence[int], float], float]
"""What is spent after so many pairs, of these looks, of this rate."""


def obrien_fleming(pairs: int, looks: Sequence[int], rate: float) -> float:
    """Lan & DeMets (1983), their first."""
    return float(2 * stats.norm.sf(stats.norm.isf(rate / 2) / math.sqrt(pairs / looks[-1])))


def pocock(pairs: int, looks: Sequence[int], rate: float) -> float:
    """Lan & DeMets (1983), their second."""
    return rate * math.log1p((math.e - 1) * pairs / looks[-1])


def power(pairs: int, looks: Sequence[int], rate: float) -> float:
    """Kim & DeMets (1987)."""
    return rate * ((pairs - looks[0] + 1) / len(looks)) ** (1 / 6)


def by_spending(looks: Sequence[int], spending: Spending, rate: float) -> dict[int, float]:
    """Critical values that spend so, from series without a change. A look that may take nothing has none."""
    ts = _null_ts()
    running = np.ones(len(ts), bool)
    found: dict[int, float] = {}
    for pairs in looks:
        takes = round(spending(pairs, looks, rate) * len(ts)) - int((~running).sum())
        if takes > 0:
            found[pairs] = float(np.partition(ts[running, pairs - 1], -takes)[-takes])
            running &= ts[:, pairs - 1] < found[pairs]
    return found


def confidence_sequence(precision: float, rate: float) -> dict[int, float]:
    """Wang & Ramdas (2025), after Lai (1976): a mixture over effects of N(0, 1 / precision²) standard deviations.

    It holds at any number of looks, also beyond the most pairs.
    """
    found = {}
    for pairs in range(2, MOST + 1):
        total = pairs + precision**2
        squared = total / pairs * (1 - (rate * precision / math.sqrt(total)) ** (2 / pairs))
        if squared < 1:
            found[pairs] = math.sqrt((pairs - 1) * squared / (1 - squared))
    return found


def apply(rule: Rule, logs: np.ndarray, scatters: np.ndarray, smallest: float) -> Outcomes:
    """[repetitions, most pairs] logarithms of ratios and the scatters of their rounds, judged as `rnnbench ab` does."""
    said = np.full(len(logs), "UNDECIDED")
    pairs = np.full(len(logs), logs.shape[1])
    looked = np.zeros(len(logs), int)
    limit = math.log1p(smallest)
    change, same = (np.array([of.get(n, math.inf) for n in range(MOST + 1)]) for of in (rule.change, rule.same))
    for number in range(min(rule.change), logs.shape[1] + 1):
        rows = np.flatnonzero(said == "UNDECIDED")
        seen, scatter = logs[rows, :number], scatters[rows, :number]
        kept = scatter <= (DISTURBED if rule.leaves_out else math.inf) * np.median(scatter, axis=1)[:, None]
        count = kept.sum(axis=1)
        mean = (seen * kept).sum(axis=1) / count
        error = np.sqrt((kept * (seen - mean[:, None]) ** 2).sum(axis=1) / np.maximum(count - 1, 1) / count)
        half, inner = (np.where(count > looked[rows], of[count], math.inf) * error for of in (change, same))
        looked[rows] = np.where(np.isfinite(change[count]), np.maximum(looked[rows], count), looked[rows])
        conditions = {
            "SLOWER": (mean > half) & (mean >= limit / 2),
            "FASTER": (mean < -half) & (mean <= -limit / 2),
            "SAME": (np.abs(mean) < limit / 2) & (np.abs(mean) + inner <= limit),
        }
        said[rows] = np.select(list(conditions.values()), list(conditions), "UNDECIDED")
        pairs[rows[said[rows] != "UNDECIDED"]] = number
    return Outcomes(said, pairs)


@cache
def _null_ts() -> np.ndarray:
    """[series, MOST]: abs(t) after so many pairs, where nothing changed."""
    values = np.random.default_rng(0).standard_normal((NULL_SERIES, MOST), dtype=np.float32)
    counts = np.arange(1, MOST + 1, dtype=np.float32)
    means = np.cumsum(values, axis=1) / counts
    squares = np.cumsum(values**2, axis=1) - counts * means**2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.abs(means) / np.sqrt(squares / (counts - 1) / counts)
