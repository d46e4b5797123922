"""Thresholds: the command before the case, the case before the default; and what is none is refused."""

from __future__ import annotations

import fake_records as fake
import pytest

from rnnbench.results.compare import compare_runs
from rnnbench.results.store import Run
from rnnbench.results.thresholds import THRESHOLDS, Thresholds, parse_thresholds, threshold_differences

OF_CASE = {"fake_case": {"latency": 0.5, "artifact": 0.2}}


def test_the_command_counts_before_the_case_and_the_case_before_the_default() -> None:
    thresholds = Thresholds.for_run(fake.info(thresholds=OF_CASE), {"artifact": 0.3})
    assert thresholds.of("artifact", "fake_case") == 0.3
    assert thresholds.of("latency", "fake_case") == 0.5
    assert thresholds.of("latency", "another") == THRESHOLDS["latency"].default == 0.03
    assert thresholds.of("memory", "fake_case") == THRESHOLDS["memory"].default == 0.1


def test_the_new_runs_thresholds_count_and_a_difference_is_a_warning(tmp_path) -> None:
    pytest.importorskip("scipy")
    record = fake.record(bound=1e-3, spread=1e-3)
    slower = fake.record(bound=1.2e-3, spread=1e-3)
    plain = Run(tmp_path, fake.info(run="plain"), (record,))
    loose = Run(tmp_path, fake.info(run="loose", thresholds=OF_CASE), (slower,))
    assert {c.verdict for c in compare_runs(plain, loose).latencies} == {"SAME"}
    assert {c.verdict for c in compare_runs(loose, plain).latencies} == {"FASTER"}
    (warning,) = compare_runs(plain, loose).warnings
    assert (
        "thresholds of fake_case are artifact 0.2, latency 0.5 in loose, which count, and were the defaults" in warning
    )
    assert {c.verdict for c in compare_runs(plain, loose, {"latency": 0.03}).latencies} == {"SLOWER"}


def test_thresholds_of_a_run_that_are_none_are_left_out() -> None:
    damaged = fake.info(thresholds={"fake_case": {"latency": -1.0, "no_such_kind": 0.1, "memory": float("nan")}})
    assert Thresholds.for_run(damaged, {}).by_case == {"fake_case": {}}


@pytest.mark.parametrize(
    ("texts", "given"),
    [
        (["0.05"], {"latency": 0.05}),
        (["5%"], {"latency": 0.05}),
        (["memory=20%, build=0.5", "operations=0"], {"memory": 0.2, "build": 0.5, "operations": 0.0}),
        ([], {}),
    ],
)
def test_thresholds_are_shares_with_their_kind(texts: list[str], given: dict[str, float]) -> None:
    assert parse_thresholds(texts) == pytest.approx(given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "the threshold of latency is a relative change from 0.001 to 0.9"),
        ("latency=0", "the threshold of latency is"),
        ("speed=5%", "unknown threshold 'speed'; expected one of latency, build, memory"),
        ("much", "expected a share such as 3% or 0.03"),
        ("memory=-1", "expected a share"),
        ("", "expected a share"),
        ("3%,latency=5%", "the threshold of latency is given twice; give it once"),
    ],
)
def test_what_is_no_threshold_is_refused_with_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_thresholds([text])


def test_thresholds_of_a_case_that_one_of_the_runs_does_not_know_are_no_difference() -> None:
    known, unknown = fake.info(thresholds=OF_CASE), fake.info(cases=())
    for base, new in ((unknown, known), (known, unknown)):
        assert list(threshold_differences(base, new, ["fake_case"])) == []
    assert len(list(threshold_differences(fake.info(), known, ["fake_case"]))) == 1
