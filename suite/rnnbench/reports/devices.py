"""The same model on several devices: a row by program and device, and where one device overtakes the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rnnbench.devices import Device
from rnnbench.reports import units
from rnnbench.reports.energy import PER_STEP, energy_cell
from rnnbench.reports.expected_failures import outcome_of
from rnnbench.reports.tables import NOT_BELIEVED, Table, program, strategy
from rnnbench.results import (
    FAILURES,
    FASTEST,
    Crossing,
    Entry,
    OnDevices,
    Spell,
    View,
    batch_crossings,
    chunk_crossings,
    device_label,
    on_several_devices,
    subject_of,
)
from rnnbench.spelling import count

CROSSING_NOTE = (
    "Which device has the shorter bound latency. Level: the verdict is SAME. Undecided: there is too much noise, or "
    "a single process. Devices are compared only where both were measured. "
    f"{FASTEST.capitalize()}: the fastest program of each device, hand-written kernels left out."
)
ENERGY_NOTE = (
    "Of the whole device while bound calls ran, what it uses at rest included; in brackets its power. The other device "
    "uses energy meanwhile, too: the processor calls a GPU and waits for it."
)


def device_names(view: View) -> list[str]:
    """The devices other than the processor that the trials ran on, in words."""
    kinds = {entry.record.device: entry.record.params.device for entry in view.entries if entry.record.device}
    return [device_in_words(device) for device, kind in kinds.items() if kind != "cpu"]


def devices_sentence(view: View) -> str:
    """The devices that the trials ran on; empty where that was the processor alone."""
    names = ", ".join(device_names(view))
    also = any(entry.measured and entry.record.params.device == "cpu" for entry in view.entries)
    return f"On {'the processor, and on ' if also else ''}{names}." if names else ""


def device_in_words(device: Device) -> str:
    """`NVIDIA H100 80GB HBM3 (sm_90, 79.6 GiB; NVIDIA 580.159.04)`."""
    what = (device.capability, units.nbytes(device.memory) if device.memory else "")
    facts = "; ".join(filter(None, (", ".join(filter(None, what)), device.driver)))
    return f"{device.name} ({facts})" if facts else device.name


def device_tables(view: View) -> Iterator[tuple[str, list[Table]]]:
    """Title and tables of each model, batch and dtype that ran on two kinds of devices."""
    failed = [entry for entry in view.entries if not entry.shares and _failed(entry)]
    for subject, entries, crossings in _crossings(view):
        with_failed = [*entries, *(entry for entry in failed if subject_of(entry) == subject)]
        latencies = _by_device("Bound latency per step, by device", with_failed, _per_step)
        yield str(subject), [latencies, *crossings, _energies(entries)]


def crossing_tables(view: View) -> Iterator[tuple[str, list[Table]]]:
    """As `device_tables`: only the tables of the faster device."""
    for subject, _, crossings in _crossings(view):
        yield str(subject), crossings


def device_answers(view: View) -> Iterator[tuple[str, str]]:
    """Title and sentence of each model, batch and dtype that ran on two kinds of devices: the faster device."""
    for subject, entries in on_several_devices(view.entries).items():
        for crossing in chunk_crossings(entries):
            if crossing.program == FASTEST:
                yield str(subject), f"The faster of {' and '.join(crossing.devices)}: {_spells(crossing, 'chunk')}."


def _crossings(view: View) -> Iterator[tuple[OnDevices, list[Entry], list[Table]]]:
    groups = on_several_devices(view.entries)
    along_batch = batch_crossings(groups)
    for subject, entries in groups.items():
        tables = [crossing_table("Faster device by chunk", chunk_crossings(entries))]
        yield subject, entries, tables + _batch_tables(along_batch, subject)


def _failed(entry: Entry) -> bool:
    """Whether it was tried, and has no latency that counts."""
    tried = entry.record.outcome in FAILURES or entry.record.outcome == "nonconforming" or bool(entry.not_believed)
    return tried and not entry.on_software_device


def _batch_tables(along_batch: dict[OnDevices, dict[int, list[Crossing]]], subject: OnDevices) -> list[Table]:
    return [
        crossing_table(f"Faster device by batch, {count(chunk, 'step')} per call", crossings, "batch")
        for chunk, crossings in along_batch.get(subject, {}).items()
    ]


def _energies(entries: Sequence[Entry]) -> Table:
    """No rows, unless energy was measured on two kinds of devices."""
    measured = [entry for entry in entries if PER_STEP in entry.record.metrics]
    several = len({entry.record.params.device for entry in measured}) > 1
    return _by_device("Energy per step, by device", measured if several else [], energy_cell, ENERGY_NOTE)


def _by_device(title: str, entries: Sequence[Entry], cell: Callable[[Entry], str], note: str = "") -> Table:
    """A row by program and device, with a cell for each chunk."""
    chunks = sorted({entry.chunk for entry in entries})
    rows: dict[tuple[str, str, str], dict[int, str]] = {}
    for entry in sorted(entries, key=lambda e: (e.target, e.strategy, device_label(e))):
        rows.setdefault((program(entry), strategy(entry), device_label(entry)), {})[entry.chunk] = cell(entry)
    return Table(
        title,
        ("program", "strategy", "device", *(f"chunk {chunk}" for chunk in chunks)),
        tuple((*key, *(of_row.get(chunk, units.MISSING) for chunk in chunks)) for key, of_row in rows.items()),
        text=3,
        note=note,
    )


def _per_step(entry: Entry) -> str:
    if _failed(entry):
        return NOT_BELIEVED if entry.not_believed else outcome_of(entry.record)
    return units.seconds(entry.bound.per_step) if entry.bound else units.MISSING


def crossing_table(title: str, crossings: Sequence[Crossing], axis: str = "chunk") -> Table:
    rows = [(crossing.program, " and ".join(crossing.devices), _spells(crossing, axis)) for crossing in crossings]
    return Table(title, ("program", "devices", "faster"), tuple(rows), text=3, note=CROSSING_NOTE)


def _spells(crossing: Crossing, axis: str) -> str:
    return "; ".join(_spell(spell, axis) for spell in crossing.spells)


def _spell(spell: Spell, axis: str) -> str:
    at = f"{spell.first}" if spell.first == spell.last else f"{spell.first} to {spell.last}"
    return f"{spell.faster} at {axis} {at}"
