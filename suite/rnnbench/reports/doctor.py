"""`rnnbench doctor`: the machine's fitness as sentences, and fidelity as a table with verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from rich.console import Console
from rich.markup import escape

from rnnbench.reports.units import nbytes, seconds

_COLOURS = {"holds": "green", "too far": "red", "tool slower": "yellow"}
_ROW = "{:34} {:>5} {:>9} {:>9} {:>22} {:>12} {:>10} {:>9} "
"""Rows are printed as they come: a measurement of all takes minutes."""


class Fitness(Protocol):
    """Facts of the machine, and warnings of what makes it unfit."""

    @property
    def facts(self) -> Mapping[str, Any]: ...
    @property
    def warnings(self) -> Sequence[str]: ...


class Fidelity(Protocol):
    """A bound call against the runtime's own tool on the same artifact, in seconds per call."""

    @property
    def target(self) -> str: ...
    @property
    def strategy(self) -> str: ...
    @property
    def chunk(self) -> int: ...
    @property
    def tool(self) -> str: ...
    @property
    def bound(self) -> float: ...
    @property
    def own(self) -> float: ...
    @property
    def empty(self) -> float: ...
    @property
    def swept(self) -> float: ...
    @property
    def ratio(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float] | None: ...
    @property
    def difference(self) -> float: ...
    @property
    def note(self) -> str: ...
    @property
    def untimed(self) -> str: ...
    @property
    def verdict(self) -> str | None: ...


def print_fitness(fitness: Fitness, console: Console) -> None:
    for line in _facts(fitness):
        console.print(escape(line), highlight=False)
    for warning in fitness.warnings:
        console.print(f"[yellow]warning:[/yellow] {escape(warning)}", highlight=False)
    if not fitness.warnings:
        console.print("This machine is fit for benchmarking.")


def _facts(fitness: Fitness) -> Iterator[str]:
    facts = fitness.facts
    caches = ", ".join(f"{name} {nbytes(size)}" for name, size in facts.get("caches", {}).items())
    yield f"processor    {facts.get('cpu', 'unknown')}; {facts['usable_cores']} of {facts['cores']} cores usable"
    yield f"caches       {caches or 'the kernel does not tell'}"
    yield f"governor     {facts.get('governor', 'the kernel does not tell, as in most virtual machines')}"
    yield f"memory       {nbytes(facts['available'])} free of {nbytes(facts['memory'])}"
    steal = facts["steal"]
    stolen = "cannot be read" if steal is None else f"{steal:.1%}"
    yield f"load         {facts['load']:.2f} over a minute; time that the host took: {stolen}"
    yield f"clock        {seconds(facts['clock_resolution_s'])} apart at best, {seconds(facts['clock_cost_s'])} to read"
    temperature = facts.get("temperature")
    yield f"temperature  {f'{temperature:.0f} °C' if temperature is not None else 'no sensor can be read'}"


def print_fidelity(measured: Iterable[Fidelity], console: Console, most_ratio: float, most_share: float) -> bool:
    """A row for each program as it is measured, and what the verdicts mean; whether none is too far from its tool.

    `most_ratio` and `most_share` are the limits of the verdict `holds`, for its explanation.
    """
    console.print("bound against each runtime's own tool: medians of a call's time")
    head = _ROW.format("program", "chunk", "bound", "own tool", "ratio", "difference", "empty call", "swept")
    console.print(head, "verdict", soft_wrap=True)
    notes: dict[str, list[str]] = {}
    holds = True
    for figure in measured:
        holds = holds and figure.verdict != "too far"
        if figure.verdict is None:
            notes.setdefault(f"not timed: {figure.untimed}", []).append(f"{figure.target} at chunk {figure.chunk}")
            continue
        if figure.note:
            notes.setdefault(figure.note, []).append(f"{figure.target} at chunk {figure.chunk}")
        row = _ROW.format(
            f"{figure.target} {figure.strategy}",
            figure.chunk,
            seconds(figure.bound),
            seconds(figure.own),
            f"{figure.ratio:.3f}{_interval(figure)}",
            f"{figure.difference * 1e6:+.2f} µs",
            seconds(figure.empty),
            seconds(figure.swept),
        )
        verdict = f"[{_COLOURS[figure.verdict]}]{figure.verdict}[/]"
        console.print(escape(row), verdict, f"({figure.tool})", highlight=False, soft_wrap=True)
    console.print(
        f"Holds: for calls of two steps or more, a median ratio of at most {most_ratio}; for calls of one step, a "
        f"difference of at most an empty call plus {most_share:.0%} of the tool's time. Swept: an empty call after "
        "each call of the program, whose data has then replaced the interpreter's in the cache. It may explain a "
        "difference, and no verdict uses it. Tool slower: the tool does more than run the artifact, so nothing is "
        "shown. Intervals are of the ratio, between processes."
    )
    for note, programs in notes.items():
        console.print(f"[dim]{escape(', '.join(programs))}: {escape(note)}[/dim]", highlight=False)
    return holds


def _interval(figure: Fidelity) -> str:
    return "" if figure.interval is None else " ({:.3f} to {:.3f})".format(*figure.interval)
