"""Figures in data files: five digits each, as integers with a common scale, and texts by number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

DIGITS = 5
"""Of the smallest value. Latencies scatter by a thousandth and more."""


def scaled(*columns: Sequence[float | None]) -> tuple[float, list[list[int | None]]]:
    """A power of ten, and the columns in it as integers. None for what is no finite number."""
    sizes = [abs(value) for column in columns for value in column if value and math.isfinite(value)]
    power = math.floor(math.log10(min(sizes))) - DIGITS + 1 if sizes else 0
    times = 10.0**-power
    return 10.0**power, [[_scaled(value, times) for value in column] for column in columns]


def _scaled(value: float | None, times: float) -> int | None:
    return None if value is None or not math.isfinite(value) else round(value * times)


class Numbered:
    """Values by number, each once, in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def __call__(self, value: Any) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> list[Any]:
        return list(self._numbers)
