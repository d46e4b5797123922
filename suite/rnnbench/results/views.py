"""Runs as one view: their trials, each with the record whose figures it shows, grouped into workloads and families."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from rnnbench.results.artifact import Artifact
from rnnbench.results.damage import sound
from rnnbench.results.identity import machine_differences
from rnnbench.results.reading import StoreError
from rnnbench.results.record import Record
from rnnbench.results.run import Run
from rnnbench.results.text import file_name
from rnnbench.results.timing import Latency
from rnnbench.spelling import count

ORIGIN_MEANS: Mapping[str, str] = {
    "library": "the runtime's own RNN operator",
    "imported": "a framework's model through an importer",
    "authored": "IR written in this suite, which the compiler schedules",
    "kernel": "kernels written by hand in this suite; they measure its authors' skill, not a compiler's",
}
"""What each origin of a program means, in the order in which tables and pictures show them."""
ORIGINS: tuple[str, ...] = tuple(ORIGIN_MEANS)
NAMES = ("cell", "file", "network")
"""The keys of a model that say what it is: a stack of cells has the first one, a model file the second."""
NOT_SHOWN = ("sha256", "called")
"""Keys of a model file that tell it from others, and are no words of a title."""
WHOLE = "whole"
"""Label of a chunk where every call is a whole sequence (state `none`). A stream cannot be fed that way."""


@dataclass(frozen=True, order=True)
class Family:
    """What trials must have in common to be shown in one picture: the workload without its hidden size."""

    case: str
    model: tuple[tuple[str, str], ...]
    batch: int
    dtype: str
    device: str
    threads: int
    steps: int
    lengths: str = "full"
    """`ragged`: each row of a batch has a length of its own."""
    seed: int = 0
    """The seed of weights and inputs: trials of two seeds compute two things, and are not sampled in turn."""

    def __str__(self) -> str:
        return self.described(dict(self.model))

    @property
    def computed(self) -> str:
        """The cell of a stack, or the name of the network."""
        model = dict(self.model)
        return next((model[key] for key in NAMES if key in model), "model")

    def described(self, model: Mapping[str, str], *, on_device: bool = True) -> str:
        computed = self.computed.upper() if "cell" in model else self.computed
        parts = [computed, *(f"{key} {value}" for key, value in model.items() if key not in NAMES + NOT_SHOWN)]
        parts += [f"batch {self.batch}", self.dtype]
        parts += [f"{self.device} with {_number(self.threads, 'thread')}"] if on_device else []
        lengths = f", {self.lengths} lengths" if self.lengths != "full" else ""
        seed = f", seed {self.seed}" if self.seed else ""
        return f"{self.case}: {', '.join(parts)}, stream of {_number(self.steps, 'step')}{lengths}{seed}"

    @property
    def slug(self) -> str:
        """For file names."""
        model = "-".join(value if key in NAMES else f"{key}{value}" for key, value in self.model if key != "called")
        rest = f"b{self.batch}-{self.dtype}-{self.device}-t{self.threads}-s{self.steps}"
        lengths = f"-{self.lengths}" if self.lengths != "full" else ""
        seed = f"-seed{self.seed}" if self.seed else ""
        return file_name(f"{self.case}-{model}-{rest}{lengths}{seed}")


def size_label(hidden: int) -> str:
    """`hidden 128`; empty for a network whose case does not say its size."""
    return f"hidden {hidden}" if hidden else ""


@dataclass(frozen=True, order=True)
class Workload:
    """What is computed, and on what device: trials of one workload are ranked together."""

    family: Family
    hidden: int
    """0 for a network of one size, or whose case does not say its size."""
    node: str = ""
    """The node of a cluster that measured it. Trials of two nodes are in two rankings, however alike the nodes are."""

    def __str__(self) -> str:
        sizes = {"hidden": str(self.hidden)} if self.hidden else {}
        described = self.family.described({**dict(self.family.model), **sizes})
        return f"{described}, on node {self.node}" if self.node else described


@dataclass(frozen=True)
class Entry:
    """A trial in a view."""

    record: Record
    measured: Record | None
    """The record its figures come from: its own, or that of the trial it is `same_as`; None where that is not here."""
    run: str = ""
    """The run, or the shard of a merged run, that measured it."""

    @property
    def shares(self) -> bool:
        """Whether the trial shares the measurement of another one."""
        return self.record.same_as is not None

    @property
    def ranked(self) -> bool:
        """Whether its latency may be ranked: it is believed, and the program passed its checks on a real device."""
        measured = self.conforming and self.bound is not None
        return measured and not self.on_software_device and not self.not_believed

    @property
    def on_software_device(self) -> bool:
        """Whether the processor emulated the device that it ran on."""
        return self.record.on_software_device

    @property
    def not_believed(self) -> str:
        """Why its figures are not believed; empty where they are."""
        return self.record.not_believed or (self.measured.not_believed if self.measured else "")

    @property
    def conforming(self) -> bool:
        return self.record.outcome == "ok" and self.measured is not None and self.measured.outcome == "ok"

    def latency(self, path: str) -> Latency | None:
        """The latency of the path with this name."""
        return self.measured.latency(path) if self.measured else None

    @property
    def bound(self) -> Latency | None:
        return self.latency("bound")

    @property
    def ranked_bound(self) -> Latency:
        """The bound latency of an entry that is ranked."""
        assert self.bound is not None, "ranked entries have a bound latency"
        return self.bound

    @property
    def public(self) -> Latency | None:
        return self.latency("public")

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
                params.lengths,
                params.seed,
            ),
            int(params.model.get("hidden", 0)),
            self.record.node,
        )


@dataclass(frozen=True)
class View:
    """The trials of one or more runs of one machine."""

    runs: tuple[Run, ...]
    """The runs; in place of a merged run, those of its shards."""
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]

    @cached_property
    def workloads(self) -> dict[Workload, list[Entry]]:
        """Entries by workload. Anchors are ranked in no run that has other trials."""
        return _grouped([entry for entry in self.entries if not entry.record.params.pinned] or self.entries)

    @property
    def anchors(self) -> list[Entry]:
        """The trials whose versions are pinned."""
        return [entry for entry in self.entries if entry.record.params.pinned]

    @property
    def families(self) -> dict[Family, dict[int, list[Entry]]]:
        """Entries by family and hidden size."""
        families: dict[Family, dict[int, list[Entry]]] = {}
        for workload, entries in self.workloads.items():
            families.setdefault(workload.family, {}).setdefault(workload.hidden, []).extend(entries)
        return families

    @property
    def targets(self) -> list[str]:
        return sorted({entry.target for entry in self.entries})


def view_runs(runs: Sequence[Run]) -> View:
    """Several runs as one view. Where runs share a trial, the last one's record counts.

    Impossible figures of damaged records are left out, and named in the warnings.

    Raises StoreError where there is no run, or where the runs come from different machines.
    """
    if not runs:
        raise StoreError("no run was given; name at least one")
    runs, damaged = sound(runs)
    warnings = [*(warning for run in runs for warning in run.warnings), *damaged]
    entries: dict[str, Entry] = {}
    for run in runs:
        for part in run.parts:
            _refuse_another_machine(runs[0].parts[0], part)
        again = [record.trial for record in run.records if record.trial in entries]
        if again:
            shared = f"{run.name} has {count(len(again), 'trial')} of other runs too"
            warnings.append(f"{shared}; the figures shown are those of {run.name}")
        for record in run.records:
            entries[record.trial] = Entry(record, run.measured(record), run.part_of(record).name)
    parts = tuple(part for run in runs for part in run.parts)
    return View(parts, tuple(entries.values()), tuple(warnings))


def _refuse_another_machine(first: Run, run: Run) -> None:
    for key, a, b in machine_differences(first.info.machine, run.info.machine):
        raise StoreError(
            f"the runs {first.name} and {run.name} come from different machines ({key}: {a}, {b}) and cannot "
            f"stand in one ranking; report on each alone, or use `rnnbench compare`"
        )


def _grouped(entries: Iterable[Entry]) -> dict[Workload, list[Entry]]:
    ordered = sorted(
        entries, key=lambda e: (e.workload, e.chunk, not e.streams, e.origin == "kernel", e.target, e.strategy)
    )
    return {workload: list(group) for workload, group in groupby(ordered, key=lambda e: e.workload)}


def _number(number: int, noun: str) -> str:
    """Without separators of thousands, as the numbers beside it in a title."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def short_names(trials: Iterable[str]) -> dict[str, str]:
    """Trial ids without the parts that all of them have; the 8 hex digits only where they make the name unique."""
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
