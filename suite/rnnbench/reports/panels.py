"""The data of the pictures: lines of trials by origin and hidden size, where they stand, and the fastest program."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise, takewhile

from rnnbench.measure import most_missed
from rnnbench.results import Entry, Latency, StreamTest

DODGE = 0.4
"""Part of the distance between two chunks over which a panel spreads its lines, so that their marks stand apart."""
LEAST_DODGE = 0.5
"""Octaves over which few lines are spread, where there is room."""
LINE_DODGE = 0.04
"""Octaves for each of many lines, where there is room: with less, their marks hide each other."""
COLUMN = 0.5
"""Part of a column of a picture with a single chunk over which the lines of its program are spread."""
LETTER = 0.028
"""Part of a panel's width that a letter of a number takes."""
Places = Mapping[int, float]
"""By chunk, where on the horizontal axis a point stands."""


@dataclass(frozen=True)
class Line:
    """One program with one strategy in one panel, its points by chunk."""

    target: str
    time: str
    state: str
    launch: str
    points: tuple[Entry, ...]


Panels = Mapping[tuple[str, int], Sequence[Line]]
"""Lines by origin and hidden size."""


def arrange(sizes: Mapping[int, Sequence[Entry]]) -> dict[tuple[str, int], list[Line]]:
    """Lines by origin and hidden size; only what may be ranked is drawn."""
    panels: dict[tuple[str, int], list[Line]] = {}
    for hidden, entries in sizes.items():
        groups: dict[tuple[str, str, str, str, str], list[Entry]] = {}
        for entry in entries:
            if entry.ranked and entry.origin:
                params = entry.record.params
                key = entry.origin, entry.target, params.time, params.state, params.launch
                groups.setdefault(key, []).append(entry)
        for (origin, target, time, state, launch), points in sorted(groups.items()):
            ordered = tuple(sorted(points, key=lambda e: e.chunk))
            panels.setdefault((origin, hidden), []).append(Line(target, time, state, launch, ordered))
    return panels


def fastest(panels: Panels, path: str) -> dict[int, dict[int, float]]:
    """By hidden size and chunk, the fewest seconds per step of all streaming programs but kernels."""
    best: dict[int, dict[int, float]] = {}
    for (origin, hidden), lines in panels.items():
        fastest_of = best.setdefault(hidden, {})
        if origin == "kernel":
            continue
        for entry in (e for line in lines for e in line.points if e.streams):
            if latency := entry.latency(path):
                seconds = latency.median / entry.chunk
                fastest_of[entry.chunk] = min(seconds, fastest_of.get(entry.chunk, seconds))
    return {hidden: dict(sorted(seconds.items())) for hidden, seconds in best.items()}


def targets_of(*some: Panels) -> list[str]:
    return sorted({line.target for panels in some for lines in panels.values() for line in lines})


def legible(panels: Panels, most: int) -> tuple[Panels, int]:
    """The panels with the lines of as many programs at most, and how many programs are left out.

    Those are the slowest: of each program the chunk counts at which it is nearest to the fastest of its size.
    """
    least: dict[tuple[int, int], float] = {}
    latencies = [
        (line.target, (hidden, entry.chunk), entry.bound.median)
        for (_, hidden), lines in panels.items()
        for line in lines
        for entry in line.points
        if entry.bound
    ]
    for _, at, seconds in latencies:
        least[at] = min(seconds, least.get(at, seconds))
    nearest = dict.fromkeys(targets_of(panels), math.inf)
    for target, at, seconds in latencies:
        nearest[target] = min(seconds / least[at], nearest[target])
    kept = sorted(nearest, key=lambda target: (nearest[target], target))[:most]
    shown = {key: [line for line in lines if line.target in kept] for key, lines in panels.items()}
    return {key: lines for key, lines in shown.items() if lines}, len(nearest) - len(kept)


def named_chunks(chunks: Sequence[int]) -> set[int]:
    """Those whose numbers do not touch along a logarithmic axis. The ends are first, and then the larger ones."""
    span = math.log2(chunks[-1] / chunks[0])
    named: list[int] = []
    for chunk in (chunks[0], *reversed(chunks[1:])):
        width = LETTER * span * (len(str(chunk)) + 1)
        if all(abs(math.log2(chunk / other)) >= width for other in named):
            named.append(chunk)
    return set(named)


def stream_tests(entry: Entry) -> list[StreamTest]:
    """The tests of one stream, two, four, …, and of the number that is held; of equal numbers the last.

    The other tests only find that number, and stand close to it. A test that was ended by its misses says how long the
    queue was, and not how long a frame takes.
    """
    streams = entry.measured.timing.streams if entry.measured else None
    if streams is None:
        return []
    whole = (test for test in streams.tests if test.p99 is not None or test.missed <= most_missed(test.frames))
    tests = {test.streams: test for test in whole}
    doubling = takewhile(lambda number: number < streams.held, (2**power for power in count()))
    return [tests[number] for number in (*doubling, streams.held) if number in tests]


def built(line: Line) -> list[tuple[Entry, float, Latency]]:
    """The points of a line that were built cold, with seconds of the build and bound latency."""
    return [
        (entry, entry.measured.timing.build_s, entry.bound)
        for entry in line.points
        if entry.measured and entry.measured.timing.build_s and entry.bound
    ]


def chunks_of(panels: Panels) -> list[int]:
    return sorted({entry.chunk for lines in panels.values() for line in lines for entry in line.points})


def latencies_of(panels: Panels, path: str) -> list[tuple[Entry, Latency]]:
    """The trials that have a latency of this path."""
    entries = (entry for lines in panels.values() for line in lines for entry in line.points)
    return [(entry, latency) for entry in entries if (latency := entry.latency(path)) is not None]


def by_chunk(lines: Sequence[Line], chunks: Sequence[int]) -> Iterator[tuple[Line, Places]]:
    """Each line with its places: beside the others at each chunk."""
    room = (DODGE * math.log2(b / a) for a, b in pairwise(chunks))
    spread = min([max(LEAST_DODGE, LINE_DODGE * len(lines)), *room])
    for line, place in zip(lines, _side_by_side(len(lines)), strict=True):
        shift = 2 ** (spread * place)
        yield line, {chunk: chunk * shift for chunk in chunks}


def columns_of(panels: Panels) -> list[tuple[str, str]]:
    """Time and program of each column of a picture with a single chunk. All its panels have the same columns."""
    return sorted({(line.time, line.target) for lines in panels.values() for line in lines})


def by_column(lines: Sequence[Line], columns: Sequence[tuple[str, str]]) -> Iterator[tuple[Line, Places]]:
    """Each line of a single chunk with its place: beside the others of its time and program."""
    for at, column in enumerate(columns):
        group = [line for line in lines if (line.time, line.target) == column]
        for line, place in zip(group, _side_by_side(len(group)), strict=True):
            yield line, {entry.chunk: at + COLUMN * place for entry in line.points}


def _side_by_side(number: int) -> list[float]:
    """As many places, from -0.5 to 0.5."""
    return [index / (number - 1) - 0.5 for index in range(number)] if number > 1 else [0.0] * number
