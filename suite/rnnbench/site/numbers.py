"""Figures in data files: five digits or more, as integers with a common scale, and texts by number."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from rnnbench.reports import seconds

Array = npt.NDArray[np.float64]
Column = Sequence[float | None] | Array
Scaled = tuple[int, list[list[int | None]]]
DIGITS = 5
"""Digits of the smallest value. Latencies scatter by a thousandth and more."""

LARGEST_POWER = 300
"""Largest power of ten that a float holds."""
EXACT = 2.0**53
"""Below it, each whole number is a float."""
_HALFWAY = re.compile(r"\d{3}50*")
"""Halfway between two figures of three digits."""


def scaled(*columns: Column) -> Scaled:
    """A power of ten, and the columns as integers of it. None for what is no finite number."""
    return scaled_each([columns])[0]


def scaled_each(groups: Sequence[Sequence[Column]]) -> list[Scaled]:
    """The same of many groups of columns at once, each with a power of its own."""
    columns = [np.asarray(column, float) for group in groups for column in group]
    values = np.concatenate([*columns, [math.inf]])
    sizes = np.array([sum(map(len, group)) for group in groups], np.intp)
    counted = np.where(np.isfinite(values) & (values != 0), np.abs(values), math.inf)
    smallest = np.minimum.reduceat(counted, np.cumsum(sizes) - sizes)
    powers = [_power(value) for value in np.where(sizes > 0, smallest, math.inf).tolist()]
    wholes = iter(_wholes(values[:-1], np.repeat(np.array(powers, np.intp), sizes)))
    return [
        (power, [list(islice(wholes, len(column))) for column in group])
        for power, group in zip(powers, groups, strict=True)
    ]


def whole(column: Column) -> Scaled:
    """A column of integers, such as numbers of bytes, in the same form."""
    return 0, [[None if value is None or not math.isfinite(value) else round(value) for value in column]]


def _power(smallest: float) -> int:
    """The power of the last digit of the smallest value; 0 where there is none."""
    return max(math.floor(math.log10(smallest)) - DIGITS + 1, -LARGEST_POWER) if math.isfinite(smallest) else 0


def _wholes(values: Array, powers: npt.NDArray[np.intp]) -> list[int | None]:
    """`_whole` of each value."""
    different, places = np.unique(powers, return_inverse=True)
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.rint(values * np.array([10.0 ** -int(power) for power in different])[places])
        is_done = (np.abs(near) < EXACT) & (near % 10 != 0)
    wholes: list[int | None] = np.where(is_done, near, 0).astype(np.int64).tolist()
    for index in np.flatnonzero(~is_done):
        wholes[index] = _whole(float(values[index]), int(powers[index]))
    return wholes


def _whole(value: float, power: int) -> int | None:
    """None also beside a value so small that this one is too large for a float.

    A page rounds it again, to three digits. Where that would give another figure than the value has elsewhere, it is
    the next integer: 9.7249 and not 9.725 for 9.72496.
    """
    if not math.isfinite(exact := value * 10.0**-power):
        return None
    near = round(exact)
    if near % 10 == 0 and _HALFWAY.fullmatch(str(near)) and seconds(read := float(f"{near}e{power}")) != seconds(value):
        near += 1 if value > read else -1
    return near


class Numbered:
    """Values by number, each once, in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> list[Any]:
        return list(self._numbers)
