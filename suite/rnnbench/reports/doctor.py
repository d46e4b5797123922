"""`rnnbench doctor`: the machine's fitness as sentences, and fidelity as a table with verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.markup import escape

from rnnbench.measure.fitness import Fitness
from rnnbench.reports.units import nbytes, seconds
from rnnbench.run.fidelity import RATIO, SHARE, Fidelity

_COLOURS = {"holds": "green", "too far": "red", "tool slower": "yellow"}
_ROW = "{:34} {:>5} {:>9} {:>9} {:>22} {:>12} {:>10} {:>9} "
"""Rows are printed as they come: a measurement of all takes minutes."""


def print_fitness(fitness: Fitness, console: Console) -> None:
    for line in _facts(fitness):
        console.print(escape(line), highlight=False)
    for warning in fitness.warnings:
        console.print(f"[yellow]warning:[/yellow] {escape(warning)}", highlight=False)
    if not fitness.warnings:
        console.print("Fit to measure on.")


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


def print_fidelity(measured: Iterable[Fidelity], console: Console) -> bool:
    """A row for each figure as it is measured, and what the verdicts mean; whether none is too far from its tool's."""
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
        f"Holds: from two steps a call on, a median ratio of at most {RATIO}; at one, a difference of at most an empty "
        f"call and {SHARE:.0%} of the tool's figure. Swept is an empty call after each call of the program, which "
        "takes the cache from the interpreter: where a difference may come from, and no excuse. A tool slower by more "
        "than that does more than run the artifact, and proves nothing. Intervals are of the ratio, from process to "
        "process."
    )
    for note, programs in notes.items():
        console.print(f"[dim]{escape(', '.join(programs))}: {escape(note)}[/dim]", highlight=False)
    return holds


def _interval(figure: Fidelity) -> str:
    return "" if figure.interval is None else " ({:.3f} to {:.3f})".format(*figure.interval)
