"""What the formats say of figures, units and trials without figures, held against the rules of their readers.

github-action-benchmark and Bencher are no Python packages: docs/exports.md says how their own code was tried.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_records as fake
import numpy as np
import pytest
from junitparser import JUnitXml
from made_runs import NEW, OLD, SLOWER, exported, made_records, made_run
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from pytest_benchmark.stats import Stats

from rnnbench.results import SAMPLE_COLUMNS, ExpectedFailureResult, Run, StoreError, read_run, save_samples
from rnnbench.results.exports import EXPORTS, BinaryExport, FolderExport
from rnnbench.results.exports.measured import machine_facts, started
from rnnbench.results.exports.pyperf import first_ends
from rnnbench.results.exports.pytest_benchmark import statistics_of

FIGURES = ("bencher", "github-action-benchmark", "pyperf", "pytest-benchmark")
WITH_FIGURES = {record.trial for record in made_records(OLD)[:3]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return made_run(tmp_path_factory.mktemp("run"), OLD)


def loaded(name: str, run: Any) -> Any:
    """Its JSON; a figure that is null, infinite or NaN is refused."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(exported(name, run), parse_constant=refuse)


def test_the_page_has_a_row_for_each_format() -> None:
    page = (Path(__file__).parents[3] / "docs" / "exports.md").read_text()
    table = page.partition("| `--format` |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.M) == list(EXPORTS)


def test_the_action_s_entries_have_a_name_a_unit_and_a_value_above_zero(run) -> None:
    entries = loaded("github-action-benchmark", run)
    for entry in entries:
        assert set(entry) <= {"name", "unit", "value", "range", "extra"}
        assert {type(entry[key]) for key in ("name", "unit", "extra")} == {str}
        assert type(entry["value"]) in (int, float)
        assert entry["value"] > 0
        assert entry["unit"] in ("us", "s", "bytes")
    assert len({entry["name"] for entry in entries}) == len(entries)
    assert {entry["name"].split()[0] for entry in entries} == WITH_FIGURES
    (bound,) = [entry for entry in entries if entry["name"] == f"{SLOWER} bound"]
    record = read_run(run).by_trial[SLOWER]
    assert (bound["unit"], bound["value"]) == ("us", record.latency("bound").median * 1e6)
    assert re.fullmatch(r"± \d+(\.\d+)?", bound["range"]), "a number, so that the action can change its unit"
    assert float(bound["range"][2:]) == pytest.approx(125 - bound["value"], rel=1e-5), "the longer side of the interval"
    assert bound["extra"].splitlines()[-1] == "3 processes"
    first, shared = made_records(OLD)[1:3]
    (bound,) = [entry for entry in entries if entry["name"] == f"{shared.trial} bound"]
    assert bound["extra"].splitlines()[-1] == f"measured as {first.trial}"


def test_bencher_s_measures_are_numbers_in_the_units_of_its_built_in_ones(run) -> None:
    benchmarks = loaded("bencher", run)
    assert set(benchmarks) == WITH_FIGURES
    record = read_run(run).by_trial[SLOWER]
    measures = benchmarks[SLOWER]
    assert measures["latency"]["value"] == record.latency("bound").median * 1e9
    assert (measures["latency"]["lower_value"], measures["latency"]["upper_value"]) == pytest.approx((90e3, 125e3))
    assert measures["public-latency"] == {"value": record.latency("public").median * 1e9}
    assert measures["build-time"] == {"value": 1.5}
    assert measures["file-size"] == {"value": record.artifact.nbytes}
    for metrics in benchmarks.values():
        for name, metric in metrics.items():
            assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name), "a slug"
            assert set(metric) <= {"value", "lower_value", "upper_value"}
            assert {type(value) for value in metric.values()} <= {int, float}


@pytest.mark.parametrize("name", FIGURES)
def test_a_trial_without_figures_is_absent(run, name: str) -> None:
    text = exported(name, run).decode()
    for record in read_run(run).records:
        assert (record.trial in text) == (record.trial in WITH_FIGURES), record.outcome


def entries_of(record: Any, tmp_path: Path) -> dict[str, Any]:
    """The action's entries of a run of one trial, by the figure."""
    entries = loaded("github-action-benchmark", fake.write_run(tmp_path / "run", [record]))
    return {entry["name"].rpartition(" ")[2]: entry for entry in entries}


def test_a_range_is_the_longer_side_also_where_that_is_the_lower_one(tmp_path) -> None:
    record = fake.record()
    bound = record.timing.latency["bound"]
    interval = (bound.median - 30e-6, bound.median + 10e-6)
    entries = entries_of(fake.with_latencies(record, bound=bound.model_copy(update={"interval": interval})), tmp_path)
    assert float(entries["bound"]["range"][2:]) == pytest.approx(30, rel=1e-5)


def test_a_build_of_an_earlier_run_is_no_figure_of_this_one(tmp_path) -> None:
    record = fake.record()
    timing = record.timing.model_copy(update={"built": "2026-01-01T00:00:00Z"})
    assert set(entries_of(record.model_copy(update={"timing": timing}), tmp_path)) == {
        *("bound", "public"),
        *("memory", "artifact"),
    }


def test_a_device_that_the_processor_plays_has_no_figures(tmp_path) -> None:
    run = read_run(fake.write_run(tmp_path / "run", [fake.record(device=fake.SOFTWARE_DEVICE)]))
    with pytest.raises(StoreError, match="no trial has figures"):
        EXPORTS["github-action-benchmark"].write(run, io.StringIO())


def test_the_one_that_is_not_believed_passes_in_junit_and_says_why(run) -> None:
    (suite,) = JUnitXml.fromstring(exported("junit", run).decode())
    (test,) = [test for test in suite if "onnx/looped" in test.name]
    assert test.is_passed
    text = test.tostring().decode()
    assert "work was moved out of the call" in text
    assert "bound_s" not in text
    believed = {
        sample.labels["trial"]: sample.labels["believed"] for sample in _trials(exported("openmetrics", run).decode())
    }
    assert [trial for trial, word in believed.items() if word == "no"] == [test.name]


def test_statistics_are_of_the_samples_or_else_of_the_processes(run, tmp_path) -> None:
    bare = fake.write_run(tmp_path / "bare", made_records(OLD))
    for of, what, rounds in ((run, "samples", 300), (bare, "process medians", 3)):
        benchmarks = {each["name"]: each for each in loaded("pytest-benchmark", of)["benchmarks"]}
        each = benchmarks[f"{SLOWER}[bound]"]
        latency = read_run(of).by_trial[SLOWER].latency("bound")
        seconds = read_run(of).samples(SLOWER)[:, 3] if rounds == 300 else np.array(latency.process_medians)
        assert each["extra_info"]["rounds_are"] == what
        assert "model" not in each["params"]
        assert each["stats"]["rounds"] == rounds
        for name, value in (("median", np.median(seconds)), ("stddev", seconds.std(ddof=1)), ("max", seconds.max())):
            assert each["stats"][name] == pytest.approx(value)
        assert each["stats"]["ld15iqr"] <= each["stats"]["q1"] <= each["stats"]["median"] <= each["stats"]["q3"]


def test_outliers_and_means_of_rounds_are_those_that_pytest_benchmark_computes() -> None:
    seconds, own = np.random.default_rng(0).gamma(2.0, 1.0, 300), Stats()
    for each in seconds.tolist():
        own.update(each)
    stats = statistics_of(seconds, 1)
    assert stats["iqr_outliers"]
    for name in ("outliers", "stddev_outliers", "iqr_outliers", "rounds"):
        assert stats[name] == getattr(own, name), name
    for name in ("min", "max", "mean", "stddev", "median", "ld15iqr", "hd15iqr", "ops", "total"):
        assert stats[name] == pytest.approx(getattr(own, name)), name


def test_rounds_without_scatter_have_no_outlier() -> None:
    assert statistics_of(np.ones(3), 1)["outliers"] == "0;0"


def test_samples_that_took_no_time_are_none(tmp_path) -> None:
    record = fake.record(spread=0.0)
    rows = np.zeros((4, len(SAMPLE_COLUMNS)))
    rows[1:, SAMPLE_COLUMNS.index("seconds")] = 1e-4
    latency = fake.of_samples(record.timing.latency["bound"], rows)
    folder = fake.write_run(tmp_path / "run", [fake.with_latencies(record, bound=latency)])
    save_samples(folder, record.trial[-8:], "bound", rows)
    assert len(read_run(folder).samples(record.trial)) == 4
    assert loaded("pytest-benchmark", folder)["benchmarks"][0]["extra_info"]["rounds_are"] == "process medians"


def test_a_process_begins_when_its_first_sample_ended_and_a_time_that_cannot_be_is_left_out() -> None:
    rows = np.zeros((4, len(SAMPLE_COLUMNS)))
    rows[:, SAMPLE_COLUMNS.index("process")] = [0, 0, 1, 2]
    rows[:, SAMPLE_COLUMNS.index("end")] = [100.0, 60.0, 1e300, 1e15]
    assert list(first_ends(rows)) == [(0, "1970-01-01 00:01:00")]


def test_pyperf_is_told_the_calls_of_a_sample(tmp_path) -> None:
    record = fake.record()
    bound = record.timing.latency["bound"]
    sampling = bound.sampling.model_copy(update={"calls_per_sample": 7})
    changed = fake.with_latencies(record, bound=bound.model_copy(update={"sampling": sampling}))
    (one, _) = loaded("pyperf", fake.write_run(tmp_path / "run", [changed]))["benchmarks"]
    assert one["metadata"]["loops"] == 7


def test_a_time_without_a_zone_is_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        assert started(fake.info(started="2026-01-31T12:00:00")) == datetime(2026, 1, 31, 12, tzinfo=UTC)
    time.tzset()


def test_a_shared_measurement_is_marked(run) -> None:
    first, shared = made_records(OLD)[1:3]
    benchmarks = {each["name"]: each for each in loaded("pytest-benchmark", run)["benchmarks"]}
    assert benchmarks[f"{shared.trial}[bound]"]["extra_info"]["same_as"] == first.trial
    assert benchmarks[f"{shared.trial}[bound]"]["stats"] == benchmarks[f"{first.trial}[bound]"]["stats"]
    (suite,) = JUnitXml.fromstring(exported("junit", run).decode())
    (test,) = [test for test in suite if test.name == shared.trial]
    assert f'<property name="same_as" value="{first.trial}"' in test.tostring().decode()


def test_runs_without_samples_have_no_invented_date_in_pyperf(tmp_path) -> None:
    bare = fake.write_run(tmp_path / "bare", made_records(NEW))
    assert "date" not in json.dumps(loaded("pyperf", bare))


@pytest.mark.parametrize("name", ["pyperf", "github-action-benchmark"])
def test_a_run_without_figures_is_a_sentence_where_the_reader_needs_one(tmp_path, name: str) -> None:
    run = read_run(fake.write_run(tmp_path / "none", [fake.record(outcome="crashed")]))
    with pytest.raises(StoreError, match="no trial has"):
        EXPORTS[name].write(run, None)


@pytest.mark.parametrize(("verdict", "element"), [("failed", "skipped"), ("passed", "failure")])
def test_expected_failures_are_skipped_in_junit_and_fail_where_they_pass(tmp_path, verdict, element) -> None:
    expected = ExpectedFailureResult(what="timed", verdict=verdict, reason="fake: known", upstream="fake/project#1")
    outcome = "nonconforming" if verdict == "failed" else "ok"
    run = fake.write_run(tmp_path / "run", [fake.record(outcome=outcome, expected_failures=(expected,))])
    text = exported("junit", run).decode()
    assert text.count(f"<{element} ") == 1
    assert ("fake: known fake/project#1" in text) == (verdict == "failed")


def test_junit_has_a_suite_for_each_case_at_the_time_of_the_run(tmp_path) -> None:
    records = [
        fake.record(chunk=chunk).model_copy(update={"case": case}) for chunk, case in ((1, "a"), (2, "b"), (4, "a"))
    ]
    suites = list(JUnitXml.fromstring(exported("junit", fake.write_run(tmp_path / "run", records)).decode()))
    assert [(suite.name, suite.tests, suite.timestamp) for suite in suites] == [
        ("a", 2, "2026-01-31T12:00:00"),
        ("b", 1, "2026-01-31T12:00:00"),
    ]


def test_junit_names_what_passed_unexpectedly_and_what_is_wrong_beside_it(tmp_path) -> None:
    expected = [
        ExpectedFailureResult(what=what, verdict=verdict, reason="fake: known", upstream="")
        for what, verdict in (("reset", "passed"), ("timed", "failed"))
    ]
    record = fake.record(outcome="nonconforming", expected_failures=expected)
    (message,) = re.findall(
        r'message="([^"]*)"', exported("junit", fake.write_run(tmp_path / "run", [record])).decode()
    )
    assert message.startswith("an expected failure passed: reset; remove its entry")
    assert message.endswith(f"; and the trial is nonconforming: {record.reason}")


@pytest.mark.parametrize("outcome", ["unsupported", "unavailable"])
def test_junit_skips_what_could_not_be_run(tmp_path, outcome) -> None:
    text = exported("junit", fake.write_run(tmp_path / "run", [fake.record(outcome=outcome)])).decode()
    assert text.count(f'<skipped type="{outcome}"') == 1


def test_junit_says_at_which_stage_a_trial_ended_and_where_a_fault_is_reported(tmp_path) -> None:
    records = [fake.record("fakekernel", "tir", outcome="crashed"), fake.record(outcome="unsupported")]
    text = exported("junit", fake.write_run(tmp_path / "run", records)).decode()
    assert f'message="at sample: {fake.REASONS["crashed"]}"' in text
    assert ">upstream: fake/project#7</skipped>" in text


@pytest.mark.parametrize("name", sorted(EXPORTS))
def test_hostile_text_stays_text(tmp_path, name: str) -> None:
    hostile = '../x"\\\n</testcase>\x00\x1b[31m\ud800\ufffe' + "y" * 3000
    record = fake.record().model_copy(update={"trial": hostile, "case": hostile, "backend": hostile})
    crashed = fake.record("fakemlir", outcome="crashed").model_copy(update={"reason": hostile, "route": hostile})
    run = Run(tmp_path, fake.info(run=hostile, machine={"cpu": hostile}), (record, crashed))
    chosen, file = EXPORTS[name], tmp_path / "file"
    if isinstance(chosen, FolderExport):
        chosen.write(run, tmp_path / "asv")
        return
    if isinstance(chosen, BinaryExport):
        with file.open("wb") as stream:
            chosen.write(run, stream)
    else:
        with file.open("w", encoding="utf-8") as text:
            chosen.write(run, text)
    content = file.read_bytes()
    if name in ("csv", "jsonl", "parquet"):
        assert content, "rows are the record's own text, quoted by their format"
        assert name == "parquet" or not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]", content)
        return
    assert not re.search(rb"[\x00-\x09\x0b-\x1f]", content)
    if name == "junit":
        assert JUnitXml.fromstring(content.decode()).tests == 2
    elif name == "openmetrics":
        (crash,) = [s for s in _trials(content.decode()) if s.labels["outcome"] == "crashed"]
        assert crash.labels["run"].startswith('../x"\\ </testcase>\\x00')
    else:
        json.loads(content)


@pytest.mark.parametrize("name", ["csv", "jsonl"])
def test_no_text_ends_a_row_or_moves_the_cursor_of_a_terminal(name: str) -> None:
    """A carriage return ends a row, too, and what stood behind it would begin a cell, as a formula does."""
    text = "a\r=cmd|'/c calc'!A1\x9b31m\x85b"
    record = fake.record("fakemlir", outcome="crashed").model_copy(update={"reason": text, "stage": "\r=1"})
    stream = io.StringIO()
    EXPORTS[name].write(Run(Path("fake"), fake.info(), (record,)), stream)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", stream.getvalue())
    if name == "jsonl":
        assert json.loads(stream.getvalue())["reason"] == text
        return
    _, row = csv.reader(io.StringIO(stream.getvalue(), newline=""))
    assert not [cell for cell in row if cell.startswith(("=", "+", "-", "@"))]


def _trials(text: str) -> Any:
    return next(family for family in text_string_to_metric_families(text) if family.name == "rnnbench_trial").samples


def test_both_ends_of_an_interval_are_in_the_metrics(run) -> None:
    families = {family.name: family for family in text_string_to_metric_families(exported("openmetrics", run).decode())}
    ends = [
        sample.value
        for end in ("low", "high")
        for sample in families[f"rnnbench_latency_{end}_seconds"].samples
        if (sample.labels["trial"], sample.labels["path"]) == (SLOWER, "bound")
    ]
    assert tuple(ends) == read_run(run).by_trial[SLOWER].latency("bound").interval


def test_metrics_are_of_the_second_at_which_the_run_began(run) -> None:
    families = text_string_to_metric_families(exported("openmetrics", run).decode())
    times = {float(sample.timestamp) for family in families for sample in family.samples}
    assert times == {datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()}


def test_versions_are_in_the_same_order_whichever_order_the_record_has(tmp_path) -> None:
    """Of a label with another text Prometheus makes another series."""
    record = fake.record().model_copy(update={"version": {"onnx": "1.2", "ml": "3", "a": "4"}})
    (trial,) = _trials(exported("openmetrics", fake.write_run(tmp_path / "run", [record])).decode())
    assert trial.labels["versions"] == "a 4, ml 3, onnx 1.2"


def test_what_json_has_no_number_for_is_text_in_json_lines() -> None:
    values = {"a": math.nan, "b": math.inf, "c": -math.inf, "d": 1.5, "e": None, "f": "12 µs"}
    stream = io.StringIO()
    EXPORTS["jsonl"].write(SimpleNamespace(rows=lambda: [values]), stream)
    assert "12 µs" in stream.getvalue()
    assert json.loads(stream.getvalue()) == {
        "a": "NaN",
        "b": "Infinity",
        "c": "-Infinity",
        "d": 1.5,
        "e": None,
        "f": "12 µs",
    }
    assert "12 µs" in stream.getvalue()


def test_facts_of_a_machine_are_text_or_whole_numbers_that_every_reader_has(tmp_path) -> None:
    """A double has each whole number below 2⁵³."""
    machine = {"cpu": "x", "cores": (1 << 53) - 1, "memory": 1 << 53, "idle": True, "share": 0.5}
    assert machine_facts(Run(tmp_path, fake.info(machine=machine), ())) == {"cpu": "x", "cores": (1 << 53) - 1}
