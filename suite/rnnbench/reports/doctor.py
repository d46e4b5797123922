"""`rnnbench doctor`: the machine's fitness as sentences, and fidelity as a table with verdicts."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from rnnbench.measure import Fitness
from rnnbench.reports.escape import show
from rnnbench.reports.units import nbytes, seconds


def print_fitness(fitness: Fitness, console: Console) -> None:
    for line in _facts(fitness):
        show(console, line)
    for warning in fitness.warnings:
        show(console, ("warning:", "yellow"), f" {warning}")
    if not fitness.warnings:
        show(console, "This machine is fit for benchmarking.")


def _facts(fitness: Fitness) -> Iterator[str]:
    facts = fitness.facts
    caches = ", ".join(f"{name} {nbytes(size)}" for name, size in facts.get("caches", {}).items())
    yield f"processor    {facts.get('cpu', 'unknown')}; {facts['usable_cores']} of {facts['cores']} cores usable"
    yield f"caches       {caches or 'the kernel does not tell'}"
    yield f"governor     {facts.get('governor', 'the kernel does not tell, as in most virtual machines')}"
    yield f"memory       {nbytes(facts['available'])} free of {nbytes(facts['memory'])}"
    steal = facts["steal"]
    stolen = "cannot be read" if steal is None else f"{steal:.1%}"
    yield f"load         {facts['load']:.2f} over a minute; time that the host took: {stolen}"
    yield f"clock        {seconds(facts['clock_resolution_s'])} apart at best, {seconds(facts['clock_cost_s'])} to read"
    temperature = facts.get("temperature")
    yield f"temperature  {f'{temperature:.0f} °C' if temperature is not None else 'no sensor can be read'}"
