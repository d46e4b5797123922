"""`rnnbench doctor`: the machine's fitness and its devices, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from rnnbench.devices import ExaminedDevice
from rnnbench.measure import DeviceConditions, Fitness
from rnnbench.reports.escape import show
from rnnbench.reports.units import nbytes, seconds
from rnnbench.spelling import percents


def print_fitness(fitness: Fitness, devices: Sequence[ExaminedDevice], console: Console) -> None:
    for line in (*_facts(fitness), *map(_device, devices)):
        show(console, line)
    warnings = [*fitness.warnings, *(warning for device in devices for warning in device.warnings)]
    for warning in warnings:
        show(console, ("warning:", "yellow"), f" {warning}")
    if not warnings:
        show(console, "This machine is fit for benchmarking.")


def _facts(fitness: Fitness) -> Iterator[str]:
    facts = fitness.facts
    caches = ", ".join(f"{name} {nbytes(size)}" for name, size in facts.get("caches", {}).items())
    yield f"processor    {facts.get('cpu', 'unknown')}; {facts['usable_cores']} of {facts['cores']} cores usable"
    yield f"caches       {caches or 'the kernel does not tell'}"
    yield f"governor     {facts.get('governor', 'the kernel does not tell, as in most virtual machines')}"
    yield f"memory       {nbytes(facts['available'])} free of {nbytes(facts['memory'])}"
    steal = facts["steal"]
    stolen = "cannot be read" if steal is None else percents(steal)
    yield f"load         {facts['load']:.2f} over a minute; time that the host took: {stolen}"
    scatter = ", ".join(f"{work} ±{percents(share)}" for work, share in (facts["scatter"] or {}).items())
    yield f"scatter      {scatter or 'not measured'}"
    yield f"clock        {seconds(facts['clock_resolution_s'])} apart at best, {seconds(facts['clock_cost_s'])} to read"
    temperature = facts.get("temperature")
    yield f"temperature  {f'{temperature:.0f} °C' if temperature is not None else 'no sensor can be read'}"


def _device(examined: ExaminedDevice) -> str:
    """One line: which it is, what it does now, and whether its energy can be read."""
    device, name = examined.device, f"{examined.kind:<12}"
    if device is None:
        return f"{name} none: {examined.missing}"
    parts = [", ".join(filter(None, (device.name, device.driver, device.capability)))]
    parts += ["a software device: the processor emulates it"] if device.software else []
    parts += list(_now(examined.conditions)) if examined.conditions else []
    parts.append(f"energy by {examined.energy}" if examined.energy else f"no energy: {examined.no_energy}")
    return f"{name} {'; '.join(parts)}"


def _now(conditions: DeviceConditions) -> Iterator[str]:
    if conditions.clock is not None:
        yield f"clock {conditions.clock / 1e6:,.0f} MHz"
    if conditions.temperature is not None:
        yield f"{conditions.temperature:.0f} °C"
    if conditions.power is not None:
        yield f"{conditions.power:.0f} W"
