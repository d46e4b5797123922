"""Each export is read by the tool that it is for, and that tool's own answer is looked at.

Two runs of made-up records: in the second, one program is 20 % slower. `made_runs` has them.
"""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import fake_records as fake
import pandas
import pyperf
import pytest
from junitparser import Error, Failure, JUnitXml, Properties, Skipped
from made_runs import NEW, OLD, SLOWER, exported, made_run
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from pytest_benchmark import cli as pytest_benchmark
from waiting import PATIENCE_S

from rnnbench.results import read_run
from rnnbench.results.exports import EXPORTS


def export(name: str, run: Path, folder: Path, ending: str) -> Path:
    """The file of an export, as the command writes it."""
    file = folder / f"{run.name}{ending}"
    file.write_bytes(exported(name, run))
    return file


def answer(program: Any, *arguments: object) -> str:
    """What a command of this Python's packages prints."""
    shown = io.StringIO()
    before, sys.argv = sys.argv, ["command", *map(str, arguments)]
    try:
        with redirect_stdout(shown):
            program()
    finally:
        sys.argv = before
    return shown.getvalue()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("runs")
    return made_run(root, OLD), made_run(root, NEW)


def test_pytest_benchmark_compares_two_runs(runs, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = [export("pytest-benchmark", run, tmp_path, ".json") for run in runs]
    shown = answer(
        pytest_benchmark.main, "compare", *files, "--group-by=fullname", "--columns=median,rounds", "--csv=c"
    )
    (slower,) = [part for part in shown.split("benchmark '") if part.startswith(f"{SLOWER}[bound]")]
    assert "(1.20)" in slower
    rows = pandas.read_csv(tmp_path / "c.csv")
    of_old = rows[rows.name.str.startswith(f"{SLOWER}[bound]")].iloc[0]
    assert of_old["median"] == pytest.approx(100e-6, rel=0.01), "seconds"
    assert of_old["rounds"] == 300
    assert len(rows) == 2 * 2 * 3, "two runs of three trials with figures, two latency paths"


def test_pytest_benchmark_groups_what_computes_the_same(runs, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = answer(pytest_benchmark.main, "compare", export("pytest-benchmark", runs[0], tmp_path, ".json"))
    assert shown.count("chunk 16, bound': 3 tests") == 1
    by_backend = answer(pytest_benchmark.main, "compare", tmp_path / f"{OLD}.json", "--group-by=param:backend")
    assert "benchmark 'backend=fakemlir'" in by_backend


def test_pyperf_compares_and_checks_two_runs(runs, tmp_path) -> None:
    files = [export("pyperf", run, tmp_path, ".json") for run in runs]
    old, new = (pyperf.BenchmarkSuite.load(str(file)) for file in files)
    name = f"{SLOWER}[bound]"
    record = read_run(runs[0]).by_trial[SLOWER]
    assert old.get_benchmark(name).get_values() == record.latency("bound").process_medians
    assert old.get_benchmark(name).get_unit() == "second"
    assert old.get_benchmark(name).get_nrun() == 3
    assert old.get_benchmark(name).get_dates()[0] == datetime(2026, 1, 31, 12)
    assert new.get_benchmark(name).mean() == pytest.approx(1.2 * old.get_benchmark(name).mean(), rel=0.02)
    assert len(old) == 2 * 3
    command = [sys.executable, "-m", "pyperf"]
    compared = subprocess.run(
        [*command, "compare_to", *files], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    ).stdout
    (slower,) = [line for line in compared.splitlines() if line.startswith(name)]
    assert "1.20x slower" in slower
    for verb in ("stats", "check"):
        shown = subprocess.run(
            [*command, verb, files[0]], capture_output=True, text=True, check=True, timeout=PATIENCE_S
        ).stdout
        assert name in shown


def test_asv_publishes_a_history_and_reports_its_step(tmp_path) -> None:
    folder, first = tmp_path / "asv", datetime(2026, 1, 1, 3, tzinfo=UTC)
    for night in range(16):
        scale = 1.2 if night >= 8 else 1.0
        records = [fake.record(bound=100e-6 * scale * (1 + 0.002 * (night % 3)), spread=0.001, seed=night)]
        records.append(fake.record("fakemlir", "linalg", outcome="crashed"))
        started = (first + timedelta(days=night)).isoformat()
        run = fake.write_run(tmp_path / f"night-{night:02}", records, started=started)
        EXPORTS["asv"].write(read_run(run), folder)
    done = subprocess.run(
        [sys.executable, "-m", "asv", "publish"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    site = json.loads((folder / "html" / "index.json").read_text())
    (name,) = [name for name in site["benchmarks"] if name.endswith(".bound")]
    assert name == f"{re.sub('[/:]', '.', records[0].trial)}.bound"
    assert site["benchmarks"][name]["unit"] == "seconds"
    assert not any("fakemlir" in name for name in site["benchmarks"]), "what crashed has no series"
    steps = json.loads((folder / "html" / "regressions.json").read_text())["regressions"]
    (step,) = [step for step in steps if step[0] == name]
    *_, after, before, ((_, revision, old, new),) = step
    assert (before, after) == (old, new)
    assert new / old == pytest.approx(1.2, rel=0.01)
    assert site["revision_to_date"][str(revision)] == (first + timedelta(days=8)).timestamp() * 1000


def test_junitparser_counts_each_outcome_under_its_own_notion(tmp_path) -> None:
    run = fake.write_run(tmp_path / "run", list(fake.whole_run()))
    junit = JUnitXml.fromstring(exported("junit", run).decode())
    records = read_run(run).records
    outcomes = [record.outcome for record in records]
    failed = {"build-failed", "run-failed", "crashed", "timed-out", "out-of-memory"}
    assert junit.tests == len(records)
    assert junit.failures == outcomes.count("nonconforming") == 1
    assert junit.errors == sum(outcome in failed for outcome in outcomes) == 5
    assert junit.skipped == outcomes.count("unsupported") + outcomes.count("unavailable") == 7
    kinds = {"nonconforming": Failure, "unsupported": Skipped, "unavailable": Skipped}
    (suite,) = junit
    for test in suite:
        (record,) = [record for record in records if record.trial == test.name]
        if record.outcome == "ok":
            assert test.is_passed
            continue
        (result,) = test.result
        assert type(result) is kinds.get(record.outcome, Error)
        assert record.reason in result.message
        names = {held.name for held in test.iterchildren(Properties) for held in held}
        assert "outcome" in names
        assert not any(name.endswith(("_s", "_bytes")) for name in names), "no figure"


def test_prometheus_reads_every_family(runs) -> None:
    text = exported("openmetrics", runs[0]).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {family.unit for family in families.values()} == {"", "seconds", "bytes"}
    outcomes = [sample.labels["outcome"] for sample in families["rnnbench_trial"].samples]
    assert sorted(outcomes) == ["crashed", "nonconforming", "ok", "ok", "ok", "ok", "unsupported"]
    latencies = families["rnnbench_latency_seconds"].samples
    assert len(latencies) == 2 * 3
    (slower,) = [s for s in latencies if (s.labels["trial"], s.labels["path"]) == (SLOWER, "bound")]
    assert slower.value == read_run(runs[0]).by_trial[SLOWER].latency("bound").median
    assert float(slower.timestamp) == datetime(2026, 1, 31, 12, tzinfo=UTC).timestamp()
    (low,) = [
        s
        for s in families["rnnbench_latency_low_seconds"].samples
        if (s.labels["trial"], s.labels["path"]) == (SLOWER, "bound")
    ]
    assert low.value == 90e-6


@pytest.mark.filterwarnings("ignore:The 'fastparquet' engine is deprecated")
def test_duckdb_and_pandas_read_parquet(runs, tmp_path) -> None:
    file = export("parquet", runs[0], tmp_path, ".parquet")
    counted = duckdb.sql(
        f"SELECT outcome, count(*), count(bound_median_s) FROM '{file}' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    assert counted == [("crashed", 1, 0), ("nonconforming", 1, 1), ("ok", 4, 4), ("unsupported", 1, 0)]
    types = {name: kind for name, kind, *_ in duckdb.sql(f"DESCRIBE SELECT * FROM '{file}'").fetchall()}
    assert [types[name] for name in ("started", "chunk", "bound_median_s", "believed", "trial")] == [
        "TIMESTAMP",
        "BIGINT",
        "DOUBLE",
        "BOOLEAN",
        "VARCHAR",
    ]
    frame = pandas.read_parquet(file, engine="fastparquet")
    rows = read_run(runs[0]).rows()
    assert list(frame.columns) == list(rows[0])
    for column in ("bound_median_s", "build_s", "chunk"):
        for value, row in zip(frame[column], rows, strict=True):
            assert (row[column] is None and math.isnan(value)) or value == row[column]
    assert frame["started"][0] == pandas.Timestamp("2026-01-31T12:00:00")
