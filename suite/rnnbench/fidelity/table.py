"""Fidelity as a table with verdicts. Rows are printed as they come: a measurement of all backends takes minutes."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from rnnbench.fidelity.measure import RATIO, SHARE, Fidelity
from rnnbench.reports import line, seconds

_COLOURS = {"holds": "green", "too far": "red", "tool slower": "yellow"}
_ROW = "{:34} {:>5} {:>9} {:>9} {:>22} {:>12} {:>10} {:>11} "


def print_fidelity(figures: Iterable[Fidelity], console: Console) -> bool:
    """Print a row for each figure, and a legend. Returns whether none failed and none is too far from its tool."""
    console.print("bound against each runtime's own tool: median seconds per call")
    columns = ("program", "chunk", "bound", "tool", "ratio", "difference", "empty call", "empty after")
    console.print(_ROW.format(*columns), "verdict", soft_wrap=True)
    notes: dict[str, list[str]] = {}
    holds = True
    for figure in figures:
        holds = holds and figure.verdict != "too far" and not figure.failed
        program = f"{figure.target} at chunk {figure.chunk}"
        if figure.verdict is None:
            how = "failed" if figure.failed else "not measured"
            notes.setdefault(f"{how}: {figure.unmeasured}", []).append(program)
            continue
        if figure.note:
            notes.setdefault(figure.note, []).append(program)
        verdict = (figure.verdict, _COLOURS[figure.verdict])
        console.print(line(_row(figure), " ", verdict, f" ({figure.tool})"), highlight=False, soft_wrap=True)
    console.print(
        f"A program holds, from two steps a call on, if the median ratio is at most {RATIO}; at one step, if the "
        f"difference is at most an empty call and {100 * SHARE:.0f} % of the tool's figure. 'Empty after' is an empty "
        "call after each call of the program, whose weights have passed through the caches: it shows where a "
        "difference may come from, and no verdict uses it. 'Tool slower' means that the tool does more than run the "
        "artifact, which proves nothing. Intervals are 95 % intervals of the ratio between processes."
    )
    for note, programs in notes.items():
        console.print(line(f"{', '.join(programs)}: {note}", style="dim"), highlight=False)
    return holds


def _row(figure: Fidelity) -> str:
    interval = "" if figure.interval is None else " ({:.3f} to {:.3f})".format(*figure.interval)
    return _ROW.format(
        f"{figure.target} {figure.strategy}",
        figure.chunk,
        seconds(figure.bound),
        seconds(figure.tool_s),
        f"{figure.ratio:.3f}{interval}",
        f"{figure.difference * 1e6:+z.2f} µs",
        seconds(figure.empty),
        seconds(figure.empty_after_call),
    )
