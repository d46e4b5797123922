"""Where the time of one trial goes: the parts of a call, what comes before the first, and how single calls spread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rnnbench.measure import PATHS
from rnnbench.reports import P99_SAMPLES, seconds
from rnnbench.results import Latency, Record

TICK_FACTORS = (1.0, 2.0, 5.0)
MARGIN = 4.0
"""Per cent of a drawing's width that is left free on either side."""
MOST_TICKS = 6


@dataclass(frozen=True)
class Part:
    """A time, drawn as a bar."""

    name: str
    value: float
    low: float | None
    high: float | None
    meaning: str
    width: float
    """Per cent of the longest bar."""
    low_at: float | None = None
    high_at: float | None = None
    """Ends of the interval in per cent of the same."""


@dataclass(frozen=True)
class Mark:
    """A point of a distribution."""

    name: str
    value: float
    at: float
    """Per cent of the drawing's width."""


@dataclass(frozen=True)
class Distribution:
    """Single calls of one latency path on a logarithmic axis."""

    path: str
    meaning: str
    latency: Latency
    marks: tuple[Mark, ...]
    processes: tuple[Mark, ...]
    interval: tuple[float, float] | None
    """Ends of the median's 95 % interval in per cent of the width."""
    ticks: tuple[Mark, ...]


def call_parts(record: Record) -> list[Part]:
    """Of one bound and one public call, the floors first. Only what was measured."""
    timing, floor = record.timing, record.floor
    dispatch, copy = timing.dispatch_floor, timing.state_copy
    found: list[tuple[str, float | None, tuple[float, float] | None, str]] = []
    if floor:
        limit = f"{floor.limited_by} limits it; weights fit {floor.level or 'an unknown cache'}"
        found.append(("latency floor", floor.seconds, None, f"least time to read and compute: {limit}"))
    if dispatch:
        meaning = "a bound call of the smallest program of this runtime with the same state"
        found.append(("dispatch floor", dispatch.seconds, dispatch.interval, meaning))
    if copy:
        meaning = "the state's round trip through NumPy; no timed call makes it"
        found.append(("state copy", copy.seconds, copy.interval, meaning))
    for name, path in PATHS.items():
        if latency := record.latency(name):
            found.append((name, latency.median, latency.interval, path.meaning))
    return _parts(found)


def preparation_parts(record: Record) -> list[Part]:
    """What happens once, before the first call. Each is timed once, so none has an interval."""
    timing = record.timing
    return _parts(
        [
            ("build", timing.build_s, None, "a cold build, without imports"),
            ("build's imports", timing.build_import_s, None, "a compiler, or an importer's framework"),
            ("load", timing.load_s, None, "the artifact from the cache, without imports"),
            ("open", timing.open_s, None, "a session"),
            ("bind", timing.bind_s, None, "a ring of 8 chunks"),
            ("first call", timing.first_call_s, None, "bound"),
        ]
    )


def distribution(path: str, latency: Latency) -> Distribution | None:
    """None where the figures cannot be drawn."""
    quantiles = [("min", latency.min), ("median", latency.median), ("p90", latency.p90), ("max", latency.max)]
    if latency.count >= P99_SAMPLES:
        quantiles.insert(3, ("p99", latency.p99))
    ends = [value for _, value in quantiles] + list(latency.process_medians) + list(latency.interval or ())
    if not all(math.isfinite(value) and value > 0 for value in ends):
        return None
    low, high = min(ends), max(ends)
    high = max(high, low * 1.05)

    def at(value: float) -> float:
        return MARGIN + (100 - 2 * MARGIN) * math.log(value / low) / math.log(high / low)

    return Distribution(
        path,
        PATHS[path].meaning if path in PATHS else "",
        latency,
        tuple(Mark(name, value, at(value)) for name, value in quantiles),
        tuple(Mark(str(number + 1), value, at(value)) for number, value in enumerate(latency.process_medians)),
        (at(latency.interval[0]), at(latency.interval[1])) if latency.interval else None,
        tuple(Mark(seconds(tick), tick, at(tick)) for tick in _ticks(low, high)),
    )


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high, at most MOST_TICKS of them."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [factor * 10.0**power for power in powers for factor in TICK_FACTORS]
    inside = [tick for tick in ticks if low <= tick <= high]
    return inside[:: math.ceil(len(inside) / MOST_TICKS)] if inside else []


def _parts(found: Sequence[tuple[str, float | None, tuple[float, float] | None, str]]) -> list[Part]:
    measured = [(n, v, i, m) for n, v, i, m in found if v is not None and math.isfinite(v) and v >= 0]
    longest = max((max(v, i[1] if i else v) for _, v, i, _ in measured), default=0.0) or 1.0
    return [
        Part(
            name,
            value,
            interval[0] if interval else None,
            interval[1] if interval else None,
            meaning,
            100 * value / longest,
            100 * interval[0] / longest if interval else None,
            100 * interval[1] / longest if interval else None,
        )
        for name, value, interval, meaning in measured
    ]
