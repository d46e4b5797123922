"""A table as data, which pages render; the words and signs that all tables use for an entry; and their legend."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from rich.console import Console

from rnnbench.reports import units
from rnnbench.reports.escape import Markdown, grid, line, print_grid
from rnnbench.results import Entry, Latency

APPROXIMATE = "≈"
EMULATED = "†"
KERNEL = "‡"
SHARED = "same"
SOFTWARE = "§"
IMPOSSIBLE = "⚠"
NOT_SLOWER = "no verdict says that it is slower than the first program of the place"
NOT_BELIEVED = "not believed"
"""Says of a trial that it is in no ranking, because the suite contradicts its figures."""


@dataclass(frozen=True)
class Sign:
    """A sign of a cell."""

    pattern: str
    """A regular expression that is found in a cell with the sign."""
    meaning: str


SIGNS: Mapping[str, Sign] = {
    APPROXIMATE: Sign(APPROXIMATE, "approximate activations"),
    EMULATED: Sign(EMULATED, "emulated: something stands in for what the runtime lacks"),
    KERNEL: Sign(KERNEL, "a kernel written by hand in this suite; it measures its authors' skill, not a compiler's"),
    SOFTWARE: Sign(
        SOFTWARE,
        "a software device: the processor emulates it; its times are not ranked",
    ),
    "1=": Sign(r"^\d+=$", f"a shared place: {NOT_SLOWER}"),
    SHARED: Sign(f"^{SHARED}$", "the same program, called the same way; measured once"),
    IMPOSSIBLE: Sign(IMPOSSIBLE, "an interval below 1, which is impossible: the account or the probe is wrong"),
    units.MISSING: Sign(f"^{units.MISSING}$", "not measured, or without meaning here"),
}
"""Signs in cells of tables, by what the legend calls them."""
P99_SAMPLES = 100
"""Fewest samples for a p99. The p99 of fewer samples is their maximum."""


@dataclass(frozen=True)
class Table:
    """A table of a report, whose cells are text already."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text: int = 1
    """Number of columns, from the left, that hold text. The others hold figures and are set flush right."""
    note: str = ""


def legend(cells: Iterable[str]) -> str:
    """What the signs in these cells mean, in one line; empty where there are none."""
    lines = "\n".join(cells)
    used = [f"{name} {sign.meaning}" for name, sign in SIGNS.items() if re.search(sign.pattern, lines, re.MULTILINE)]
    return f"Signs: {'. '.join(used)}." if used else ""


def print_table(content: Table, console: Console, *, folds: bool = True) -> None:
    """One table in the terminal. Unless `folds`, only cells of the first column may take several lines."""
    shown = grid(content.title)
    for index, name in enumerate(content.columns):
        justify: Literal["left", "right"] = "left" if index < content.text else "right"
        shown.add_column(name, justify=justify, no_wrap=index > 0 and not folds, overflow="fold")
    for row in content.rows:
        shown.add_row(*map(line, row))
    print_grid(console, shown)


def markdown_table(content: Table) -> Markdown:
    """One table in GitHub's Markdown, without its title and note."""
    rules = ["---" if index < content.text else "---:" for index in range(len(content.columns))]
    rows = [content.columns, rules, *content.rows]
    return Markdown("\n").join(Markdown("| {} |").format(Markdown(" | ").join(row)) for row in rows)


def program(entry: Entry) -> str:
    """`backend:route` with its signs."""
    kernel = f" {KERNEL}" if entry.origin == "kernel" else ""
    software = f" {SOFTWARE}" if entry.on_software_device else ""
    return f"{entry.target}{kernel}{software}{' ' + APPROXIMATE if entry.approximate else ''}"


def strategy(entry: Entry) -> str:
    """`time-state` with its signs."""
    return f"{entry.strategy}{' ' + EMULATED if entry.record.support.level == 'emulated' else ''}"


def by_program(entries: Iterable[Entry]) -> dict[tuple[str, str], list[Entry]]:
    """Entries by program and strategy, as tables show them: sorted by name, kernels last, and in each by chunk.

    An entry that did not build has no signs of its own. It stands with those of its program that did.
    """
    ordered = sorted(entries, key=lambda e: (e.target, strategy(e), e.chunk))
    kernels = {entry.target for entry in ordered if entry.origin == "kernel"}
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in sorted(ordered, key=lambda e: e.target in kernels):
        groups.setdefault((entry.target, strategy(entry)), []).append(entry)
    return {(max(map(program, group), key=len), how): group for (_, how), group in groups.items()}


def p99(latency: Latency) -> float | None:
    """Seconds per call; None for less than P99_SAMPLES."""
    return latency.p99 if latency.count >= P99_SAMPLES else None


def per_call_and_step(latency: Latency | None, chunk: int) -> tuple[str, str]:
    if latency is None:
        return units.MISSING, units.MISSING
    return units.seconds(latency.median), units.seconds(latency.median / chunk)
