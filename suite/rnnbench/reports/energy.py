"""The table of energy: joules of a time step, by program and chunk."""

from __future__ import annotations

from collections.abc import Sequence

from rnnbench.reports import units
from rnnbench.reports.tables import Table, by_program
from rnnbench.results import Entry

PER_STEP, POWER = "energy_per_step", "energy_power"
DISTURBED = "disturbed"


def energy_table(entries: Sequence[Entry]) -> Table:
    """A row for each program of one workload whose case asks for energy and whose device has a counter."""
    measured = [entry for entry in entries if entry.ranked and not entry.shares and PER_STEP in entry.record.metrics]
    chunks = sorted({entry.chunk for entry in measured})
    rows = [
        (*key, *(next((energy_cell(e) for e in group if e.chunk == chunk), units.MISSING) for chunk in chunks))
        for key, group in by_program(measured).items()
    ]
    sources = ", ".join(dict.fromkeys(entry.record.energy.source for entry in measured if entry.record.energy))
    return Table(
        "Energy per step",
        ("program", "strategy", *(f"chunk {chunk}" for chunk in chunks)),
        tuple(rows),
        text=2,
        note=f"Of the whole device ({sources}) while bound calls ran for a second or more, what it uses at rest "
        f"included; in brackets its power. A step advances all streams of the batch. {DISTURBED.capitalize()}: other "
        "processes used the core or the device meanwhile, and the energy is theirs too.",
    )


def energy_cell(entry: Entry) -> str:
    """Joules of a step and the power in brackets, of a trial whose energy was measured."""
    metrics, reading = entry.record.metrics, entry.record.energy
    power = f" ({units.digits(metrics[POWER])} W)" if POWER in metrics else ""
    disturbed = f" {DISTURBED}" if reading and reading.disturbed_blocks else ""
    return f"{units.joules(metrics[PER_STEP])}{power}{disturbed}"
