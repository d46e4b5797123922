"""A page, a record and a series for each trial, and the list of all trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rnnbench.history import MEASURES, Change
from rnnbench.measure import PATHS
from rnnbench.reports import P99_SAMPLES, digits, program, strategy
from rnnbench.results import COMPARED_PATHS, ERROR_RATE, NO_ANSWER, CheckResult, Place, Ranking, Record, rank
from rnnbench.site.anatomy import Distribution, call_parts, distribution, preparation_parts
from rnnbench.site.changes import sentence_of
from rnnbench.site.content import Content, Machine, Shown
from rnnbench.site.histogram import read_histogram
from rnnbench.site.nights import FIGURES, QUANTITIES, AllSeries, Array, Night, NightTrial, TrialSeries
from rnnbench.site.numbers import Numbered, scaled, whole
from rnnbench.site.page import Folder, as_line
from rnnbench.site.releases import release_charts, releases_file
from rnnbench.site.sparkline import sparkline

MEASURE_OF = {
    "build_s": ("build", "s"),
    "artifact_bytes": ("bytes", "B"),
    "memory_run_peak": ("run_memory", "B"),
    "memory_build_peak": ("build_memory", "B"),
}
"""The measure of the history that a figure of a night is, and its unit."""
NOT_ATTEMPTED = ("unsupported", "unavailable")
"""Outcomes that come last in the list of trials. The first screen then has figures."""
LIST_ROWS = 400
"""Rows of the list of trials in one data file."""


def write_trials(content: Content, folder: Folder) -> None:
    """`trials.html`, and for each trial a page, its record and its series."""
    nights = folder.data("dates", [night.entry.started for night in content.nights])
    all_series = AllSeries(content.nights)
    listed: list[dict[str, Any]] = []
    ranked = {id(machine): _places(machine) for machine in content.machines}
    for machine in content.all_machines:
        places = ranked.get(id(machine), {})
        for trial, shown in machine.shown.items():
            series = all_series.of(machine.fingerprint, trial)
            changes = content.changes_of.get((machine.fingerprint, trial), [])
            _write_trial(content, folder, machine, shown, series, changes, places.get(trial), nights)
            listed.append(_listed(content, machine, shown, series))
    listed.sort(key=lambda row: row["outcome"] in NOT_ATTEMPTED)
    shards = [folder.data("list", listed[start : start + LIST_ROWS]) for start in range(0, len(listed), LIST_ROWS)]
    folder.page("trials.html", "trials.html", content=content, shards=shards, listed=listed)


def _places(machine: Machine) -> dict[str, tuple[Ranking, Place]]:
    return {
        entry.record.trial: (ranking, place)
        for shown in machine.workloads.values()
        for ranking in rank(shown_trial.entry for shown_trial in shown)
        for place in ranking.places
        for entry in (place.entry, *place.sharing)
    }


def _write_trial(
    content: Content,
    folder: Folder,
    machine: Machine,
    shown: Shown,
    series: TrialSeries,
    changes: Sequence[Change],
    place: tuple[Ranking, Place] | None,
    nights: str,
) -> None:
    record = shown.entry.record
    measured = shown.entry.measured or record
    folder.write(f"records/{shown.page}.json", _as_json(shown))
    timed = series.timed
    charted = folder.data("series", _drawn(timed, changes, content.nights)) if len(timed.nights) > 1 else ""
    drawn = _drawn_latencies(measured)
    folder.page(
        f"trials/{shown.page}.html",
        "trial.html",
        content=content,
        machine=machine,
        shown=shown,
        record=record,
        measured=measured,
        shared_page=machine.shown[record.same_as].page if record.same_as in machine.shown else "",
        place=place,
        nights=len(timed.nights),
        chart={"series": charted, "nights": nights},
        changes=[(change, sentence_of(change)) for change in changes],
        parts=call_parts(measured),
        preparation=preparation_parts(measured),
        checks=_checks(record),
        tiles=[latency for latency in drawn if latency.path in COMPARED_PATHS],
        distributions=[(latency, read_histogram(shown.run, measured.trial, latency.path)) for latency in drawn],
        p99_samples=P99_SAMPLES,
        program=program(shown.entry),
        strategy=strategy(shown.entry),
        releases=release_charts(content.releases_of.get((machine.fingerprint, shown.trial), ())),
        confidence=1 - ERROR_RATE,
        files=_files(shown.page),
    )


def _files(page: str) -> dict[str, str]:
    """Files of a trial beside its page."""
    return {
        "record": f"records/{page}.json",
        "releases": f"records/{releases_file(page)}",
    }


def _drawn_latencies(measured: Record) -> list[Distribution]:
    """The distribution of every path that was sampled and can be drawn."""
    latencies = [(path, latency) for path in PATHS if (latency := measured.latency(path))]
    return [drawn for path, latency in latencies if (drawn := distribution(path, latency))]


def _as_json(shown: Shown) -> bytes:
    """The record as a line of `records.jsonl`, without fields that have their default; or its row in the history."""
    if shown.row is not None:
        return as_line(shown.row)
    record = shown.entry.record
    return as_line({"schema": record.schema_, **record.model_dump(mode="json", by_alias=True, exclude_defaults=True)})


@dataclass(frozen=True)
class Checks:
    """The conformance checks of a trial, as its page shows them."""

    bits: tuple[str, ...]
    """Passed, and compare bits."""
    unanswered: tuple[tuple[str, CheckResult], ...]
    figures: tuple[tuple[str, CheckResult], ...]
    """With a figure, or failed."""
    details: tuple[tuple[str, str], ...]
    """What those of `figures` say, in words."""


def _checks(record: Record) -> Checks:
    answered = [(name, check) for name, check in record.conformance.items() if check.verdict not in NO_ANSWER]
    bits = [name for name, check in answered if check.verdict == "pass" and _has_no_figure(check) and not check.detail]
    others = tuple((name, check) for name, check in answered if name not in bits)
    unanswered = tuple((name, check) for name, check in record.conformance.items() if check.verdict in NO_ANSWER)
    details = tuple((name, words) for name, check in others if (words := check_words(check)))
    return Checks(tuple(bits), unanswered, others, details)


def check_words(check: CheckResult) -> str:
    """The detail, and the figures beside it. That of a pass has its repetitions."""
    figures = dict(check.figures)
    done, planned, least = (figures.pop(name, None) for name in ("done", "planned", "least"))
    parts = [check.detail] if check.detail else []
    if done is not None and planned is not None and check.verdict != "pass":
        parts.append(f"{done:,.0f} of {planned:,.0f} repetitions")
    if least is not None:
        parts.append(f"a pass needs {least:,.0f}")
    return "; ".join((*parts, *(f"{name} {digits(value)}" for name, value in figures.items())))


def _has_no_figure(check: CheckResult) -> bool:
    return check.rounding is None and check.max_abs is None and check.max_ulp is None


def _drawn(series: TrialSeries, changes: Sequence[Change], nights: Sequence[Night]) -> dict[str, Any]:
    """The series of the page's chart: the numbers of its nights, and by measure values and intervals."""
    at = {nights[number].entry.run: place for place, number in enumerate(series.nights)}
    measures = []
    for index, path in enumerate(COMPARED_PATHS):
        columns = [series.latencies[:, index, quantity] for quantity in range(len(QUANTITIES))]
        measures.append(_measure(path, "s", *columns))
    for index, figure in enumerate(FIGURES):
        name, unit = MEASURE_OF[figure]
        measures.append(_measure(name, unit, series.figures[:, index]))
    versions = Numbered()
    return {
        "nights": list(series.nights),
        "version": [versions(_installed(trial)) for trial in series.trials],
        "versions": versions.values,
        "measures": [measure for measure in measures if any(value is not None for value in measure["value"])],
        "changes": [
            {"at": at[c.run], "measure": c.measure, "level": c.level, "cause": c.cause, "text": sentence_of(c)}
            for c in changes
            if c.run in at
        ],
    }


def _installed(trial: NightTrial) -> str:
    """What the chart marks where it changes: `onnxruntime 1.31.1 on H100; Python 3.11.7, kernel 6.1`."""
    return "; ".join(filter(None, (" on ".join(filter(None, (trial.versions, trial.setting.device))), trial.software)))


def _measure(name: str, unit: str, value: Array, *ends: Array) -> dict[str, Any]:
    scale, (values, *intervals) = whole(value) if unit == "B" else scaled(value, *ends)
    return {
        "name": name,
        "title": MEASURES[name].title,
        "unit": unit,
        "scale": scale,
        "value": values,
        **dict(zip(("low", "high"), intervals, strict=False)),
    }


def _listed(content: Content, machine: Machine, shown: Shown, series: TrialSeries) -> dict[str, Any]:
    entry = shown.entry
    bound = entry.bound
    interval = bound.interval if bound and bound.interval else None
    return {
        "page": shown.page,
        "trial": shown.trial,
        "machine": machine.fingerprint,
        "on": machine.name if len(content.all_machines) > 1 else "",
        "case": entry.record.case,
        "network": entry.workload.family.computed,
        "backend": entry.record.backend,
        "program": program(entry),
        "strategy": strategy(entry),
        "hidden": entry.workload.hidden,
        "batch": entry.record.params.batch,
        "chunk": entry.chunk,
        "outcome": entry.record.outcome,
        "bound": [bound.median, *(interval or (None, None))] if bound else None,
        "spark": sparkline(series.latencies[:, 0, 0].tolist()),
    }
