"""A table as data, which pages render; and what its rows say of an entry, alike in every table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rnnbench.reports import units
from rnnbench.reports.entries import Entry
from rnnbench.results.timing import Latency

APPROXIMATE = "≈"
EMULATED = "†"
SHARED = "same"
MARKS = (
    f"{APPROXIMATE} computes its activations approximately. {EMULATED} emulated: the runtime has no such notion, and "
    f"something stands in for it. Place '{SHARED}': the same program called the same way as the row above, measured "
    "once. '=': process medians overlap, so the place is shared."
)
P99_SAMPLES = 100
"""Fewest samples of which a p99 is shown: of fewer it is their maximum."""


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: int = 1
    """How many columns, from the left, hold text; the others hold figures and are set flush right."""
    note: str = ""


def program(entry: Entry) -> str:
    return f"{entry.target}{' ' + APPROXIMATE if entry.approximate else ''}"


def strategy(entry: Entry) -> str:
    return f"{entry.strategy}{' ' + EMULATED if entry.record.support.level == 'emulated' else ''}"


def by_program(entries: Iterable[Entry]) -> dict[tuple[str, str], list[Entry]]:
    """Entries by program and strategy, as tables show them; sorted by those, and in each by chunk.

    One that did not build, and whose math is not known, stands with those of its program that did, under their mark.
    """
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in sorted(entries, key=lambda e: (e.target, strategy(e), e.chunk)):
        groups.setdefault((entry.target, strategy(entry)), []).append(entry)
    return {(max(map(program, group), key=len), how): group for (_, how), group in groups.items()}


def p99(latency: Latency) -> float | None:
    """Seconds per call; None of less than P99_SAMPLES."""
    return latency.p99 if latency.count >= P99_SAMPLES else None


def per_call_and_step(latency: Latency | None, chunk: int) -> tuple[str, str]:
    if latency is None:
        return units.MISSING, units.MISSING
    return units.seconds(latency.median), units.seconds(latency.median / chunk)
