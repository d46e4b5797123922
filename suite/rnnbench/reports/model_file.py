"""`rnnbench inspect`: a model file's operators, arrays and states, with a legend and what its user must answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from rnnbench.model_files import LARGE, FileDescription, Question, StateCheck
from rnnbench.reports.escape import grid, line, print_grid, show
from rnnbench.reports.units import MISSING, nbytes
from rnnbench.spelling import count

_ROLES = {
    "input": "given anew in each call",
    "output": "what a call gives",
    "state_in": "the state before a call",
    "state_out": "the state after a call: the next call's state_in",
    "constant": "the same value in every call",
}
_FOUND = {
    "traced": "followed through the graph",
    "tree": "at the same place of an argument and a result that are one tree; check it",
    "shape": "no other input and output have this shape and type; check it",
    "name": "the names are alike; check it",
    "given": "as given",
}
_OPERATORS = 12
"""Kinds of operators that are shown, the most frequent first."""


def print_description(description: FileDescription, questions: Sequence[Question], console: Console) -> None:
    """Facts, a table of arrays with its legend, notes, and the questions that are open."""
    for fact in _facts(description):
        show(console, fact)
    print_grid(console, _arrays(description))
    for text in _legend(description):
        show(console, text, style="dim")
    for note in description.notes:
        show(console, ("note:", "yellow"), f" {note}")
    if questions:
        show(console, "The file does not say:")
        for question in questions:
            show(console, f"  {question.array}: {question.text}  ({question.option})")
        if any(question.key == "state" for question in questions):
            show(console, "OUTPUT: the name of its next value. --set state={}: no input is a state.", style="dim")


def print_state_check(check: StateCheck | None, unchecked: str, console: Console) -> None:
    """What calls of the file showed; `unchecked` says why there were none."""
    if check is None:
        show(console, ("not checked:", "yellow"), f" {unchecked}")
        return
    if check.one_row:
        show(console, ("one row:", "yellow"), f" calls of several rows fail, so its batch is 1: {check.one_row}")
    for steps, why in check.failing_steps.items():
        show(console, ("not so many steps:", "yellow"), f" a call of {count(steps, 'step')} fails: {why}")
    for name in check.moved:
        if name in check.lost:
            show(console, ("state lost:", "bold red"), f" {name}: {check.why_lost(name)}")
    kept = [name for name in check.moved if name not in check.lost]
    if kept:
        show(console, ("checked:", "green"), f" {', '.join(kept)}: moves from call to call, and outputs depend on it")
    if check.halves is None:
        show(console, "not checked:", f" two halves against the whole: {check.not_compared}")
    else:
        verdict = ("checked:", "green") if check.is_stream else ("not a stream:", "bold red")
        word = "equal" if check.is_stream else "differ from"
        inputs = f" with inputs {LARGE:g} times as large" if check.is_stream_of_small else ""
        largest = check.large_halves if check.is_stream_of_small else check.halves
        show(console, verdict, f" two halves {word} the whole{inputs}; largest difference in float64 {largest:.1e}")


def _facts(description: FileDescription) -> Iterator[str]:
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in description.opsets.items())
    yield f"file       {description.file}"
    operators = f", operators of {opsets}" if opsets else ""
    yield f"format     {description.format}{operators}; made by {description.producer or 'an unnamed tool'}"
    shown = list(description.operators.items())[:_OPERATORS]
    left = len(description.operators) - len(shown)
    more = f", and {count(left, 'other kind')}" if left else ""
    yield f"operators  {description.nodes}: {', '.join(f'{name} {number}' for name, number in shown)}{more}"
    beside = f", some in {', '.join(description.external)}" if description.external else ""
    yield f"weights    {nbytes(description.weight_bytes)}{beside}"


def _arrays(description: FileDescription) -> Table:
    table = grid("")
    for name in ("array", "role", "shape", "type", "time", "batch", "state of the next call"):
        table.add_column(name, overflow="fold")
    after = {pair.before: f"{pair.after} ({pair.found})" for pair in description.state}
    for array in description.arrays:
        axes = (_axis(array.time), _axis(array.batch))
        shape = "not given" if array.shape is None else array.shown_shape
        table.add_row(*map(line, (array.name, array.role, shape, array.dtype, *axes, after.get(array.name, ""))))
    return table


def _legend(description: FileDescription) -> Iterator[str]:
    roles = dict.fromkeys(array.role for array in description.arrays)
    yield "Roles: " + ". ".join(f"{role}: {_ROLES[role]}" for role in roles) + "."
    yield (
        "Shape: a name is a size that the caller chooses, ? one without a name. "
        f"Time, batch: the axis; {MISSING}: none, or it cannot be told."
    )
    if found := dict.fromkeys(pair.found for pair in description.state):
        yield "State found: " + ". ".join(f"{how}: {_FOUND[how]}" for how in found) + "."


def _axis(axis: int | None) -> str:
    return MISSING if axis is None else str(axis)
