"""Where the time of one trial goes: the parts of a call, what comes before the first, and how single calls spread."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rnnbench.measure import PATHS
from rnnbench.reports import P99_SAMPLES, seconds
from rnnbench.results import Latency, Record

Side = Literal["", " class=first", " class=last"]
TICK_FACTORS = (1.0, 2.0, 5.0)
MARGIN = 4.0
"""Per cent of a drawing's width that is left free on either side."""
NEAR_END = 10.0
"""Per cent of the width from an end, within which a label would leave the drawing."""
MOST_TICKS = 6
LETTER = 2.6
"""Per cent of the width that a letter of a label takes on the smallest phone: 7.7 of 296 px, in the widest fonts."""
BETWEEN = 1.5
"""Per cent of the width that is left free between two labels."""
ONCE = "none: measured once"
ONE_PROCESS = "none: one process"
FLOOR = "that of its ratio is above"


class _Time(NamedTuple):
    """A time of a record, as it was measured."""

    name: str
    seconds: float | None
    interval: tuple[float, float] | None = None
    """95 %."""


PARTS: Mapping[str, str] = {
    "latency floor": "The least time that the machine needs to read and compute what the call must.",
    "dispatch floor": "A bound call of the smallest program of this runtime with the same state.",
    "state copy": "The state's round trip through NumPy. No timed call makes it.",
    **{path.name: path.meaning for path in PATHS.values()},
    "build": "A cold build, without imports.",
    "build's imports": "A compiler, or an importer's framework.",
    "load": "Loading the artifact from the cache, without imports.",
    "open": "Opening a session.",
    "bind": "Binding a ring of 8 chunks.",
    "first call": "The first bound call.",
}
"""What each part is."""


@dataclass(frozen=True)
class Part:
    """A time, drawn as a bar."""

    name: str
    value: float
    low: float | None
    high: float | None
    width: float
    """Per cent of the longest bar."""
    low_at: float | None = None
    high_at: float | None = None
    """Ends of the interval in per cent of the same."""
    why_none: str = ONCE
    """Why there is no interval."""


@dataclass(frozen=True)
class Mark:
    """A point of a distribution."""

    name: str
    value: float
    at: float
    """Per cent of the drawing's width."""

    @property
    def side(self) -> Side:
        """A label near an end of an axis stands on its inner side."""
        return " class=first" if self.at < NEAR_END else " class=last" if self.at > 100 - NEAR_END else ""


@dataclass(frozen=True)
class Distribution:
    """Single calls of one latency path on a logarithmic axis."""

    path: str
    latency: Latency
    marks: tuple[Mark, ...]
    processes: tuple[Mark, ...]
    interval: tuple[Mark, Mark] | None
    """Ends of the median's 95 % interval."""
    ticks: tuple[Mark, ...]

    def x(self, mark: Mark) -> str:
        """Its place on an axis of 1,000 units."""
        return f"{10 * mark.at:.0f}"

    @property
    def names(self) -> list[tuple[Mark, int]]:
        """The marks whose names are written, each with the height of its row. The figures of all stand below."""
        return [(mark, y) for row, y in ((self.marks[::2], 29), (self.marks[1::2], 14)) for mark in _named(row)]


def span_of(mark: Mark) -> tuple[float, float]:
    """From where to where the label goes on the smallest phone, in per cent of the width."""
    width = LETTER * len(mark.name)
    begins = mark.at - {"": width / 2, " class=first": 0.0, " class=last": width}[mark.side]
    return begins, begins + width


def are_apart(mark: Mark, other: Mark) -> bool:
    """Whether their labels do not touch on a phone."""
    (begin, end), (other_begin, other_end) = span_of(mark), span_of(other)
    return other_begin >= end + BETWEEN or begin >= other_end + BETWEEN


def call_parts(record: Record) -> list[Part]:
    """Times of one call by each path, the floors first. Only those that were measured."""
    timing, floor = record.timing, record.floor
    times = [_Time("latency floor", floor.seconds if floor else None)]
    for name, side in (("dispatch floor", timing.dispatch_floor), ("state copy", timing.state_copy)):
        times.append(_Time(name, side.seconds if side else None, side.interval if side else None))
    times += [_Time(path, latency.median, latency.interval) for path in PATHS if (latency := record.latency(path))]
    return _parts(times)


def preparation_parts(record: Record) -> list[Part]:
    """Times of what happens once, before the first call. Each is timed once, so none has an interval.

    The build may be an earlier run's, and then has its day.
    """
    timing = record.timing
    return _parts(
        [
            _Time(f"build, {timing.built[:10]}" if timing.built else "build", timing.build_s),
            _Time("build's imports", timing.build_import_s),
            _Time("load", timing.load_s),
            _Time("open", timing.open_s),
            _Time("bind", timing.bind_s),
            _Time("first call", timing.first_call_s),
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

    def mark(name: str, value: float) -> Mark:
        return Mark(name, value, MARGIN + (100 - 2 * MARGIN) * math.log(value / low) / math.log(high / low))

    return Distribution(
        path,
        latency,
        tuple(mark(name, value) for name, value in quantiles),
        tuple(mark(str(number + 1), value) for number, value in enumerate(latency.process_medians)),
        (mark("low", latency.interval[0]), mark("high", latency.interval[1])) if latency.interval else None,
        tuple(_apart(mark(seconds(tick), tick) for tick in _ticks(low, high))),
    )


def _apart(marks: Iterable[Mark]) -> Iterator[Mark]:
    """Without those whose labels would touch on a phone."""
    last: Mark | None = None
    for mark in marks:
        if last is None or are_apart(last, mark):
            last = mark
            yield mark


def _named(row: Sequence[Mark]) -> list[Mark]:
    """As many as do not touch on a phone. The ends of the row are first."""
    named: list[Mark] = []
    for mark in (*row[:1], *row[:0:-1]):
        if all(are_apart(mark, other) for other in named):
            named.append(mark)
    return named


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high, at most MOST_TICKS of them."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [factor * 10.0**power for power in powers for factor in TICK_FACTORS]
    inside = [tick for tick in ticks if low <= tick <= high]
    return inside[:: math.ceil(len(inside) / MOST_TICKS)] if inside else []


def _parts(times: Sequence[_Time]) -> list[Part]:
    measured = [(n, v, i) for n, v, i in times if v is not None and math.isfinite(v) and v >= 0]
    longest = max((max(v, i[1] if i else v) for _, v, i in measured), default=0.0) or 1.0
    return [_part(name, value, interval, longest) for name, value, interval in measured]


def _part(name: str, value: float, interval: tuple[float, float] | None, longest: float) -> Part:
    why_none = FLOOR if name == "latency floor" else ONE_PROCESS if name in PATHS else ONCE
    low, high = interval or (None, None)
    ends = [None if end is None else 100 * end / longest for end in (low, high)]
    return Part(name, value, low, high, 100 * value / longest, ends[0], ends[1], why_none)
