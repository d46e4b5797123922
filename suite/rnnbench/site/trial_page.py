"""A page, a record and a series for each trial, and the list of all trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rnnbench.history import MEASURES, Change
from rnnbench.reports import P99_SAMPLES, program, seconds, strategy
from rnnbench.results import COMPARED_PATHS, Place, Ranking, rank
from rnnbench.site.alerts import changes_of_trial, sentence_of
from rnnbench.site.anatomy import call_parts, distribution, preparation_parts
from rnnbench.site.content import Content, Machine, Shown
from rnnbench.site.nights import FIGURES, Night, NightRow
from rnnbench.site.page import Folder
from rnnbench.site.sparkline import sparkline

Points = list[tuple[int, NightRow]]
TITLES = {"build_s": "build", "artifact_bytes": "bytes", "memory_run_peak": "run_memory", "memory_build_peak": "build_memory"}
"""The measure of the history that a figure of a night is."""
LIST_ROWS = 400
"""Rows of the list of trials in one data file."""
UNITS = {"build_s": "s", "artifact_bytes": "B", "memory_run_peak": "B", "memory_build_peak": "B"}


def write_trials(content: Content, folder: Folder) -> None:
    """`trials.html`, and for each trial a page, its record and its series."""
    series = _series(content.nights)
    listed: list[dict[str, Any]] = []
    for machine in content.machines:
        places = _places(machine)
        for trial, shown in machine.shown.items():
            points = series.get((machine.fingerprint, trial), [])
            changes = changes_of_trial(content, machine.fingerprint, trial)
            _write_trial(content, folder, machine, shown, points, changes, places.get(trial))
            listed.append(_listed(machine, shown, points))
    shards = [listed[start : start + LIST_ROWS] for start in range(0, len(listed), LIST_ROWS)]
    for number, shard in enumerate(shards):
        folder.data(f"list-{number}", shard)
    folder.page("trials.html", "trials.html", content=content, shards=len(shards), listed=listed)


def _series(nights: Sequence[Night]) -> dict[tuple[str, str], Points]:
    """The nights of each trial by machine and trial, oldest first."""
    found: dict[tuple[str, str], Points] = {}
    for number, night in enumerate(nights):
        for row in night.rows:
            found.setdefault((night.entry.machine, row.trial), []).append((number, row))
    return found


def _places(machine: Machine) -> dict[str, tuple[Ranking, Place]]:
    return {
        entry.record.trial: (ranking, place)
        for shown in machine.workloads.values()
        for ranking in rank(each.entry for each in shown)
        for place in ranking.places
        for entry in (place.entry, *place.sharing)
    }


def _write_trial(
    content: Content,
    folder: Folder,
    machine: Machine,
    shown: Shown,
    points: Points,
    changes: Sequence[Change],
    place: tuple[Ranking, Place] | None,
) -> None:
    record = shown.entry.record
    measured = shown.entry.measured or record
    folder.write(f"records/{shown.page}.json", record.model_dump_json(indent=1, exclude_none=True).encode("utf-8", "backslashreplace"))
    timed = [(number, row) for number, row in points if any(row.latencies)]
    if len(timed) > 1:
        folder.data(f"series-{shown.page}", _drawn(timed, changes, content.nights))
    latencies = [(path, latency) for path in COMPARED_PATHS if (latency := measured.latency(path))]
    folder.page(
        f"trials/{shown.page}.html",
        "trial.html",
        content=content,
        machine=machine,
        shown=shown,
        record=record,
        measured=measured,
        shared_page=content.pages.get((machine.fingerprint, record.same_as or ""), ""),
        place=place,
        nights=len(timed),
        changes=[(change, sentence_of(change)) for change in changes],
        parts=call_parts(measured),
        preparation=preparation_parts(measured),
        distributions=[drawn for path, latency in latencies if (drawn := distribution(path, latency))],
        p99_samples=P99_SAMPLES,
        program=program(shown.entry),
        strategy=strategy(shown.entry),
        files={"record": f"records/{shown.page}.json", "series": f"series-{shown.page}"},
    )


def _drawn(points: Points, changes: Sequence[Change], nights: Sequence[Night]) -> dict[str, Any]:
    """The series of the page's chart: by measure its unit, values and intervals; times as days."""
    numbers = [number for number, _ in points]
    at = {nights[number].entry.run: place for place, number in enumerate(numbers)}
    measures: list[dict[str, Any]] = []
    for index, path in enumerate(COMPARED_PATHS):
        found = [row.latencies[index] for _, row in points]
        measures.append(
            {
                "name": path,
                "title": MEASURES[path].title,
                "unit": "s",
                "value": [f.median if f else None for f in found],
                "low": [f.low if f else None for f in found],
                "high": [f.high if f else None for f in found],
            }
        )
    for index, figure in enumerate(FIGURES):
        values = [row.figures[index] for _, row in points]
        measures.append({"name": TITLES[figure], "title": MEASURES[TITLES[figure]].title, "unit": UNITS[figure], "value": values})
    versions = list(dict.fromkeys(row.versions for _, row in points))
    return {
        "started": [nights[number].entry.started for number in numbers],
        "run": [nights[number].entry.run for number in numbers],
        "versions": versions,
        "version": [versions.index(row.versions) for _, row in points],
        "measures": [measure for measure in measures if any(value is not None for value in measure["value"])],
        "changes": [
            {
                "at": at[change.run],
                "measure": change.measure,
                "level": change.level,
                "cause": change.cause,
                "text": f"{change.level}: {sentence_of(change)}",
            }
            for change in changes
            if change.run in at
        ],
    }


def _listed(machine: Machine, shown: Shown, points: Points) -> dict[str, Any]:
    entry = shown.entry
    bound = entry.bound
    interval = bound.interval if bound and bound.interval else None
    return {
        "page": shown.page,
        "trial": shown.trial,
        "machine": machine.fingerprint,
        "case": entry.record.case,
        "backend": entry.record.backend,
        "program": program(entry),
        "strategy": strategy(entry),
        "hidden": entry.workload.hidden,
        "batch": entry.record.params.batch,
        "chunk": entry.chunk,
        "outcome": entry.record.outcome,
        "bound": [bound.median, *(interval or (None, None))] if bound else None,
        "spark": sparkline([row.latencies[0].median if row.latencies[0] else None for _, row in points]),
    }
