"""Tables of compiled forms: where the compiled program has another form than requested."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rnnbench.reports.tables import Table
from rnnbench.results import Entry, View, lowered_parts


def requested_form(time: str) -> str:
    """The form that a time requests: `unrolled:4` is a loop over 4 copies, `chunked:4` one over blocks of 4 steps."""
    kind, _, copies = time.partition(":")
    return f"{'looped' if kind == 'unrolled' else kind} of {copies}" if copies else time


def compiled_forms(lowered: str) -> set[str]:
    """The forms in an artifact's `lowered`, without their counts."""
    parts = [part for part in lowered_parts(lowered) or () if part.kind != "given"]
    return {f"{part.kind} of {part.copies}" if part.copies else part.kind for part in parts}


def differs(entry: Entry) -> bool:
    """Whether the compiled program has another form than requested."""
    artifact = entry.artifact
    time = entry.record.params.time
    return artifact is not None and time != "given" and compiled_forms(artifact.lowered) != {requested_form(time)}


def keeps_loop_of_one(entry: Entry) -> bool:
    """Whether a program of one step still has the loop that was requested."""
    artifact = entry.artifact
    return artifact is not None and entry.chunk == 1 and not differs(entry) and "looped" in artifact.lowered


def explanation(requested: str, lowered: str, chunks: Iterable[int]) -> str:
    """A difference in words."""
    forms = compiled_forms(lowered)
    if len(forms) > 1:
        return "in parts: " + ", ".join(sorted(forms))
    (form,) = forms or {"none"}
    kind, _, copies = requested.partition(":")
    if kind == "chunked" and form == kind and set(chunks) == {int(copies)}:
        return "the block is the whole call, and there is no loop around it"
    copies = form.removeprefix("looped of ")
    words = {
        ("looped", "unrolled"): "the loop is unrolled: one copy of the cell for each step",
        ("looped", "fused"): "the loop was recognised as the runtime's operator",
        ("unrolled", "looped"): "the copies were rolled up into a loop",
        ("unrolled", "fused"): "the copies were recognised as the runtime's operator",
        ("fused", "looped"): "the operator is a loop over the kernels of a step",
        ("fused", "unrolled"): "the operator is unrolled: one copy of the cell for each step",
        ("unrolled:k", "unrolled"): "the loop over copies is fully unrolled",
        ("unrolled:k", "looped"): "the copies in the loop were rolled up",
    }
    if requested == "looped" and form == "unrolled" and set(chunks) == {1}:
        return "the loop of one step is folded: one copy of the cell, and no loop around it"
    if copies != form:
        return f"each pass of the loop runs {copies} copies of the cell"
    return words.get(("unrolled:k" if ":" in requested else requested, form), "no part of the cell can be recognised")


def lowered_table(view: View) -> Table:
    """The requested and the compiled form, where they differ."""
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in view.entries:
        if differs(entry) and entry.artifact and not entry.shares:
            groups.setdefault((entry.target, entry.record.params.time, entry.artifact.lowered), []).append(entry)
    rows = [
        (*key, explanation(key[1], key[2], (e.chunk for e in entries)), sizes(entries), str(len(entries)))
        for key, entries in sorted(groups.items())
    ]
    return Table(
        "Compiled to another form than requested",
        ("program", "requested", "lowered to", "meaning", "where", "trials"),
        tuple(rows),
        text=5,
        note="This is no failure: a good compiler folds a loop of one step. Read the strategy of these programs as the "
        "form that they lowered to.",
    )


def kept_loops_table(view: View) -> Table:
    """Programs of one step that still have a loop."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in view.entries:
        if keeps_loop_of_one(entry) and entry.artifact and not entry.shares:
            groups.setdefault((entry.target, entry.artifact.lowered), []).append(entry)
    rows = [
        (target, lowered, strategies(entries), sizes(entries), str(len(entries)))
        for (target, lowered), entries in sorted(groups.items())
    ]
    return Table(
        "A loop around a single step",
        ("program", "lowered to", "strategies", "where", "trials"),
        tuple(rows),
        text=4,
        note="The compiler kept the requested loop, although it runs once per call. Its cost is in every call. Compare "
        "with the same program unrolled.",
    )


def strategies(entries: Sequence[Entry]) -> str:
    return ", ".join(sorted({entry.strategy for entry in entries}))


def sizes(entries: Sequence[Entry]) -> str:
    """The sizes of these trials; the batch and the device too, unless all are of one stream on the processor."""
    params = [entry.record.params for entry in entries]
    hidden = {entry.workload.hidden for entry in entries} - {0}
    batches, devices = {point.batch for point in params}, sorted({point.device for point in params})
    return "; ".join(
        [
            *([f"hidden {_listed(hidden)}"] if hidden else []),
            f"chunk {_listed({entry.chunk for entry in entries})}",
            *([f"batch {_listed(batches)}"] if batches != {1} else []),
            *([f"on {', '.join(devices)}"] if devices != ["cpu"] else []),
        ]
    )


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
