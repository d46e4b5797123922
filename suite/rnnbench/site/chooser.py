"""The chooser: for each workload a data file with every ranked program, in the order of its ranking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rnnbench.reports import P99_SAMPLES, program, strategy
from rnnbench.results import Latency, Place, Ranking, Workload, rank
from rnnbench.site.content import Content, Machine, Shown, workload_name
from rnnbench.site.page import Folder


def write_chooser(content: Content, folder: Folder) -> None:
    """`chooser.html`, and a data file for each workload, which the page loads when it is chosen."""
    workloads = []
    for machine in content.machines:
        for workload, shown in machine.workloads.items():
            programs = list(_programs(machine, shown))
            if programs:
                name = f"chooser-{workload_name(machine, workload)}"
                workloads.append(_described(machine, workload, name, folder.data(name, programs)))
    folder.page("chooser.html", "chooser.html", content=content, workloads=workloads)


def _described(machine: Machine, workload: Workload, name: str, file: str) -> dict[str, Any]:
    family = workload.family
    return {
        "name": name,
        "file": file,
        "cell": family.computed,
        "hidden": workload.hidden,
        "batch": family.batch,
        "text": f"{workload}; {machine.name}",
    }


def _programs(machine: Machine, shown: list[Shown]) -> Iterator[dict[str, Any]]:
    for ranking in rank(shown_trial.entry for shown_trial in shown):
        for place in ranking.places:
            for entry in (place.entry, *place.sharing):
                yield _program(machine.shown[entry.record.trial], ranking, place)


def _program(shown: Shown, ranking: Ranking, place: Place) -> dict[str, Any]:
    entry = shown.entry
    measured = entry.measured
    assert measured is not None, "ranked entries were measured"
    return {
        "page": shown.page,
        "origin": ranking.origin,
        "program": program(entry),
        "strategy": strategy(entry),
        "state": entry.record.params.state,
        "chunk": entry.chunk,
        "streams": entry.streams,
        "place": str(place),
        "bound": _latency(entry.bound),
        "public": _latency(entry.public),
        "build": measured.timing.build_s,
        "memory": measured.memory.run_peak,
        "command": shown.command,
    }


def _latency(latency: Latency | None) -> list[float | None] | None:
    """Median, its interval, and p99, in seconds per call."""
    if latency is None:
        return None
    low, high = latency.interval or (None, None)
    return [latency.median, low, high, latency.p99 if latency.count >= P99_SAMPLES else None]
