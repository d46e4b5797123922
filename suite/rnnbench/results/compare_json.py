"""A comparison as one JSON object, for programs. Times are seconds, sizes are bytes; what has no value is null."""

from __future__ import annotations

import math
from typing import Any

from rnnbench.results.compare import Comparison, LatencyChange
from rnnbench.results.costs import CostChange
from rnnbench.results.fact_changes import FactChange
from rnnbench.results.fail_on import FAIL_ON
from rnnbench.results.text import writable
from rnnbench.results.thresholds import THRESHOLDS

FORMAT = 1
"""Version of the object. Keys may be added to it; a key that changes its meaning makes a new version."""


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """`docs/results.md` describes the keys."""
    thresholds = comparison.thresholds
    content = {
        "format": FORMAT,
        "base": comparison.base,
        "new": comparison.new,
        "regressed": comparison.regressed,
        "fail_on": list(comparison.fail_on),
        "found": {name: comparison.found.get(name, 0) for name in FAIL_ON},
        "across_machines": comparison.two_machines,
        "paired": comparison.paired,
        "trials": comparison.trials,
        "thresholds": {
            "given": dict(thresholds.given),
            "cases": {case: dict(kinds) for case, kinds in thresholds.by_case.items()},
            "defaults": {kind: one.default for kind, one in THRESHOLDS.items()},
        },
        "warnings": list(comparison.warnings),
        "facts": [_fact(change) for change in comparison.facts],
        "latencies": [_latency(change) for change in comparison.latencies],
        "measures": [_measure(change) for change in comparison.costs],
        "not_believed": [
            {"trial": record.trial, "run": record.run, "reason": record.reason} for record in comparison.not_believed
        ],
    }
    plain: dict[str, Any] = _plain(content)
    return plain


def _fact(change: FactChange) -> dict[str, Any]:
    return {
        "trial": change.trial,
        "fact": change.fact,
        "base": change.base,
        "new": change.new,
        "direction": change.direction,
        "sentence": change.sentence,
    }


def _latency(change: LatencyChange) -> dict[str, Any]:
    return {
        "trial": change.trial,
        "path": change.path,
        "base": change.base,
        "new": change.new,
        "ratio": change.ratio,
        "interval": change.judged.interval,
        "verdict": change.verdict,
        "processes": change.judged.observations,
        "threshold": change.threshold,
    }


def _measure(change: CostChange) -> dict[str, Any]:
    return {
        "trial": change.trial,
        "measure": change.measure,
        "unit": change.cost.unit,
        "base": change.base,
        "new": change.new,
        "ratio": change.ratio,
        "interval": None,
        "basis": change.cost.basis,
        "result": change.result,
        "threshold": change.threshold,
        "detail": change.detail,
    }


def _plain(value: Any) -> Any:
    """`value` as JSON can hold it: no infinity, no NaN, no lone surrogate."""
    if isinstance(value, dict):
        return {writable(str(key)): _plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(held) for held in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return writable(value) if isinstance(value, str) else value
