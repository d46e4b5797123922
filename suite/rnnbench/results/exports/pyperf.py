"""pyperf's JSON: one benchmark for each trial and latency path.

It has one run for each process, whose value is the process's median.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from rnnbench.results.exports.export import Export
from rnnbench.results.exports.measured import ExportedTrial, exported_trials, machine_facts, refuse_several_machines
from rnnbench.results.reading import StoreError
from rnnbench.results.run import Run
from rnnbench.results.samples import SAMPLE_COLUMNS
from rnnbench.results.text import visible
from rnnbench.results.timing import Latency

FORMAT = "1.0"
"""Version of pyperf's format."""
MACHINE = {"cpu": "cpu_model_name", "usable_cores": "cpu_count", "python": "python_version", "system": "platform"}
"""pyperf's names for facts of the machine."""


def _write(run: Run, stream: TextIO) -> None:
    refuse_several_machines(run, EXPORT.name)
    benchmarks = [
        _benchmark(trial, figure.name, latency) for trial in exported_trials(run) for figure, latency in trial.latencies
    ]
    if not benchmarks:
        raise StoreError(
            f"{run.path}: no trial has a latency, and pyperf reads no file without a benchmark; export a run with a "
            "trial that was timed"
        )
    facts = machine_facts(run)
    metadata = {name: facts[key] for key, name in MACHINE.items() if key in facts}
    json.dump(
        {"version": FORMAT, "metadata": {"unit": "second", **metadata}, "benchmarks": benchmarks}, stream, indent=1
    )
    stream.write("\n")


def _benchmark(trial: ExportedTrial, path: str, latency: Latency) -> dict[str, Any]:
    record = trial.entry.record
    metadata = {
        "name": f"{trial.name}[{path}]",
        "loops": latency.sampling.calls_per_sample,
        "rnnbench_version": visible(record.rnnbench),
        "rnnbench_packages": ", ".join(f"{visible(name)} {visible(text)}" for name, text in record.version.items()),
        "rnnbench_same_as": visible(record.same_as or ""),
    }
    ends = dict(first_ends(trial.samples(path)))
    return {
        "metadata": {name: value for name, value in metadata.items() if value},
        "runs": [
            {"values": [median], **({"metadata": {"date": ends[process]}} if process in ends else {})}
            for process, median in enumerate(latency.process_medians)
        ],
    }


def first_ends(rows: npt.NDArray[np.float64] | None) -> Iterator[tuple[int, str]]:
    """When the first stored sample of each process ended."""
    if rows is None:
        return
    processes, ends = (rows[:, SAMPLE_COLUMNS.index(name)] for name in ("process", "end"))
    for process in np.unique(processes):
        try:
            first = datetime.fromtimestamp(float(ends[processes == process].min()), UTC)
        except (OverflowError, ValueError, OSError):
            continue
        yield int(process), f"{first:%Y-%m-%d %H:%M:%S}"


EXPORT = Export("pyperf", ".json", "JSON of pyperf: one run for each process", _write)
