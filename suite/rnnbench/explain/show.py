"""An explanation in a terminal: facts, the plan of calls, a table of the stages with its legend, and their heads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rnnbench.cases import STREAM, Trial
from rnnbench.explain.explained import ArrayFacts, Explained, StageFacts
from rnnbench.reports import grid, line, nbytes, print_grid, show
from rnnbench.spelling import count
from rnnbench.stages import Examined

MOST_FREQUENT = 3
"""Kinds of operations of a stage in the table."""
MOST_SOURCES = 8
"""Sources of a stage that are named."""
_LABEL = 10
_CARRIED = {
    "none": "nothing is carried: each call starts from zeros, so a call is a whole sequence",
    "stitched": "the caller carries it: each call takes the state that the call before returned",
    "stateful": "it stays where it is: a call takes x and returns y",
}
_REPLAYED = "a call replays, as one, operations that were recorded once before"
_LEGEND = (
    "operations: as they stand in the text of this stage; a loop's body counts once. "
    "loops: operations that are a loop, loops in Python, and loops as branches to earlier blocks."
)


def print_explained(examined: Examined, explained: Explained, folder: Path, console: Console) -> None:
    """All that was found out about a trial."""
    show(console, examined.trial.id, style="bold")
    for label, text in (*_facts(examined, explained), *_calls(examined, explained)):
        show(console, (f"{label:{_LABEL}}", "cyan"), text)
    console.print()
    print_grid(console, _table(explained.stages))
    show(console, _LEGEND, style="dim")
    for stage in explained.stages:
        if stage.sources:
            show(console, (f"{stage.name} by source: ", "cyan"), _listed(stage.sources, MOST_SOURCES))
    for stage in explained.stages:
        if stage.unreadable:
            show(console, (f"{stage.name}: ", "yellow"), f"nothing to read. {stage.unreadable}")
    show(console, f"texts of the stages: {folder}")
    width = console.width - 2
    for stage in explained.stages:
        if stage.head:
            show(console, "")
            show(console, (f"{stage.file}  ", "cyan"), stage.meaning)
            for text in stage.head:
                show(console, f"  {text if len(text) <= width else text[: width - 1] + '…'}")


def title_of(trial: Trial) -> str:
    """A trial in a few words, for a picture."""
    return f"{trial.case} on {trial.target}, {trial.strategy}, {count(trial.strategy.chunk, 'step')} a call"


def _facts(examined: Examined, explained: Explained) -> Iterator[tuple[str, str]]:
    artifact, support = explained.artifact, examined.support
    yield "versions", ", ".join(f"{name} {version}" for name, version in examined.probe.versions.items())
    yield "program", f"{artifact.origin}, {artifact.math} math, {nbytes(artifact.nbytes)}"
    yield "lowered", artifact.lowered
    if support.level == "emulated":
        yield "emulated", support.reason
    for index, function in enumerate(explained.functions):
        yield "" if index else "functions", function
    for index, note in enumerate(artifact.notes):
        yield "" if index else "notes", note


def _calls(examined: Examined, explained: Explained) -> Iterator[tuple[str, str]]:
    trial, calls = examined.trial, explained.calls
    yield "calls", _plan(trial.steps, trial.strategy.chunk, streams=trial.strategy.state != "none")
    yield "  in", _arrays(calls.passed)
    yield "  out", _arrays(calls.returned)
    if trial.strategy.launch != STREAM:
        yield "launch", _REPLAYED
    yield "state", _CARRIED[trial.strategy.state]
    if calls.state:
        yield "  arrays", _arrays(calls.state)
    if explained.state:
        yield "  where", explained.state
    yield "seen", _first_calls(explained)


def _plan(steps: int, chunk: int, *, streams: bool) -> str:
    """How many calls a workload of so many steps is."""
    whole, rest = divmod(steps, chunk)
    plan = f"{count(steps, 'step')} in {count(whole, 'call')} of {count(chunk, 'step')}"
    if rest and streams:
        plan += f" and {count(rest, 'call')} of a program of one step, which is built when it is first needed"
    return plan


def _arrays(arrays: tuple[ArrayFacts, ...]) -> str:
    return ", ".join(f"{array.name} {array.dtype} {list(array.shape)}" for array in arrays)


def _first_calls(explained: Explained) -> str:
    """What three calls of a session showed."""
    calls = explained.calls
    again = "the same bits as" if calls.repeated else "another output than"
    if not calls.state:
        return f"two calls were made with another x between them: the second of the same x gave {again} the first"
    moved = "changed" if calls.moved else "did not change"
    cleared = "all zeros" if calls.cleared else "not zero"
    return f"the first call {moved} the state; after `reset` it was {cleared}; then that call gave {again} at first"


def _table(stages: tuple[StageFacts, ...]) -> Table:
    table = grid("Stages")
    for name in ("stage", "operations", "loops", "lines", "the most frequent", "file"):
        table.add_column(name, justify="right" if name in ("operations", "loops", "lines") else "left")
    for stage in stages:
        if not stage.unreadable:
            numbers = (f"{stage.total:,}", f"{stage.loops:,}", f"{stage.lines:,}") if stage.operations else ("", "", "")
            table.add_row(*map(line, (stage.name, *numbers, _listed(stage.operations, MOST_FREQUENT), stage.file)))
    return table


def _listed(counts: tuple[tuple[str, int], ...], most: int) -> str:
    """The largest counts, each behind its name, and how many more there are."""
    listed = ", ".join(f"{name} {number:,}" for name, number in counts[:most])
    return listed if len(counts) <= most else f"{listed}, …"
