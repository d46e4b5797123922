"""Tables of findings: trials that did not run, threads, emulation, optimisations, missing figures; the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rnnbench.reports import units
from rnnbench.reports.devices import device_names
from rnnbench.reports.expected_failures import outcome_of
from rnnbench.reports.lowered import sizes, strategies
from rnnbench.reports.tables import NOT_BELIEVED, P99_SAMPLES, Table
from rnnbench.results import Entry, View

LARGEST = 1e300
"""Numbers beyond it are shown as they are: no float can be made of them."""
NO_FIGURE = "its record has none"


def notes_table(view: View) -> Table:
    """Optimisations that a reader should know of when comparing programs."""
    notes = {
        (entry.target, entry.record.params.time, note)
        for entry in view.entries
        if entry.artifact
        for note in entry.artifact.notes
    }
    grouped: dict[tuple[str, str], list[str]] = {}
    for target, time, note in sorted(notes):
        grouped.setdefault((target, note), []).append(time)
    rows = [(target, ", ".join(times), note) for (target, note), times in grouped.items()]
    return Table("Optimisations", ("program", "time", "note"), tuple(rows), text=3)


def emulated_table(view: View) -> Table:
    """What stands in for what a runtime lacks."""
    rows = {
        (entry.target, entry.strategy, entry.record.support.reason, _issue(entry.record.support.upstream))
        for entry in view.entries
        if entry.record.support.level == "emulated"
    }
    return Table("Emulated", ("program", "strategy", "what stands in", "upstream"), tuple(sorted(rows)), text=4)


def threads_table(view: View) -> Table:
    """Where the number of busy threads differs from the requested number."""
    groups: dict[tuple[str, int, int], list[Entry]] = {}
    for entry in view.entries:
        environment = entry.record.environment
        if not entry.shares and environment.threads_busy not in (None, environment.threads_requested):
            key = (entry.target, environment.threads_requested, environment.threads_busy or 0)
            groups.setdefault(key, []).append(entry)
    rows = [
        (target, str(requested), str(busy), strategies(entries), sizes(entries), str(len(entries)))
        for (target, requested, busy), entries in sorted(groups.items())
    ]
    return Table(
        "Threads that differ from the requested number",
        ("program", "requested", "busy", "strategies", "where", "trials"),
        tuple(rows),
        text=5,
        note="Busy threads are those that used CPU time while bound calls were sampled, as the kernel counts it. Fewer "
        "than requested: the program does not divide its work. More: the runtime uses further threads.",
    )


def not_run_table(view: View) -> Table:
    """Every trial that is not `ok`; equal ones share a row."""
    groups: dict[tuple[str, str, str, str, str], list[Entry]] = {}
    for entry in view.entries:
        record = entry.record
        if record.outcome != "ok":
            reason = record.reason or record.support.reason or "no reason was recorded"
            issue = _issue(record.support.upstream)
            key = (outcome_of(record), record.stage or units.MISSING, entry.target, reason, issue)
            groups.setdefault(key, []).append(entry)
    rows = [
        (outcome, stage, target, strategies(entries), sizes(entries), str(len(entries)), reason, issue)
        for (outcome, stage, target, reason, issue), entries in sorted(groups.items())
    ]
    columns = ("outcome", "stage", "program", "strategies", "where", "trials", "reason", "upstream")
    return Table("Not in the ranking, and why", columns, tuple(rows), text=len(columns))


def not_believed_table(view: View) -> Table:
    """Trials whose figures the suite contradicts. They are in no ranking."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in view.entries:
        if entry.not_believed:
            groups.setdefault((entry.target, entry.not_believed), []).append(entry)
    rows = [
        (NOT_BELIEVED, target, strategies(entries), sizes(entries), str(len(entries)), reason)
        for (target, reason), entries in sorted(groups.items())
    ]
    columns = ("", "program", "strategies", "where", "trials", "reason")
    return Table("Not believed, and in no ranking", columns, tuple(rows), text=len(columns))


def too_short_table(view: View) -> Table:
    """Trials that are `ok`, and whose checks did not all have the time to mean anything."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[Entry]] = {}
    for entry in view.entries:
        if entry.record.outcome == "ok":
            for reason, checks in _too_short(entry):
                groups.setdefault((entry.target, reason, checks), []).append(entry)
    rows = [
        (target, strategies(entries), sizes(entries), str(len(entries)), reason, ", ".join(checks))
        for (target, reason, checks), entries in sorted(groups.items())
    ]
    return Table(
        "Not fully checked",
        ("program", "strategies", "where", "trials", "why", "checks"),
        tuple(rows),
        text=6,
        note="These checks have neither passed nor failed. Checks that did not begin need a longer trial (--set "
        "limits.trial=1200s), and drift and memory a longer time of their own (--endurance=5s). The others repeat "
        "something as often as their time allows, which was too seldom for a verdict.",
    )


def _too_short(entry: Entry) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Why checks of a trial mean nothing, and which."""
    record = entry.record
    late = tuple(name for name in record.too_short_checks if record.conformance[name].not_begun)
    seldom = tuple(name for name in record.too_short_checks if name not in late)
    if late:
        yield "did not begin", late
    if seldom:
        yield "too few repetitions", seldom


def findings_table(view: View) -> Table:
    """All other findings. They take no trial out of a ranking."""
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in view.entries:
        for finding in entry.record.findings:
            if not finding.disbelieved:
                groups.setdefault((finding.kind, entry.target, finding.detail), []).append(entry)
    rows = [
        (kind, target, strategies(entries), sizes(entries), str(len(entries)), detail)
        for (kind, target, detail), entries in sorted(groups.items())
    ]
    columns = ("about", "program", "strategies", "where", "trials", "finding")
    return Table("What the suite found", columns, tuple(rows), text=len(columns))


def missing_table(view: View) -> Table:
    """Why a trial that is `ok` has a dash in a table."""
    reasons: Counter[tuple[str, str]] = Counter()
    for entry in view.entries:
        if entry.record.outcome == "ok":
            reasons.update(_missing(entry))
    rows = [(figure, reason, str(trials)) for (figure, reason), trials in sorted(reasons.items())]
    return Table("Dashes in the tables, and why", ("figure", "reason", "trials"), tuple(rows), text=2)


def _missing(entry: Entry) -> Iterator[tuple[str, str]]:
    if entry.measured is None:
        yield "all", f"the same program as {entry.record.same_as}, which is not in this report"
        return
    if entry.shares:
        return
    timing, memory = entry.record.timing, entry.record.memory
    unbuilt = "its artifact was found in the cache" if timing.build_origin == "cached" else NO_FIGURE
    if timing.build_s is None:
        yield "cold build", unbuilt
    yield from _missing_latencies(entry)
    for name in ("run_peak", "steady", "build_peak", "imported"):
        if getattr(memory, name) is None:
            yield f"memory, {name.replace('_', ' ')}", unbuilt if name == "build_peak" else NO_FIGURE
    if entry.record.artifact is None:
        yield "artifact", NO_FIGURE
    yield from _missing_floors(entry)
    for figure, reason in entry.record.unmeasured.items():
        if figure != "latency_floor":
            yield figure.replace("_", " "), reason


def _missing_latencies(entry: Entry) -> Iterator[tuple[str, str]]:
    for name, latency in ((name, entry.record.timing.latency.get(name)) for name in ("bound", "public")):
        if latency is None:
            yield name, entry.record.reason or NO_FIGURE
        elif len(latency.process_medians) < 2:
            yield f"{name} ± processes", "one process was sampled"
    if entry.bound is not None and entry.bound.count < P99_SAMPLES:
        yield "p99", f"fewer than {P99_SAMPLES} samples were taken"


def _missing_floors(entry: Entry) -> Iterator[tuple[str, str]]:
    floor, dispatch = entry.record.floor, entry.record.timing.dispatch_floor
    if floor is None or floor.ratio is None:
        yield "× of floor", (floor.unmeasured if floor else "") or NO_FIGURE
    elif floor.interval is None:
        yield "× of floor, its interval", "the probe measured beside fewer than two processes"
    if dispatch is not None and dispatch.seconds is None:
        yield "dispatch floor", dispatch.unmeasured


def outcome_counts(view: View) -> list[tuple[str, int]]:
    """Trials by outcome, the most frequent first."""
    counts = Counter(outcome_of(entry.record) for entry in view.entries)
    return sorted(counts.items(), key=lambda item: (item[0] != "ok", -item[1], item[0]))


def not_believed_count(view: View) -> int:
    """Trials whose figures are not believed."""
    return sum(bool(entry.not_believed) for entry in view.entries)


def machine_table(view: View) -> Table:
    machine = view.runs[0].info.machine
    rows = [(key.removesuffix("_s").replace("_", " "), _shown(key, value)) for key, value in _flat(machine)]
    rows += [("device", name) for name in device_names(view)]
    return Table("Machine", ("what", "value"), tuple(rows), text=2)


def version_table(view: View) -> Table:
    """The versions of rnnbench and of the backends' packages in the runs."""
    rows = {
        (backend, package, version)
        for run in view.runs
        for backend, packages in run.info.versions.items()
        for package, version in packages.items()
    }
    rows |= {("rnnbench", "rnnbench", run.info.rnnbench) for run in view.runs}
    return Table("Versions", ("backend", "package", "version"), tuple(sorted(rows)), text=3)


def run_table(view: View) -> Table:
    """Each run, and where its wall time went."""
    rows = [
        (
            run.name,
            run.info.command_line,
            str(run.info.seed),
            ", ".join(f"{name} {units.seconds(value)}" for name, value in run.info.seconds.items()) or units.MISSING,
        )
        for run in view.runs
    ]
    return Table("Runs", ("run", "command", "seed", "wall time"), tuple(rows), text=4)


def _issue(upstream: str) -> str:
    return upstream or units.MISSING


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key} ")
        else:
            yield f"{prefix}{key}", value


def _shown(key: str, value: Any) -> str:
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > LARGEST:
        return str(value)
    if key == "memory" or key.startswith("caches "):
        return units.nbytes(value)
    if key.endswith("_s"):
        return units.seconds(value)
    return f"{value:.2f}" if isinstance(value, float) else str(value)
