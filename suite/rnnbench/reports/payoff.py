"""After how many calls a program has saved what its build and load took: against two references."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rnnbench.reports import units
from rnnbench.reports.tables import Table, by_program
from rnnbench.results import Entry, calls_until_paid

NOTE = (
    "The extra time to start (build and load, without imports) divided by the time that each bound call saves. "
    "'never': its calls are not faster."
)
TITLE = "Calls until a compile pays off"
QUICK_START = 5.0
"""Seconds. A library program that starts later was compiled, as those of torch's compilers are; others start sooner."""


def payoff_table(entries: Sequence[Entry]) -> Table:
    """Calls after which a faster program of one workload has saved its later start, against the first to start."""
    started = [entry for entry in entries if _started(entry)]
    first = _by_chunk(started, _start_seconds)
    return _table(
        started,
        first,
        (TITLE, "starts first", f"Compared with the program that starts first at that chunk ('starts first'). {NOTE}"),
    )


def library_payoff_table(entries: Sequence[Entry]) -> Table:
    """The same against the fastest program of origin library that starts within QUICK_START.

    Such a runtime has its kernels already: it is what compilers of programs compete with.
    """
    started = [entry for entry in entries if _started(entry)]
    libraries = [entry for entry in started if entry.origin == "library" and _start_seconds(entry) <= QUICK_START]
    fastest = _by_chunk(libraries, lambda entry: entry.ranked_bound.median)
    return _table(
        [entry for entry in started if entry.chunk in fastest],
        fastest,
        (
            f"{TITLE}, against a library",
            "fastest library",
            f"Compared with the fastest program of origin library at that chunk that starts within {QUICK_START:.0f} s "
            f"('fastest library'). {NOTE} "
            "'at once': faster, and it starts no later.",
        ),
    )


def _start_seconds(entry: Entry) -> float:
    """Seconds of build and load, without imports, of an entry that was built cold."""
    timing = entry.record.timing
    assert timing.build_s is not None, "only programs that were built cold are compared"
    return timing.build_s + (timing.load_s or 0.0)


def _started(entry: Entry) -> bool:
    return entry.ranked and not entry.shares and entry.record.timing.build_s is not None


def _by_chunk(entries: Sequence[Entry], figure: Callable[[Entry], float]) -> dict[int, Entry]:
    """The entry with the least figure of each chunk."""
    return {
        chunk: min((entry for entry in entries if entry.chunk == chunk), key=figure)
        for chunk in sorted({entry.chunk for entry in entries})
    }


def _table(entries: Sequence[Entry], references: dict[int, Entry], words: tuple[str, str, str]) -> Table:
    """Words: the title, what a reference is called in its cell, and the note."""
    title, called, note = words
    rows = []
    for key, group in by_program(entries).items():
        calls = {
            entry.chunk: called if entry is references[entry.chunk] else _calls(entry, references[entry.chunk])
            for entry in group
        }
        rows.append((*key, *(calls.get(chunk, units.MISSING) for chunk in references)))
    columns = ("program", "strategy", *(f"chunk {chunk}" for chunk in references))
    return Table(title, columns, tuple(rows), text=2, note=note)


def _calls(entry: Entry, reference: Entry) -> str:
    call, reference_call = entry.ranked_bound.median, reference.ranked_bound.median
    calls = calls_until_paid(_start_seconds(entry), call, _start_seconds(reference), reference_call)
    if calls is None:
        return "never"
    return units.number(calls) if calls else "at once"
