"""The custom format of github-action-benchmark, for its tool `customSmallerIsBetter`: a list of named values.

The action reads null as 0, so that a trial without a figure has no entry.
"""

from __future__ import annotations

import json
from typing import Any, TextIO

from rnnbench.results.exports.export import Export
from rnnbench.results.exports.measured import ExportedTrial, Figure, exported_trials, refuse_several_machines
from rnnbench.results.reading import StoreError
from rnnbench.results.run import Run
from rnnbench.results.text import visible
from rnnbench.spelling import count

MICROSECONDS = 1e6


def _write(run: Run, stream: TextIO) -> None:
    refuse_several_machines(run, EXPORT.name)
    entries = [_entry(trial, figure) for trial in exported_trials(run) for figure in trial.figures]
    if not entries:
        raise StoreError(
            f"{run.path}: no trial has figures, and the action refuses a list without an entry; export a run with a "
            "trial that was timed"
        )
    json.dump(entries, stream, indent=1)
    stream.write("\n")


def _entry(trial: ExportedTrial, figure: Figure) -> dict[str, Any]:
    record = trial.entry.record
    scale, unit = (MICROSECONDS, "us") if figure.latency else (1, figure.unit)
    lines = [figure.meaning, *(f"{visible(name)} {visible(version)}" for name, version in record.version.items())]
    if figure.latency:
        lines.append(count(len(figure.latency.process_medians), "process", "processes"))
        if record.same_as:
            lines.append(f"measured as {visible(record.same_as)}")
    entry: dict[str, Any] = {
        "name": f"{trial.name} {figure.name}",
        "unit": unit,
        "value": figure.value * scale,
        "extra": "\n".join(lines),
    }
    if figure.interval:
        low, high = figure.interval
        entry["range"] = f"± {max(high - figure.value, figure.value - low) * scale:.6g}"
    return entry


EXPORT = Export("github-action-benchmark", ".json", "JSON of the action's customSmallerIsBetter", _write)
