"""Build time, memory, size and operations: counts compare exactly, and one measurement is never called a verdict."""

from __future__ import annotations

from typing import Any

import fake_records as fake
import pytest

from rnnbench.results.costs import COSTS, cost_changes, scatter_of
from rnnbench.results.record import Record
from rnnbench.results.thresholds import Thresholds


def changed(record: Record, **figures: Any) -> Record:
    """The record with other measures, by their names in COSTS."""
    assert record.artifact is not None
    memory = {"build_memory": "build_peak", "run_memory": "run_peak"}
    stages = {"operations": "input", "compiled_operations": "compiled"}
    update: dict[str, Any] = {
        "timing": record.timing.model_copy(update={"build_s": figures.get("build", record.timing.build_s)}),
        "memory": record.memory.model_copy(update={memory[k]: v for k, v in figures.items() if k in memory}),
        "artifact": record.artifact.model_copy(
            update={
                "nbytes": figures.get("bytes", record.artifact.nbytes),
                "operations": {
                    **record.artifact.operations,
                    **{stages[k]: v for k, v in figures.items() if k in stages},
                },
            }
        ),
    }
    return record.model_copy(update=update)


def results(base: Record, new: Record, **given: float) -> dict[str, str]:
    changes = cost_changes(new.trial, new.case, (base, new), Thresholds(given))
    return {change.measure: change.result for change in changes}


@pytest.mark.parametrize(
    ("measure", "base", "new", "result"),
    [
        ("build", 1.0, 1.2, "within"),
        ("build", 1.0, 1.3, "above"),
        ("build", 1.3, 1.0, "below"),
        ("build", 0.01, 0.09, "within"),
        ("build_memory", 100 << 20, 109 << 20, "within"),
        ("build_memory", 100 << 20, 120 << 20, "above"),
        ("run_memory", 120 << 20, 100 << 20, "below"),
        ("bytes", 1000, 1010, "SAME"),
        ("bytes", 1000, 1011, "MORE"),
        ("bytes", 1011, 1000, "LESS"),
        ("bytes", 0, 1, "MORE"),
        ("operations", {"add": 1000}, {"add": 1000}, "SAME"),
        ("operations", {"add": 1000}, {"add": 1001}, "MORE"),
        ("compiled_operations", {"add": 2, "mul": 2}, {"add": 3}, "LESS"),
    ],
)
def test_a_measure_is_held_against_its_threshold(measure: str, base: Any, new: Any, result: str) -> None:
    record = fake.record()
    assert results(changed(record, **{measure: base}), changed(record, **{measure: new}))[measure] == result


def test_one_measurement_has_no_verdict_and_counts_have() -> None:
    cost_results = {name: results(fake.record(), fake.record())[name] for name in COSTS if name != "operations"}
    assert cost_results == {
        "build": "within",
        "build_memory": "within",
        "run_memory": "within",
        "bytes": "SAME",
        "compiled_operations": "SAME",
    }
    assert {cost.name for cost in COSTS.values() if cost.basis == "one measurement"} == {
        "build",
        "build_memory",
        "run_memory",
    }


def test_a_threshold_that_is_given_counts() -> None:
    base, new = changed(fake.record(), bytes=1000), changed(fake.record(), bytes=1100)
    assert results(base, new)["bytes"] == "MORE"
    assert results(base, new, artifact=0.2)["bytes"] == "SAME"


def test_what_one_run_did_not_measure_is_not_compared() -> None:
    assert "build" not in results(fake.record(), changed(fake.record(), build=None))


def test_operations_name_the_kinds_that_changed_most() -> None:
    base = changed(fake.record(), operations={"a": 1, "b": 2, "c": 3, "d": 4, "e": 5})
    new = changed(fake.record(), operations={"a": 9, "b": 2, "c": 4, "d": 5, "f": 1})
    (change,) = [c for c in cost_changes(new.trial, new.case, (base, new), Thresholds()) if c.measure == "operations"]
    assert change.detail == "a 1 → 9, e 5 → 0, c 3 → 4 and 2 more"


def test_how_far_single_measurements_scatter_is_told_over_the_trials() -> None:
    pairs = [
        (changed(fake.record(chunk=n), build=10.0), changed(fake.record(chunk=n), build=10.0 + n)) for n in range(1, 10)
    ]
    changes = [change for pair in pairs for change in cost_changes(pair[0].trial, "fake_case", pair, Thresholds())]
    scatter = scatter_of(changes, "build")
    assert scatter is not None
    assert (scatter.low, scatter.high, scatter.trials) == (pytest.approx(1.3), pytest.approx(1.7), 9)
    assert scatter_of(changes[:6], "build") is None


def test_a_build_of_an_earlier_run_is_no_measurement() -> None:
    record = fake.record()
    earlier = record.model_copy(update={"timing": record.timing.model_copy(update={"built": "2026-01-31T12:00:00Z"})})
    assert {"build", "build_memory"}.isdisjoint(results(record, earlier))
