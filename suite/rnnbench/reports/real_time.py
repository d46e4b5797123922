"""How much of the time of its signal a network takes."""

from __future__ import annotations

from collections.abc import Sequence

from rnnbench.reports import units
from rnnbench.reports.tables import Table, program, strategy
from rnnbench.results import Entry

REAL_TIME_NOTE = (
    "Signal: the length of sound, or of another signal, in one call. Real-time factor: bound latency over that length. "
    "A program below 1 keeps up with the signal. What the network leaves to its caller, such as features, is not in it."
)


def real_time_table(entries: Sequence[Entry]) -> Table:
    """The real-time factor of every ranked program of one workload whose network has a rate, the lowest first."""
    factors = [
        (factor, entry)
        for entry in entries
        if entry.ranked and entry.measured and (factor := entry.measured.real_time_factor) is not None
    ]
    rows = [
        (
            entry.chunk_label,
            program(entry),
            strategy(entry),
            units.seconds(entry.chunk * (entry.record.step_seconds or 0.0)),
            units.seconds(entry.bound.median if entry.bound else None),
            units.digits(factor),
        )
        for factor, entry in sorted(factors, key=lambda each: (each[1].chunk, each[0]))
    ]
    columns = ("chunk", "program", "strategy", "signal/call", "bound/call", "real-time factor")
    return Table("Real time", columns, tuple(rows), text=3, note=REAL_TIME_NOTE)
