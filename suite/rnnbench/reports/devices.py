"""The same model on several devices: a row by program and device, and where one device overtakes the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rnnbench.devices import Device
from rnnbench.reports import units
from rnnbench.reports.tables import Table, program, strategy
from rnnbench.results import (
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
)
from rnnbench.spelling import count

CROSSING_NOTE = (
    "Which device has the shorter bound latency. Level: the 95 % intervals overlap. Devices are compared only where "
    f"both were measured. {FASTEST.capitalize()}: the fastest program of each device, hand-written kernels left out."
)


def device_names(view: View) -> list[str]:
    """The devices other than the processor that the trials ran on, in words."""
    found = {entry.record.device: entry.record.params.device for entry in view.entries if entry.record.device}
    return [device_in_words(device) for device, kind in found.items() if kind != "cpu"]


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
    groups = on_several_devices(view.entries)
    along_batch = batch_crossings(groups)
    for subject, entries in groups.items():
        tables = [_latencies(entries), crossing_table("Faster device by chunk", chunk_crossings(entries))]
        tables += _batch_tables(along_batch, subject)
        yield str(subject), tables


def crossing_tables(view: View) -> Iterator[tuple[str, list[Table]]]:
    """As `device_tables`, without the latencies."""
    for title, tables in device_tables(view):
        yield title, tables[1:]


def _batch_tables(along_batch: dict[OnDevices, dict[int, list[Crossing]]], subject: OnDevices) -> list[Table]:
    return [
        crossing_table(f"Faster device by batch, {count(chunk, 'step')} per call", crossings, "batch")
        for chunk, crossings in along_batch.get(subject, {}).items()
    ]


def _latencies(entries: Sequence[Entry]) -> Table:
    """Bound latency per step, by program and device."""
    chunks = sorted({entry.chunk for entry in entries})
    rows: dict[tuple[str, str, str], dict[int, Entry]] = {}
    for entry in sorted(entries, key=lambda e: (e.target, e.strategy, device_label(e))):
        rows.setdefault((program(entry), strategy(entry), device_label(entry)), {})[entry.chunk] = entry
    return Table(
        "Bound latency per step, by device",
        ("program", "strategy", "device", *(f"chunk {chunk}" for chunk in chunks)),
        tuple((*key, *(_per_step(of_row.get(chunk)) for chunk in chunks)) for key, of_row in rows.items()),
        text=3,
    )


def _per_step(entry: Entry | None) -> str:
    return units.seconds(entry.bound.per_step) if entry and entry.bound else units.MISSING


def crossing_table(title: str, crossings: Sequence[Crossing], axis: str = "chunk") -> Table:
    rows = [
        (one.program, " and ".join(one.devices), "; ".join(_spell(spell, axis) for spell in one.spells))
        for one in crossings
    ]
    return Table(title, ("program", "devices", "faster"), tuple(rows), text=3, note=CROSSING_NOTE)


def _spell(spell: Spell, axis: str) -> str:
    at = f"{spell.first}" if spell.first == spell.last else f"{spell.first} to {spell.last}"
    return f"{spell.device or 'level'} at {axis} {at}"
