"""Figures in data files: five digits each, as integers with a common scale, and texts by number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

DIGITS = 5
"""Digits of the smallest value. Latencies scatter by a thousandth and more."""


LARGEST_POWER = 300
"""Largest power of ten that a float holds."""


def scaled(*columns: Sequence[float | None]) -> tuple[int, list[list[int | None]]]:
    """A power of ten, and the columns as integers of it. None for what is no finite number."""
    power = _power([value for column in columns for value in column if value and math.isfinite(value)])
    return power, [[_whole(value, 10.0**-power) for value in column] for column in columns]


def _power(values: Sequence[float]) -> int:
    """The power of the last digit of the smallest value."""
    return max(math.floor(math.log10(min(map(abs, values)))) - DIGITS + 1, -LARGEST_POWER) if values else 0


def _whole(value: float | None, times: float) -> int | None:
    """None also beside a value so small that this one is too large for a float."""
    return round(number) if value is not None and math.isfinite(number := value * times) else None


class Numbered:
    """Values by number, each once, in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> list[Any]:
        return list(self._numbers)
