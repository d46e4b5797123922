"""The measures of a program that are no latencies, compared between two runs: build time, memory, size, operations.

Size and operations are counts, and compare exactly: MORE, LESS or SAME by the threshold. Build time and memory were
measured once in each run. One value has no interval, so they have no verdict: they are above, below or within the
threshold. How far such ratios scatter over all trials says what that is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rnnbench.results.artifact import OperationStage
from rnnbench.results.record import Record
from rnnbench.results.thresholds import Thresholds
from rnnbench.spelling import listed

Basis = Literal["exact", "one measurement"]
CostResult = Literal["MORE", "LESS", "SAME", "above", "below", "within"]
"""Verdicts on counts in capitals. The others are no verdicts: one measurement against its threshold."""
RISES: tuple[CostResult, ...] = ("MORE", "above")
FALLS: tuple[CostResult, ...] = ("LESS", "below")
BUILD_SECONDS = 0.1
"""A change of build time below these seconds is within every threshold: imports and files alone take as long."""
FEWEST_RATIOS = 8
"""Ratios of one measure from which their scatter over the trials is told."""
ROUNDING = 1e-12
"""Rounding error of the logarithm of a ratio. A change of just the threshold counts as within it."""
NAMED_OPERATIONS = 3
"""Kinds of operation that a change names."""


@dataclass(frozen=True)
class Cost:
    """A measure of a program."""

    name: str
    title: str
    unit: Literal["seconds", "bytes", "count"]
    kind: str
    """Its threshold in `results/thresholds.py`."""
    basis: Basis
    read: Callable[[Record], float | None]
    least: float = 0.0
    """A smaller change, in the unit, is within every threshold."""
    stage: OperationStage | None = None
    """The stage at which operations were counted; None for other measures."""


def _operations(stage: OperationStage) -> Callable[[Record], float | None]:
    def read(record: Record) -> float | None:
        counted = record.artifact.operations.get(stage) if record.artifact else None
        return sum(counted.values()) if counted else None

    return read


def _build_memory(record: Record) -> float | None:
    """None where an earlier run made the build."""
    return None if record.timing.built else record.memory.build_peak


COSTS: Mapping[str, Cost] = {
    cost.name: cost
    for cost in (
        Cost(
            "build", "build time", "seconds", "build", "one measurement", lambda r: r.timing.own_build_s, BUILD_SECONDS
        ),
        Cost("build_memory", "build memory", "bytes", "memory", "one measurement", _build_memory),
        Cost("run_memory", "run memory", "bytes", "memory", "one measurement", lambda r: r.memory.run_peak),
        Cost(
            "bytes", "artifact size", "bytes", "artifact", "exact", lambda r: r.artifact.nbytes if r.artifact else None
        ),
        Cost(
            "operations",
            "operations of the input IR",
            "count",
            "operations",
            "exact",
            _operations(OperationStage.INPUT),
            stage=OperationStage.INPUT,
        ),
        Cost(
            "compiled_operations",
            "operations of the compiled program",
            "count",
            "operations",
            "exact",
            _operations(OperationStage.COMPILED),
            stage=OperationStage.COMPILED,
        ),
    )
}
_RESULTS: Mapping[Basis, tuple[CostResult, CostResult, CostResult]] = {
    "exact": ("MORE", "LESS", "SAME"),
    "one measurement": ("above", "below", "within"),
}
"""For a measure that rose, fell, or stayed within its threshold."""


@dataclass(frozen=True, slots=True)
class CostChange:
    """One measure of one trial in both runs."""

    trial: str
    measure: str
    """Its name in `COSTS`."""
    base: float
    new: float
    threshold: float
    result: CostResult
    detail: str = ""
    """The kinds of operations whose number changed most; empty for other measures."""

    @property
    def cost(self) -> Cost:
        return COSTS[self.measure]

    @property
    def ratio(self) -> float | None:
        """New over base; None where the base is zero."""
        return self.new / self.base if self.base else None


@dataclass(frozen=True)
class Scatter:
    """How far the ratios of a measure scatter over the trials."""

    low: float
    high: float
    """Half of the ratios lie between these."""
    trials: int


def cost_changes(trial: str, case: str, pair: tuple[Record, Record], thresholds: Thresholds) -> Iterator[CostChange]:
    """Every measure that both records of a trial have."""
    for cost in COSTS.values():
        base, new = (cost.read(record) for record in pair)
        if base is None or new is None:
            continue
        threshold = thresholds.of(cost.kind, case)
        result = _result(cost, base, new, threshold)
        detail = _kinds(pair, cost.stage) if cost.stage is not None and base != new else ""
        yield CostChange(trial, cost.name, base, new, threshold, result, detail)


def scatter_of(changes: Sequence[CostChange], measure: str) -> Scatter | None:
    """How far the ratios of a measure scatter; None for fewer than FEWEST_RATIOS trials."""
    ratios = [c.ratio for c in changes if c.measure == measure and c.ratio]
    if len(ratios) < FEWEST_RATIOS:
        return None
    low, high = np.quantile(ratios, (0.25, 0.75))
    return Scatter(float(low), float(high), len(ratios))


def _result(cost: Cost, base: float, new: float, threshold: float) -> CostResult:
    rise, fall, same = _RESULTS[cost.basis]
    if base == new or abs(new - base) < cost.least:
        return same
    if base > 0 and new > 0 and abs(math.log(new / base)) <= math.log1p(threshold) + ROUNDING:
        return same
    return rise if new > base else fall


def _kinds(pair: tuple[Record, Record], stage: OperationStage) -> str:
    before, after = (record.artifact.operations.get(stage, {}) if record.artifact else {} for record in pair)
    moved = sorted(
        ((name, before.get(name, 0), after.get(name, 0)) for name in {*before, *after}),
        key=lambda kind: (-abs(kind[2] - kind[1]), kind[0]),
    )
    return listed([f"{name} {a} → {b}" for name, a, b in moved if a != b], NAMED_OPERATIONS)
