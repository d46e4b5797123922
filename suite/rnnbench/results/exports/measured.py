"""What exports for other tools show of a run: its trials, their names, and the figures of those that have any.

A trial has figures only where a ranking would have it: its program passed its checks, its device is a real one, and the
figures are believed. Other tools draw what they read as a measurement, and some read a missing value as 0. So a trial
without figures is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from rnnbench.measure import PATHS
from rnnbench.results.merged_run import split_by_machine
from rnnbench.results.reading import StoreError
from rnnbench.results.run import Run
from rnnbench.results.run_info import RunInfo
from rnnbench.results.samples import SAMPLE_COLUMNS
from rnnbench.results.text import identifier
from rnnbench.results.timing import Latency
from rnnbench.results.views import Entry

LONGEST_NAME = 1000
"""UTF-8 bytes of a trial's name. Bencher takes names of up to 1,024."""


@dataclass(frozen=True)
class Figure:
    """One figure of a trial."""

    name: str
    """A latency path, or `build`, `memory`, `artifact`."""
    meaning: str
    unit: Literal["s", "bytes"]
    value: float
    latency: Latency | None = None
    """The whole latency, for a figure of a latency path."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval, where there is one."""
        return self.latency.interval if self.latency else None


@dataclass(frozen=True)
class ExportedTrial:
    """A trial of a run."""

    run: Run
    """With the trial's machine."""
    entry: Entry

    @property
    def name(self) -> str:
        """Its id, as text that cannot do harm. Different ids have different names."""
        return identifier(self.entry.record.trial, LONGEST_NAME)

    @property
    def has_figures(self) -> bool:
        return self.entry.conforming and not self.entry.on_software_device and not self.entry.not_believed

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Nothing where the program failed a check or ended early, on a software device, and where not believed."""
        return tuple(self._figures()) if self.has_figures else ()

    @property
    def latencies(self) -> Iterator[tuple[Figure, Latency]]:
        for figure in self.figures:
            if figure.latency is not None:
                yield figure, figure.latency

    def samples(self, path: str) -> npt.NDArray[np.float64] | None:
        """The stored samples of a latency path, as rows of `SAMPLE_COLUMNS`; None where none are readable."""
        try:
            rows = self.run.samples(self.entry.record.same_as or self.entry.record.trial, path)
        except StoreError:
            return None
        sound = len(rows) > 0 and np.isfinite(rows).all() and (rows[:, SAMPLE_COLUMNS.index("seconds")] > 0).all()
        return rows if sound else None

    def _figures(self) -> Iterator[Figure]:
        record, artifact = self.entry.record, self.entry.artifact
        for path in PATHS.values():
            latency = self.entry.latency(path.name)
            if latency is not None:
                meaning = f"{path.name.capitalize()} latency, median per call. {path.meaning}"
                yield Figure(path.name, meaning, "s", latency.median, latency)
        for name, meaning, unit, value in (
            ("build", "Time of a cold build, without imports.", "s", record.timing.own_build_s),
            ("memory", "Peak of the process that loads and runs the program.", "bytes", record.memory.run_peak),
            ("artifact", "Size of the artifact, weights included.", "bytes", artifact.nbytes if artifact else None),
        ):
            if value is not None and math.isfinite(value) and value > 0:
                yield Figure(name, meaning, "s" if unit == "s" else "bytes", value)


def exported_trials(run: Run) -> list[ExportedTrial]:
    """Every trial of the run; of merged shards, with the shard's run. Impossible figures are gone (`damage.sound`)."""
    return [ExportedTrial(run.part_of(record), Entry(record, run.measured(record))) for record in run.records]


def refuse_several_machines(run: Run, format_name: str) -> None:
    """Raises StoreError for merged shards of several machines: the format would show their figures as one machine's."""
    if len(of_machines := split_by_machine(run)) > 1:
        raise StoreError(
            f"{run.path} has figures of {len(of_machines)} machines, and a file in the format {format_name} is of one; "
            f"export each shard by itself, for example {run.shards[0].path}"
        )


def started(info: RunInfo) -> datetime | None:
    """When the run began, in UTC; None where its `run.json` has no such time."""
    try:
        time = datetime.fromisoformat(info.started)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def machine_facts(run: Run) -> dict[str, str | int]:
    """What the run's machine says of itself, where it is text or a whole number."""
    facts: dict[str, str | int] = {}
    for key, value in run.info.machine.items():
        if isinstance(value, str) and value:
            facts[key] = identifier(value, LONGEST_NAME)
        elif isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53:
            facts[key] = value
    return facts
