"""Two runs compared trial by trial: what came and went, which measures changed, and which changes matter.

Trials are matched by id. Runs of two machines are compared only where that is asked for. The runs were not sampled in
turn, and may be days apart: a drift of the machine between them is part of the ratio. `rnnbench ab` samples both sides
in turn and has no such drift.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from rnnbench.measure import PATHS
from rnnbench.results.comparison_warnings import (
    Pair,
    device_warnings,
    difference_warnings,
    disturbance_warnings,
    is_one_machine,
    is_one_setting,
    machine_warnings,
    on_two_devices,
)
from rnnbench.results.costs import CostChange, cost_changes
from rnnbench.results.damage import sound
from rnnbench.results.fact_changes import FactChange, NotBelieved, fact_changes, not_believed_of
from rnnbench.results.fail_on import ACROSS_MACHINES_FAIL_ON, DEFAULT_FAIL_ON, FAIL_ON
from rnnbench.results.identity import machine_differences
from rnnbench.results.reading import StoreError
from rnnbench.results.record import Record
from rnnbench.results.run import Run
from rnnbench.results.thresholds import Thresholds
from rnnbench.results.timing import Latency
from rnnbench.results.verdict import Judgement, Verdict, judge_apart
from rnnbench.spelling import listed

COMPARED_PATHS: tuple[str, ...] = tuple(path.name for path in PATHS.values() if path.compared)
"""Latency paths that every trial has, and that `rnnbench ab` samples."""
NAMED_DIFFERENCES = 3
"""Differences of two machines that a refusal names."""


@dataclass(frozen=True, slots=True)
class LatencyChange:
    """One latency of one trial in both runs, in seconds per call, with its verdict."""

    trial: str
    path: str
    """Name of the latency path."""
    base: float
    new: float
    judged: Judgement
    threshold: float
    seconds: float | None = None
    """Wall time of its pairs of processes; None where the runs were not sampled in pairs."""

    @property
    def verdict(self) -> Verdict:
        return self.judged.verdict

    @property
    def ratio(self) -> float:
        return self.judged.ratio


@dataclass(frozen=True)
class Comparison:
    base: str
    new: str
    thresholds: Thresholds
    warnings: tuple[str, ...]
    """Differences of machine, versions and settings: reasons to distrust the rest. That of machines comes first."""
    latencies: tuple[LatencyChange, ...]
    costs: tuple[CostChange, ...]
    """Measures that are no latencies, of trials that are ok and believed in both runs."""
    facts: tuple[FactChange, ...]
    """What changed and is no number."""
    trials: int
    """Trials of both runs."""
    shared: int
    """Trials without measures of their own, since in both runs they share the measurement of another."""
    not_believed: tuple[NotBelieved, ...] = ()
    """Trials whose figures are not believed in a run. They have no verdicts."""
    paired: bool = False
    """Whether the two were sampled in turn, process by process (`rnnbench ab`)."""
    about: tuple[str, ...] = ()
    """What the two runs are, and what the comparison took, a sentence each."""
    of_ab: bool = False
    """Whether the runs are the two sides of one `rnnbench ab`."""
    two_machines: bool = False
    """Whether the runs come from different machines. A verdict then compares the machines as well."""
    fail_on: tuple[str, ...] = DEFAULT_FAIL_ON
    """Names of `FAIL_ON` that count as a regression."""
    found: Mapping[str, int] = field(init=False)
    """How often each name of `FAIL_ON` was found, whether it counts or not; only those that were."""

    def __post_init__(self) -> None:
        counts = {name: reason.count(self) for name, reason in FAIL_ON.items()}
        object.__setattr__(self, "found", {name: count for name, count in counts.items() if count})

    @property
    def regressed(self) -> bool:
        """Whether something was found that `fail_on` names."""
        return any(name in self.fail_on for name in self.found)

    def count(self, verdict: Verdict) -> int:
        return sum(change.verdict == verdict for change in self.latencies)


def compared_record(record: Record) -> Record:
    """The record without what `compare_runs` never looks at: about half of its memory is left."""
    return record.model_copy(
        update={
            "conformance": {name: record.conformance[name] for name in record.failed_checks},
            "timing": record.timing.model_copy(update={"state_copy": None, "dispatch_floor": None}),
            "common_trial": None,
            "floor": None,
            "metrics": {},
        }
    )


def compare_runs(
    base: Run,
    new: Run,
    thresholds: Mapping[str, float] | None = None,
    *,
    across_machines: bool = False,
    fail_on: Collection[str] | None = None,
) -> Comparison:
    """Compare the trials that both runs have, matched by id. Needs SciPy, of the extra `report`.

    `thresholds`, by kind, replace those of the cases. `fail_on` has names of `FAIL_ON`; its default leaves latencies
    out where the machines differ. Raises StoreError for runs of two machines, unless `across_machines`.
    """
    on_one_machine = any(is_one_machine(old, young) for old in base.parts for young in new.parts)
    if not on_one_machine and not across_machines:
        raise StoreError(_refusal(base, new))
    (base, new), damaged = sound((base, new))
    limits = Thresholds.for_run(new.info, thresholds or {})
    olds, news = base.by_trial, new.by_trial
    pairs = [(olds[trial], record) for trial, record in news.items() if trial in olds]
    apart = [young for old, young in pairs if not is_one_machine(base.part_of(old), new.part_of(young))]
    two_machines = across_machines and (bool(apart) or not on_one_machine)
    moved = frozenset() if across_machines else frozenset(record.trial for record in apart)
    elsewhere = [(old, young) for old, young in pairs if young.trial not in moved and on_two_devices(old, young)]
    left_out = moved if across_machines else moved | {young.trial for _, young in elsewhere}
    compared = [(old, young) for old, young in pairs if not (old.same_as and young.same_as)]
    measured = list(_trial_pairs(base, new, [pair for pair in compared if pair[1].trial not in left_out]))
    default = ACROSS_MACHINES_FAIL_ON if two_machines else DEFAULT_FAIL_ON
    return Comparison(
        base=base.name,
        new=new.name,
        thresholds=limits,
        warnings=(
            *machine_warnings(two_machines=two_machines, moved=len(moved)),
            *device_warnings(elsewhere, are_compared=across_machines),
            *(warning for run in (base, new) for warning in run.warnings),
            *damaged,
            *difference_warnings(base, new, pairs),
            *disturbance_warnings(base, _compared_latencies(pair.base for pair in measured)),
            *disturbance_warnings(new, _compared_latencies(pair.new for pair in measured)),
        ),
        latencies=tuple(chain.from_iterable(_latencies(trial, limits) for trial in measured)),
        costs=tuple(chain.from_iterable(cost_changes(t.trial, t.case, (t.base, t.new), limits) for t in measured)),
        facts=tuple(fact_changes(base, new)),
        trials=len(pairs),
        shared=len(pairs) - len(compared),
        not_believed=tuple(_not_believed(base, new, compared)),
        of_ab=_of_ab(base, new),
        two_machines=two_machines,
        fail_on=default if fail_on is None else tuple(fail_on),
    )


@dataclass(frozen=True, slots=True)
class _TrialPair:
    """A trial with its measurement in each run, its own or the one that it shares."""

    trial: str
    case: str
    base: Record
    new: Record


def _trial_pairs(base: Run, new: Run, pairs: Sequence[Pair]) -> Iterator[_TrialPair]:
    """Trials whose measures are compared: those that are ok and believed in both runs, on a real device."""
    for old_record, new_record in pairs:
        old, young = base.measured(old_record), new.measured(new_record)
        if old is None or young is None or old.outcome != "ok" or young.outcome != "ok":
            continue
        if old.on_software_device or young.on_software_device:
            continue
        if not (not_believed_of(base, old_record) or not_believed_of(new, new_record)):
            yield _TrialPair(new_record.trial, new_record.case, old, young)


def _compared_latencies(records: Iterable[Record]) -> list[Latency]:
    return [latency for record in records for path in COMPARED_PATHS if (latency := record.latency(path))]


def _of_ab(base: Run, new: Run) -> bool:
    """Whether they are the two sides of one `ab`: they have one time, or older runs one name but for the side."""
    sides = (base.info.side, new.info.side)
    is_one = base.info.started == new.info.started or base.info.run[:-1] == new.info.run[:-1]
    return None not in sides and sides[0] != sides[1] and is_one


def _refusal(base: Run, new: Run) -> str:
    unlike = machine_differences(base.info.machine, new.info.machine)
    differing = [f"{key}: {a} and {b}" for key, a, b in unlike]
    return (
        f"{base.name} and {new.name} come from different machines ({listed(differing, NAMED_DIFFERENCES)}), so a "
        f"comparison would compare the machines; compare runs of one machine, or add --across-machines, which marks "
        f"every result"
    )


def _latencies(trial: _TrialPair, thresholds: Thresholds) -> Iterator[LatencyChange]:
    threshold = thresholds.of("latency", trial.case)
    for path in PATHS:
        a, b = trial.base.latency(path), trial.new.latency(path)
        if a is None or b is None or not is_one_setting(a, b):
            continue
        judged = judge_apart(a.process_medians, b.process_medians, threshold)
        means = [math.exp(statistics.fmean(map(math.log, figure.process_medians))) for figure in (a, b)]
        yield LatencyChange(trial.trial, path, means[0], means[1], judged, threshold)


def _not_believed(base: Run, new: Run, pairs: Sequence[Pair]) -> Iterator[NotBelieved]:
    for pair in pairs:
        for run, record in zip((base, new), pair, strict=True):
            if reason := not_believed_of(run, record):
                yield NotBelieved(record.trial, run.name, reason)
