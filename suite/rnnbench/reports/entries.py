"""The trials of the runs under report, each with the record whose figures it shows, sorted into workloads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from rnnbench.reports.units import count
from rnnbench.results.artifact import Artifact
from rnnbench.results.compare import differing, identity
from rnnbench.results.record import Record
from rnnbench.results.store import Run
from rnnbench.results.timing import Latency

ORIGINS = ("library", "imported", "authored", "kernel")
ORIGIN_MEANS = {
    "library": "the runtime's own RNN operator",
    "imported": "a framework's model through an importer",
    "authored": "IR written in this suite",
    "kernel": "a loop nest written by hand in this suite: its figures measure this suite's skill and not a compiler's",
}
WHOLE = "whole"
"""How a chunk is labelled where every call is a whole sequence (state `none`): no stream can be fed that way."""


class ReportError(ValueError):
    """Runs that cannot stand in one report. The message says why and what to do."""


@dataclass(frozen=True, order=True)
class Family:
    """What trials must share to be shown in one picture: all of the workload but its hidden size."""

    case: str
    model: tuple[tuple[str, str], ...]
    batch: int
    dtype: str
    device: str
    threads: int
    steps: int

    def __str__(self) -> str:
        return self.described(dict(self.model))

    def described(self, model: dict[str, str]) -> str:
        parts = [model.pop("cell", "model").upper(), *(f"{key} {value}" for key, value in model.items())]
        parts += [f"batch {self.batch}", self.dtype, f"{self.device} with {count(self.threads, 'thread')}"]
        return f"{self.case}: {', '.join(parts)}, stream of {count(self.steps, 'step')}"

    @property
    def slug(self) -> str:
        """For names of files."""
        model = "-".join(value if key == "cell" else f"{key}{value}" for key, value in self.model)
        rest = f"b{self.batch}-{self.dtype}-{self.device}-t{self.threads}-s{self.steps}"
        return re.sub(r"[^\w.-]+", "_", f"{self.case}-{model}-{rest}")


@dataclass(frozen=True, order=True)
class Workload:
    family: Family
    hidden: int

    def __str__(self) -> str:
        return self.family.described({**dict(self.family.model), "hidden": str(self.hidden)})


@dataclass(frozen=True)
class Entry:
    """A trial in a report."""

    record: Record
    measured: Record | None
    """Where its figures come from: itself, the trial it is `same_as`, or None where that is not in these runs."""

    @property
    def shares(self) -> bool:
        return self.record.same_as is not None

    @property
    def ranked(self) -> bool:
        """Whether its latency may be shown beside others: measured, from a program that computes the right thing."""
        return self.conforming and self.bound is not None

    @property
    def conforming(self) -> bool:
        return self.record.outcome == "ok" and self.measured is not None and self.measured.outcome == "ok"

    @property
    def bound(self) -> Latency | None:
        return self.measured.timing.bound if self.measured else None

    @property
    def public(self) -> Latency | None:
        return self.measured.timing.public if self.measured else None

    @property
    def target(self) -> str:
        return self.record.target

    @property
    def strategy(self) -> str:
        return self.record.strategy

    @property
    def chunk(self) -> int:
        return self.record.params.chunk

    @property
    def streams(self) -> bool:
        return self.record.params.state != "none"

    @property
    def chunk_label(self) -> str:
        return str(self.chunk) if self.streams else f"{self.chunk} {WHOLE}"

    @property
    def origin(self) -> str | None:
        return self.artifact.origin if self.artifact else None

    @property
    def approximate(self) -> bool:
        return self.artifact is not None and self.artifact.math == "approximate"

    @property
    def artifact(self) -> Artifact | None:
        return self.record.artifact or (self.measured.artifact if self.measured else None)

    @cached_property
    def workload(self) -> Workload:
        params = self.record.params
        model = {key: value for key, value in params.model.items() if key != "hidden"}
        return Workload(
            Family(
                self.record.case,
                tuple((key, str(value)) for key, value in model.items()),
                params.batch,
                params.dtype,
                params.device,
                params.threads,
                params.steps,
            ),
            int(params.model.get("hidden", 0)),
        )


@dataclass(frozen=True)
class View:
    """Everything a report shows."""

    runs: tuple[Run, ...]
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]

    @cached_property
    def workloads(self) -> dict[Workload, list[Entry]]:
        return _grouped(self.entries)

    @property
    def families(self) -> dict[Family, dict[int, list[Entry]]]:
        """Entries by family and hidden size."""
        families: dict[Family, dict[int, list[Entry]]] = {}
        for workload, entries in self.workloads.items():
            families.setdefault(workload.family, {})[workload.hidden] = entries
        return families

    @property
    def targets(self) -> list[str]:
        return sorted({entry.target for entry in self.entries})


def view(runs: Sequence[Run]) -> View:
    """Runs as one report. Of a trial that several have, the last run's counts. Raises ReportError."""
    if not runs:
        raise ReportError("no run to report on; name at least one")
    warnings = [warning for run in runs for warning in run.warnings]
    entries: dict[str, Entry] = {}
    for run in runs:
        for key, a, b in differing(identity(runs[0].info.machine), identity(run.info.machine)):
            raise ReportError(
                f"the runs {runs[0].name} and {run.name} come from different machines ({key}: {a}, {b}) and cannot "
                f"stand in one ranking; report on each alone, or use `rnnbench compare`"
            )
        again = [record.trial for record in run.records if record.trial in entries]
        if again:
            warnings.append(f"{len(again)} trials are in several runs; the figures shown are those of {run.name}")
        entries.update({record.trial: Entry(record, run.measured(record)) for record in run.records})
    return View(tuple(runs), tuple(entries.values()), tuple(warnings))


def _grouped(entries: Iterable[Entry]) -> dict[Workload, list[Entry]]:
    ordered = sorted(entries, key=lambda e: (e.workload, e.chunk, not e.streams, e.target, e.strategy))
    return {workload: list(group) for workload, group in groupby(ordered, key=lambda e: e.workload)}


def short_names(trials: Iterable[str]) -> dict[str, str]:
    """Trial ids without what all of them have in common; the 8 hex digits only where they are needed to be unique."""
    split = {trial: (*trial.rsplit("/", 1)[0].split("/"), *trial.rsplit("/", 1)[-1].split("-")) for trial in trials}
    alike = {len(parts) for parts in split.values()}
    if len(split) < 2 or len(alike) > 1:
        return {trial: trial for trial in split}
    varying = [len(set(column)) > 1 for column in zip(*split.values(), strict=True)]

    def joined(parts: tuple[str, ...]) -> str:
        return " ".join(part for part, varies in zip(parts, varying, strict=False) if varies)

    without = {trial: joined(parts[:-1]) for trial, parts in split.items()}
    if len(set(without.values())) == len(without):
        return without
    return {trial: joined(parts) for trial, parts in split.items()}
