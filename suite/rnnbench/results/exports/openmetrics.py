"""OpenMetrics text: a gauge for each kind of figure, in seconds and bytes, and the outcome of every trial.

Each line has the time at which the run began, so that an import puts old runs where they belong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

from rnnbench.results.exports.export import Export
from rnnbench.results.exports.measured import ExportedTrial, exported_trials, started
from rnnbench.results.identity import fingerprint
from rnnbench.results.run import Run
from rnnbench.results.text import visible
from rnnbench.results.versions import versions_text


@dataclass(frozen=True)
class MetricFamily:
    """A metric family of OpenMetrics."""

    name: str
    kind: str
    unit: str
    """Empty for none. The name ends in it."""
    meaning: str
    sample_ending: str = ""
    """What the format adds to the name of a sample."""


TRIAL = MetricFamily("rnnbench_trial", "info", "", "A trial of the run, with its outcome.", "_info")
LATENCY = MetricFamily("rnnbench_latency_seconds", "gauge", "seconds", "Median latency of a call, by latency path.")
LOW = MetricFamily("rnnbench_latency_low_seconds", "gauge", "seconds", "Lower end of the median's 95 % interval.")
HIGH = MetricFamily("rnnbench_latency_high_seconds", "gauge", "seconds", "Upper end of the median's 95 % interval.")
BUILD = MetricFamily("rnnbench_build_seconds", "gauge", "seconds", "Time of a cold build, without imports.")
MEMORY = MetricFamily("rnnbench_memory_bytes", "gauge", "bytes", "Peak of the process that loads and runs the program.")
ARTIFACT = MetricFamily("rnnbench_artifact_bytes", "gauge", "bytes", "Size of the artifact, weights included.")
FAMILIES = (TRIAL, LATENCY, LOW, HIGH, BUILD, MEMORY, ARTIFACT)
OTHERS = {"build": BUILD, "memory": MEMORY, "artifact": ARTIFACT}


@dataclass(frozen=True)
class Sample:
    """One figure of a trial in a family."""

    family: MetricFamily
    labels: dict[str, str]
    value: float


def _write(run: Run, stream: TextIO) -> None:
    samples = [sample for trial in exported_trials(run) for sample in _samples(trial)]
    begun = started(run.info)
    time = f" {begun.timestamp():.3f}" if begun else ""
    for family in FAMILIES:
        stream.write(f"# TYPE {family.name} {family.kind}\n")
        if family.unit:
            stream.write(f"# UNIT {family.name} {family.unit}\n")
        stream.write(f"# HELP {family.name} {family.meaning}\n")
        for sample in samples:
            if sample.family is family:
                name = f"{family.name}{family.sample_ending}"
                labels = ",".join(f'{key}="{_escaped(visible(value))}"' for key, value in sample.labels.items())
                stream.write(f"{name}{{{labels}}} {sample.value!r}{time}\n")
    stream.write("# EOF\n")


def _samples(trial: ExportedTrial) -> Iterator[Sample]:
    record = trial.entry.record
    labels = {"trial": trial.name, "machine": fingerprint(trial.run.info.machine)}
    facts = {
        "run": trial.run.info.run,
        "case": record.case,
        "backend": record.backend,
        "route": record.route,
        "versions": versions_text(record.version),
        "outcome": record.outcome,
        "believed": "no" if trial.entry.not_believed else "yes",
        "same_as": record.same_as or "",
    }
    yield Sample(TRIAL, {**labels, **facts}, 1.0)
    for figure in trial.figures:
        if figure.latency is None:
            yield Sample(OTHERS[figure.name], labels, figure.value)
            continue
        of_path = {**labels, "path": figure.name}
        yield Sample(LATENCY, of_path, figure.value)
        if figure.interval:
            yield Sample(LOW, of_path, figure.interval[0])
            yield Sample(HIGH, of_path, figure.interval[1])


def _escaped(text: str) -> str:
    """OpenMetrics' escapes in a label's value. `visible` leaves no line feed."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


EXPORT = Export("openmetrics", ".txt", "OpenMetrics text, as Prometheus reads it", _write)
