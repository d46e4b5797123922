"""Bencher Metric Format: values by benchmark and measure. Latencies are in nanoseconds, as Bencher's `latency` is."""

from __future__ import annotations

import json
from typing import TextIO

from rnnbench.results.exports.export import Export
from rnnbench.results.exports.measured import Figure, exported_trials, refuse_several_machines
from rnnbench.results.run import Run

NANOSECONDS = 1e9
MEASURES = {"bound": "latency", "build": "build-time", "memory": "memory", "artifact": "file-size"}
"""Bencher's slugs. `latency` (nanoseconds), `build-time` (seconds) and `file-size` (bytes) are built in."""


def _write(run: Run, stream: TextIO) -> None:
    refuse_several_machines(run, EXPORT.name)
    content = {
        trial.name: {MEASURES.get(figure.name, f"{figure.name}-latency"): _metric(figure) for figure in trial.figures}
        for trial in exported_trials(run)
        if trial.figures
    }
    json.dump(content, stream, indent=1)
    stream.write("\n")


def _metric(figure: Figure) -> dict[str, float]:
    scale = NANOSECONDS if figure.latency else 1
    metric = {"value": figure.value * scale}
    if figure.interval:
        metric |= {"lower_value": figure.interval[0] * scale, "upper_value": figure.interval[1] * scale}
    return metric


EXPORT = Export("bencher", ".json", "Bencher Metric Format (JSON)", _write)
