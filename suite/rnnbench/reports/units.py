"""Figures for people: three significant digits, with a unit that fits; what was not measured is a dash."""

from __future__ import annotations

import math

from rnnbench.spelling import percents

MISSING = "—"
WIDEST_RATIO = 100.0
"""How far, as a factor, the end of an interval is told: from 1 in comparisons, from the ratio in reports. Two processes
that disagree give any end."""
WIDEST_PERCENT = 10.0
"""The same of a change, and of half an interval."""
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_JOULES = ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ"))
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB")


def seconds(value: float | None) -> str:
    """`12.3 µs`, `1.24 ms`, `180 s`."""
    return _scaled(value, _SECONDS)


def joules(value: float | None) -> str:
    """`12.3 µJ`, `1.24 mJ`, `180 J`."""
    return _scaled(value, _JOULES)


def _scaled(value: float | None, scale: tuple[tuple[float, str], ...]) -> str:
    if value is None:
        return MISSING
    size, unit = next((step for step in scale if value >= step[0] * 0.9995), scale[-1])
    return f"{digits(value / size)} {unit}"


def nbytes(value: float | None) -> str:
    """`512 B`, `36.1 KiB`, `4.00 GiB`: powers of 1024."""
    if value is None:
        return MISSING
    power = 0
    while value >= 1024 and power < len(_BYTES) - 1:
        value, power = value / 1024, power + 1
    return f"{round(value)} B" if power == 0 else f"{digits(value)} {_BYTES[power]}"


def ratio(value: float | None) -> str:
    """`0.70×`, `12.3×`."""
    return MISSING if value is None else f"{digits(value)}×"


def percent(value: float | None) -> str:
    """`±1.2 %` from 0.012, `±339 %` from 3.39; `above ±1000 %` is what two processes that disagree give."""
    if value is None:
        return MISSING
    return f"±{percents(value)}" if value <= WIDEST_PERCENT else f"above ±{100 * WIDEST_PERCENT:.0f} %"


def end_of_ratio(value: float) -> str:
    """An end of a ratio's interval: `1.034`, or `>100` and `<0.01` beyond those."""
    if value > WIDEST_RATIO:
        return f">{WIDEST_RATIO:g}"
    return f"<{1 / WIDEST_RATIO:g}" if value < 1 / WIDEST_RATIO else f"{value:.3f}"


def end_of_interval(end: float, ratio: float) -> str:
    """An end of a ratio's interval, with three digits: `64.3`; `>387` and `<0.0387` where it is far from 3.87."""
    if end > ratio * WIDEST_RATIO:
        return f">{digits(ratio * WIDEST_RATIO)}"
    return f"<{digits(ratio / WIDEST_RATIO)}" if end < ratio / WIDEST_RATIO else digits(end)


def relative_change(ratio: float) -> str:
    """A ratio as a change: `+3.1 %`; `>+1000 %` beyond that."""
    return percents(ratio - 1, "+") if ratio - 1 <= WIDEST_PERCENT else f">+{100 * WIDEST_PERCENT:.0f} %"


def drift_until(night: str | None) -> str:
    """What stands after the size of a drift, `night` being the start of the first run with its last level."""
    return f", a drift that went on until {night[:10]}" if night else ""


def change_with_interval(ratio: float, interval: tuple[float, float] | None, label: str = "") -> str:
    """`+3.1 % (+2.5 % to +3.8 %)`; `label` stands before the interval."""
    if interval is None:
        return relative_change(ratio)
    low, high = map(relative_change, interval)
    return f"{relative_change(ratio)} ({label}{low} to {high})"


def multiple(value: float) -> str:
    """A multiple that may be huge, infinite or no number at all, as errors are: `1.4`, `4e+05`, `∞`, `NaN`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞"
    return f"{value:.1f}" if value < 1000 else f"{value:.0e}"


def digits(value: float) -> str:
    """Three significant digits without an exponent; ∞ for an end of an interval that no float holds."""
    if value == 0 or not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value else "0"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value)) + 2e-4))}f}"


def number(value: float) -> str:
    """Three significant digits, thousands apart: `0.27`, `12,400`."""
    if not math.isfinite(value):
        return digits(value)
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else digits(value)
