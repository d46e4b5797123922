"""pytest-benchmark's JSON: one benchmark for each trial and latency path.

Its statistics are those of the stored samples; where a run has none, those of the process medians. `extra_info` says
which.
"""

from __future__ import annotations

import json
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from rnnbench.results.exports.export import Export
from rnnbench.results.exports.measured import ExportedTrial, exported_trials, machine_facts, refuse_several_machines
from rnnbench.results.run import Run
from rnnbench.results.samples import SAMPLE_COLUMNS
from rnnbench.results.text import visible
from rnnbench.results.timing import Latency

FENCE = 1.5
"""Tukey's: what is more than so many interquartile ranges outside of the quartiles is an outlier."""


def _write(run: Run, stream: TextIO) -> None:
    refuse_several_machines(run, EXPORT.name)
    content = {
        "machine_info": machine_facts(run),
        "commit_info": {},
        "datetime": visible(run.info.started),
        "version": f"rnnbench {visible(run.info.rnnbench)}",
        "benchmarks": [
            _benchmark(trial, figure.name, latency)
            for trial in exported_trials(run)
            for figure, latency in trial.latencies
        ],
    }
    json.dump(content, stream, indent=1)
    stream.write("\n")


def _benchmark(trial: ExportedTrial, path: str, latency: Latency) -> dict[str, Any]:
    record = trial.entry.record
    rows = trial.samples(path)
    medians = np.array(latency.process_medians)
    seconds = medians if rows is None else rows[:, SAMPLE_COLUMNS.index("seconds")]
    params = {key: value for key, value in record.params.model_dump().items() if key != "model"}
    return {
        "group": visible(f"{trial.entry.workload}, chunk {record.params.chunk}, {path}"),
        "name": f"{trial.name}[{path}]",
        "fullname": f"{trial.name}[{path}]",
        "param": path,
        "params": {
            "path": path,
            **{name: _text(value) for name, value in record.params.model.items()},
            "case": visible(record.case),
            "backend": visible(record.backend),
            "route": visible(record.route),
            **{name: _text(value) for name, value in params.items()},
        },
        "extra_info": {
            "outcome": record.outcome,
            "same_as": visible(record.same_as) if record.same_as else None,
            "rounds_are": "process medians" if rows is None else "samples",
            "version": {visible(name): visible(version) for name, version in record.version.items()},
            "lowered": visible(trial.entry.artifact.lowered) if trial.entry.artifact else None,
        },
        "options": {},
        "stats": statistics_of(seconds, latency.sampling.calls_per_sample),
    }


def _text(value: object) -> object:
    return visible(value) if isinstance(value, str) else value


def statistics_of(seconds: npt.NDArray[np.float64], calls_per_round: int) -> dict[str, float | int | str]:
    """What pytest-benchmark computes of its rounds, with NumPy's quartiles instead of medians of halves.

    The standard deviation of a single round is 0 there too.
    """
    q1, median, q3 = (float(value) for value in np.percentile(seconds, (25, 50, 75)))
    mean, deviation = float(seconds.mean()), float(seconds.std(ddof=1)) if len(seconds) > 1 else 0.0
    low, high = q1 - FENCE * (q3 - q1), q3 + FENCE * (q3 - q1)
    beyond = int(((seconds < mean - deviation) | (seconds > mean + deviation)).sum())
    outside = int(((seconds < low) | (seconds > high)).sum())
    return {
        "min": float(seconds.min()),
        "max": float(seconds.max()),
        "mean": mean,
        "stddev": deviation,
        "rounds": len(seconds),
        "iterations": calls_per_round,
        "median": median,
        "q1": q1,
        "q3": q3,
        "iqr": q3 - q1,
        "iqr_outliers": outside,
        "stddev_outliers": beyond,
        "outliers": f"{beyond};{outside}",
        "ld15iqr": float(seconds[seconds >= low].min()),
        "hd15iqr": float(seconds[seconds <= high].max()),
        "ops": 1 / mean,
        "total": float(seconds.sum()),
    }


EXPORT = Export("pytest-benchmark", ".json", "JSON that `pytest-benchmark compare` reads", _write)
