"""What the devices of trials did while they were sampled: clock, throttling, temperature, power, other processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rnnbench.devices import KINDS, DeviceKind
from rnnbench.measure import METRICS
from rnnbench.outside_text import LOG_ENDS
from rnnbench.reports import units
from rnnbench.reports.devices import device_in_words
from rnnbench.reports.tables import Table, program, strategy
from rnnbench.results import DeviceState, Entry, Record, View
from rnnbench.spelling import count, listed

NAMED = 3
"""Processes or programs that a warning names."""
NO_KIND = DeviceKind("", "A kind of device that this version does not know.")


def device_state_table(entries: Sequence[Entry]) -> Table:
    """A row for each trial of one workload whose device's driver has readings."""
    rows = [
        (program(entry), strategy(entry), entry.chunk_label, *_state(state, _blocks(entry)))
        for entry in entries
        if not entry.shares and (state := entry.record.device_state) is not None
    ]
    return Table(
        "Device while it was sampled",
        ("program", "strategy", "chunk", "clock", "temperature", "power", "clock moved", "held down", "shared"),
        tuple(rows),
        text=2,
        note="Clock, temperature and power: the least and the greatest before and after blocks. The last three columns "
        "count blocks: those whose clock changed by more than 2 %, those whose clock the driver held down, and those "
        "during which another process was on the device.",
    )


def device_facts(record: Record) -> list[tuple[str, str]]:
    """Names and texts of what a record says of its device; empty for the processor."""
    if record.device is None or record.params.device == "cpu":
        return []
    state, memory = record.device_state or DeviceState(), record.memory
    on_device = (
        ("of the process, less an empty session", memory.device),
        ("of the program, by the runtime's own count", memory.allocated),
        ("of it at most", memory.allocated_peak),
    )
    facts = {
        "device": device_in_words(record.device),
        "clock": _clock(state),
        "temperature": _temperature(state),
        "power": _power(state),
        "memory": "; ".join(f"{units.nbytes(nbytes)} {whose}" for whose, nbytes in on_device if nbytes is not None),
        **{
            f"by its own events, {metric.title}": units.seconds(record.metrics.get(metric.name))
            for metric in METRICS.values()
            if metric.of_device
        },
    }
    return [(name, text) for name, text in facts.items() if text not in ("", units.MISSING)]


def unmeasured_warnings(view: View) -> list[str]:
    """What could be measured on such a device and was not measured here, a sentence each.

    Programs are named unless it is so for all. A process's log is left out: the table of Findings has it.
    """
    programs: dict[tuple[str, str], dict[str, None]] = {}
    for entry in view.entries:
        for figure, reason in entry.record.unmeasured.items():
            if figure not in KINDS.get(entry.record.params.device, NO_KIND).unmeasured:
                key = figure.replace("_", " "), reason.partition(LOG_ENDS)[0]
                programs.setdefault(key, {})[f"{entry.target} {entry.strategy}"] = None
    every = {f"{entry.target} {entry.strategy}" for entry in view.entries}
    return [
        f"{figure}{'' if set(names) == every else f' of {listed([*names], NAMED)}'} was not measured: {reason}"
        for (figure, reason), names in programs.items()
    ]


def device_warnings(view: View) -> list[str]:
    """What disturbed a device while it was sampled, a sentence each."""
    states_by_device = [
        (entry.record.params.device, state)
        for entry in view.entries
        if entry.ranked and not entry.shares and (state := entry.record.device_state) is not None
    ]
    warnings = []
    for device in dict.fromkeys(device for device, _ in states_by_device):
        states = [state for name, state in states_by_device if name == device]
        throttled = dict.fromkeys(reason for state in states for reason in state.throttled)
        others = dict.fromkeys(other for state in states for other in state.others)
        if throttled:
            warnings.append(f"the clock of the {device} device was held down while trials ran: {', '.join(throttled)}")
        if moved := sum(state.moved_blocks for state in states):
            warnings.append(f"the clock of the {device} device changed during {count(moved, 'block')}")
        if others:
            warnings.append(f"other processes were on the {device} device: {listed([*others], NAMED)}")
    return warnings


def _blocks(entry: Entry) -> int:
    return sum(latency.sampling.blocks for latency in entry.record.timing.latency.values())


def _state(state: DeviceState, blocks: int) -> tuple[str, ...]:
    return (
        _clock(state),
        _temperature(state),
        _power(state),
        *(f"{marked} of {blocks}" for marked in (state.moved_blocks, state.throttled_blocks, state.shared_blocks)),
    )


def _clock(state: DeviceState) -> str:
    return _range(state.clock, lambda hertz: f"{hertz / 1e6:,.0f}", "MHz")


def _temperature(state: DeviceState) -> str:
    return _range(state.temperature, lambda degrees: f"{degrees:.0f}", "°C")


def _power(state: DeviceState) -> str:
    return _range(state.power, lambda watts: f"{watts:.0f}", "W")


def _range(ends: tuple[float, float] | None, shown: Callable[[float], str], unit: str) -> str:
    if ends is None:
        return units.MISSING
    low, high = map(shown, ends)
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"
