"""Two runs compared trial by trial: which trials are slower, faster or the same, and what else changed.

Trials are matched by id. Latencies get a verdict where both runs come from one machine (`results.identity`). The runs
were not sampled in turn, and may be days apart: a drift of the machine between them is part of the ratio. `rnnbench ab`
samples both sides in turn and has no such drift.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rnnbench.measure import PATHS
from rnnbench.results.damage import sound
from rnnbench.results.identity import differences, fingerprint, machine_identity
from rnnbench.results.record import Outcome, Record
from rnnbench.results.store import Run
from rnnbench.results.verdict import SMALLEST, Judgement, Verdict, checked_smallest, judge_apart

COMPARED_PATHS: tuple[str, ...] = tuple(path.name for path in PATHS.values() if path.compared)
"""Latency paths that get a verdict."""
BUILD_FACTOR = 1.25
BUILD_SECONDS = 0.1
"""A build is timed once, so it gets no verdict; changes of time below this factor or these seconds are not shown."""


@dataclass(frozen=True)
class LatencyChange:
    """One latency of one trial in both runs, in seconds per call, with its verdict."""

    trial: str
    path: str
    """Name of the latency path."""
    base: float
    new: float
    judged: Judgement
    seconds: float | None = None
    """Wall time of its pairs of processes; None where the runs were not sampled in pairs."""

    @property
    def verdict(self) -> Verdict:
        return self.judged.verdict

    @property
    def ratio(self) -> float:
        return self.judged.ratio


@dataclass(frozen=True)
class OutcomeChange:
    trial: str
    base: Outcome
    new: Outcome
    reason: str
    """Why it is no longer `ok`, or why it was not."""

    @property
    def regressed(self) -> bool:
        return self.base == "ok"


@dataclass(frozen=True)
class BuildChange:
    """What came out of the compiler differs: seconds of a cold build, bytes, or the form it lowered to."""

    trial: str
    what: Literal["build", "bytes", "lowered"]
    base: float | int | str
    new: float | int | str


@dataclass(frozen=True)
class NotBelieved:
    """A trial whose figures are not believed in a run."""

    trial: str
    run: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    base: str
    new: str
    threshold: float
    warnings: tuple[str, ...]
    """Differences of machine, versions and settings: reasons to distrust the rest. That of machines comes first."""
    latencies: tuple[LatencyChange, ...]
    outcomes: tuple[OutcomeChange, ...]
    builds: tuple[BuildChange, ...]
    only_base: tuple[str, ...]
    only_new: tuple[str, ...]
    shared: int
    """Trials left out because in both runs they share the measurement of another."""
    paired: bool = False
    """Whether the two were sampled in turn, process by process (`rnnbench ab`)."""
    about: tuple[str, ...] = ()
    """What the two runs are, and what the comparison took, a sentence each."""
    not_believed: tuple[NotBelieved, ...] = ()
    """Trials whose figures are not believed on a side. They have no verdicts of latencies."""
    two_machines: bool = False
    """Whether the runs come from different machines. A verdict then compares the machines as well."""

    @property
    def regressed(self) -> bool:
        """Whether something is slower, or was `ok` and is no longer."""
        return any(c.verdict == "SLOWER" for c in self.latencies) or any(c.regressed for c in self.outcomes)

    def count(self, verdict: Verdict) -> int:
        return sum(change.verdict == verdict for change in self.latencies)


def compare_runs(base: Run, new: Run, threshold: float = SMALLEST, *, across_machines: bool = False) -> Comparison:
    """Compare the trials that both runs have, matched by id. Needs SciPy, of the extra `report`.

    Runs of two machines have no verdicts of latencies and no changes of build time, unless `across_machines`.
    """
    checked_smallest(threshold)
    (base, new), damaged = sound((base, new))
    two_machines = fingerprint(base.info.machine) != fingerprint(new.info.machine)
    timed = across_machines or not two_machines
    olds, news = base.by_trial, new.by_trial
    common = [trial for trial in news if trial in olds]
    compared = [trial for trial in common if not (olds[trial].same_as and news[trial].same_as)]
    pairs = [(olds[trial], news[trial]) for trial in compared]
    return Comparison(
        base=base.name,
        new=new.name,
        threshold=threshold,
        warnings=(
            *_machine_warning(base, new, timed=timed),
            *(warning for run in (base, new) for warning in run.warnings),
            *damaged,
            *_differences(base, new, pairs),
        ),
        latencies=tuple(_latencies(base, new, pairs, threshold)) if timed else (),
        outcomes=tuple(
            OutcomeChange(a.trial, a.outcome, b.outcome, b.reason or a.reason)
            for a, b in pairs
            if a.outcome != b.outcome
        ),
        builds=tuple(c for a, b in pairs for c in _builds(a, b) if timed or c.what != "build"),
        only_base=tuple(trial for trial in olds if trial not in news),
        only_new=tuple(trial for trial in news if trial not in olds),
        shared=len(common) - len(compared),
        not_believed=tuple(_all_not_believed(base, new, pairs)),
        two_machines=two_machines,
    )


def _machine_warning(base: Run, new: Run, *, timed: bool) -> Iterator[str]:
    """The first sentence of a comparison of two machines."""
    if fingerprint(base.info.machine) == fingerprint(new.info.machine):
        return
    yield (
        "the runs come from two machines, and each verdict compares the machines as well as the programs"
        if timed
        else "the runs come from two machines, so latencies have no verdicts; --across-machines compares them "
        "nevertheless"
    )


def _latencies(
    base: Run, new: Run, pairs: Sequence[tuple[Record, Record]], threshold: float
) -> Iterator[LatencyChange]:
    for old_record, new_record in pairs:
        old, young = base.measured(old_record), new.measured(new_record)
        if old is None or young is None or old.outcome != "ok" or young.outcome != "ok":
            continue
        if _not_believed(base, old_record) or _not_believed(new, new_record):
            continue
        for path in COMPARED_PATHS:
            a, b = old.latency(path), young.latency(path)
            if a is None or b is None:
                continue
            judged = judge_apart(a.process_medians, b.process_medians, threshold)
            means = [math.exp(statistics.fmean([math.log(s) for s in figure.process_medians])) for figure in (a, b)]
            yield LatencyChange(new_record.trial, path, means[0], means[1], judged)


def _not_believed(run: Run, record: Record) -> str:
    """Why the figures of a record are not believed; empty where they are."""
    measured = run.measured(record)
    return record.not_believed or (measured.not_believed if measured else "")


def _all_not_believed(base: Run, new: Run, pairs: Sequence[tuple[Record, Record]]) -> Iterator[NotBelieved]:
    for pair in pairs:
        for run, record in zip((base, new), pair, strict=True):
            if reason := _not_believed(run, record):
                yield NotBelieved(record.trial, run.name, reason)


def _builds(old: Record, new: Record) -> Iterator[BuildChange]:
    before, after = old.timing.build_s, new.timing.build_s
    if (
        before
        and after
        and abs(after - before) >= BUILD_SECONDS
        and not 1 / BUILD_FACTOR < after / before < BUILD_FACTOR
    ):
        yield BuildChange(new.trial, "build", before, after)
    if old.artifact and new.artifact:
        if old.artifact.nbytes != new.artifact.nbytes:
            yield BuildChange(new.trial, "bytes", old.artifact.nbytes, new.artifact.nbytes)
        if old.artifact.lowered != new.artifact.lowered:
            yield BuildChange(new.trial, "lowered", old.artifact.lowered, new.artifact.lowered)


def _differences(base: Run, new: Run, pairs: Sequence[tuple[Record, Record]]) -> Iterator[str]:
    if not pairs:
        yield "the runs have no trial in common: nothing was compared"
    for what, old, young in (
        ("machines", machine_identity(base.info.machine), machine_identity(new.info.machine)),
        ("versions", base.info.versions, new.info.versions),
    ):
        for key, a, b in differences(old, young):
            yield f"{what} differ in {key}: {a} in {base.name}, {b} in {new.name}"
    if base.info.rnnbench != new.info.rnnbench:
        yield f"rnnbench differs: {base.info.rnnbench} in {base.name}, {new.info.rnnbench} in {new.name}"
    environments = [(a.environment, b.environment) for a, b in pairs]
    for what, settings in (
        ("threads seen", [(a.threads_seen, b.threads_seen) for a, b in environments]),
        ("usable cores", [(len(a.affinity) or None, len(b.affinity) or None) for a, b in environments]),
        ("environment variables", [(a.variables, b.variables) for a, b in environments]),
    ):
        unlike = [(a, b) for a, b in settings if a != b and a is not None and b is not None]
        if unlike:
            a, b = unlike[0]
            yield f"{what} differ in {len(unlike)} trials, in the first of them {a} in {base.name}, {b} in {new.name}"
