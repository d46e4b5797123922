"""Figures in data files: five digits or more, as integers with a common scale, and texts by number."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from rnnbench.reports import seconds

DIGITS = 5
"""Digits of the smallest value. Latencies scatter by a thousandth and more."""

LARGEST_POWER = 300
"""Largest power of ten that a float holds."""
_HALFWAY = re.compile(r"\d{3}50*")
"""Halfway between two figures of three digits."""


def scaled(*columns: Sequence[float | None]) -> tuple[int, list[list[int | None]]]:
    """A power of ten, and the columns as integers of it. None for what is no finite number."""
    power = _power([value for column in columns for value in column if value and math.isfinite(value)])
    return power, [[_whole(value, power) for value in column] for column in columns]


def whole(column: Sequence[float | None]) -> tuple[int, list[list[int | None]]]:
    """A column of integers, such as numbers of bytes, in the same form."""
    return 0, [[None if value is None or not math.isfinite(value) else round(value) for value in column]]


def _power(values: Sequence[float]) -> int:
    """The power of the last digit of the smallest value."""
    return max(math.floor(math.log10(min(map(abs, values)))) - DIGITS + 1, -LARGEST_POWER) if values else 0


def _whole(value: float | None, power: int) -> int | None:
    """None also beside a value so small that this one is too large for a float.

    A page rounds it again, to three digits. Where that would give another figure than the value has elsewhere, it is
    the next integer: 9.7249 and not 9.725 for 9.72496.
    """
    if value is None or not math.isfinite(exact := value * 10.0**-power):
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
