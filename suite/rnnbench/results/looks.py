"""How wide an interval must be after so many pairs of processes, where a verdict is looked for after each of them.

Who looks again and again is wrong more often than each single interval says. So the error rate is spent bit by bit
(Lan & DeMets 1983), by the power family of Kim & DeMets (1987): after k of K looks, error_rate · (k / K) ** POWER. Most
of it goes into the first looks, since most verdicts come there.

For independent pairs with normal logarithms of unknown variance the critical values are exact: the chance that any of
the intervals misses the truth is the error rate. They come from recursive integration (Armitage, McPherson & Rowe
1969), which Jennison & Turnbull (1991) brought to t statistics. Take n values as a vector. Student's t is a function of
r, the cosine of its angle to (1, …, 1), and r does not depend on its length. With a length of 1, the next value is
tan(a), and the next r is (√n r cos a + sin a) / √(n + 1). The angle a has a density in proportion to cos(a) ** (n - 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from rnnbench.optional import require

LOOKS = range(4, 41)
"""Pairs of processes at which a verdict is looked for. The last is the most that a verdict may take. After three pairs
Student's t decides nothing but changes of 5 % and more, and what they spend makes the fourth look wider."""
POWER = 1 / 6
"""It spends 55 % of the error rate at the first look."""
CELLS = 96
"""Cells of the integration. With 512, no critical value differs by 0.3 %."""
SCIPY_FOR = ("report", "an interval of a ratio")
"""Arguments of `require`: the extra that has SciPy, and what needs it."""


def spent(pairs: int, error_rate: float) -> float:
    """The part of the error rate that all looks up to this number of pairs may spend."""
    return error_rate * math.pow((pairs - LOOKS[0] + 1) / len(LOOKS), POWER)


def critical_t(pairs: int, error_rate: float) -> float:
    """Half of the interval after so many pairs, two at least, in standard errors of their mean.

    Fewer pairs than the first look has are looked at only where they end. So they take what the first look may take.
    """
    if pairs < LOOKS[0]:
        return float(require("scipy.special", *SCIPY_FOR).stdtrit(pairs - 1, 1 - spent(LOOKS[0], error_rate) / 2))
    return _look(min(pairs, LOOKS[-1]), error_rate).critical_t


Beyond = Callable[[np.ndarray], np.ndarray]
"""For each limit, the chance that abs(r) is beyond it and that no earlier look has ended the search."""


@dataclass(frozen=True)
class _Look:
    """One look, and what is left of the chances after it."""

    critical_t: float
    cells: np.ndarray
    """Values of abs(r) at which neither it nor a look before it has excluded the truth."""
    mass: np.ndarray
    """Their chances."""


@cache
def _look(pairs: int, error_rate: float) -> _Look:
    brentq = require("scipy.optimize", *SCIPY_FOR).brentq
    beyond, share = _beyond_at_first(pairs), spent(pairs, error_rate)
    if pairs > LOOKS[0]:
        before = _look(pairs - 1, error_rate)
        beyond, share = _beyond(pairs, before), share - spent(pairs - 1, error_rate)
    limit = brentq(_excess(beyond, share), 0.0, 1.0 - 1e-12, xtol=1e-12)
    angles = np.linspace(0.0, math.asin(limit), 2 * CELLS + 1)
    mass = -np.diff(beyond(np.sin(angles[::2])))
    return _Look(limit * math.sqrt((pairs - 1) / (1 - limit**2)), np.sin(angles[1::2]), mass)


def _excess(beyond: Beyond, share: float) -> Callable[[float], float]:
    return lambda limit: float(beyond(np.array([limit]))[0]) - share


def _beyond_at_first(pairs: int) -> Beyond:
    stdtr = require("scipy.special", *SCIPY_FOR).stdtr
    return lambda limits: 2 * stdtr(pairs - 1, -limits * np.sqrt((pairs - 1) / (1 - limits**2)))


def _beyond(pairs: int, before: _Look) -> Beyond:
    """After one pair more than at the look before."""
    cells = before.cells
    return lambda limits: before.mass @ (_above(pairs - 1, cells, limits) + _above(pairs - 1, -cells, limits))


def _above(count: int, r: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """[r, limits]: the chance that r of one value more is above a limit, where r of `count` values is this."""
    stdtr = require("scipy.special", *SCIPY_FOR).stdtr
    turned = np.arctan(math.sqrt(count) * r)[:, None]
    rises = np.arcsin(np.minimum(1.0, limits * math.sqrt(count + 1) / np.sqrt(1 + count * r**2)[:, None]))
    almost = math.pi / 2 - 1e-9
    high, low = (
        stdtr(count, math.sqrt(count) * np.tan(np.clip(angle - turned, -almost, almost)))
        for angle in (math.pi - rises, rises)
    )
    return np.asarray(high - low)
