"""With --benchmark-only a trial is timed through pytest-benchmark's fixture, and only right programs have figures."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from waiting import PATIENCE_S

from rnnbench.pytest_plugin.benchmark import WorkerClock

pytest_plugins = ["pytester"]

pytest.importorskip("pytest_benchmark")

QUICK = ("--benchmark-only", "--benchmark-max-time=0.05", "--benchmark-json=benchmark.json")
FIRST = "rnnbench(chunk=2, time='looped', state='stitched')"


@pytest.fixture
def benchmarks(tiny, few_checks):
    """Runs pytest on some trials, and reads the file that pytest-benchmark wrote."""

    def run(*arguments):
        result = tiny.runpytest_inprocess(*QUICK, *arguments)
        return result, json.loads((tiny.path / "benchmark.json").read_text())["benchmarks"]

    return run


def test_the_figures_are_of_the_bound_call_and_say_of_what_program(benchmarks, tiny):
    result, timed = benchmarks("--rnnbench-backend=fake:honest,numpy", "-m", "rnnbench(chunk=2, state='stitched')")
    assert result.parseoutcomes() == {"passed": 2, "skipped": 2, "deselected": 12}
    assert [b["params"]["backend"] for b in timed] == ["fake", "numpy"]
    assert len({b["group"] for b in timed}) == 1, "programs for the same sizes are compared"
    for benchmark in timed:
        stats = benchmark["stats"]
        assert stats["rounds"] >= 5
        assert 0 < stats["min"] <= stats["median"] <= stats["max"]
        assert stats["total"] == pytest.approx(stats["mean"] * stats["rounds"])
        info = benchmark["extra_info"]
        assert info["outcome"] == "ok"
        assert info["conformance"]["values"] == "pass"
        assert info["conformance"]["timed"] == "pass", "the timed calls themselves were checked afterwards"
        assert info["lowered"]
        assert info["version"]
    compare = [sys.executable, "-m", "pytest_benchmark", "compare", "benchmark.json", "--group-by=param:backend"]
    done = subprocess.run(compare, cwd=tiny.path, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert "benchmark 'backend=numpy'" in done.stdout


@pytest.mark.proof
def test_a_program_that_computes_something_else_has_no_figures(benchmarks):
    routes = "fake:wrong-third-step,fake:wrong-once-timed,fake:sample-segfaults,fake:honest"
    result, timed = benchmarks(f"--rnnbench-backend={routes}", "-m", FIRST)
    assert result.parseoutcomes()["failed"] == 3
    assert [b["params"]["route"] for b in timed] == ["honest"]
    table = result.stdout.str().partition("Name (time in")[2].partition("Legend")[0]
    assert "honest" in table
    assert "wrong" not in table
    result.stdout.fnmatch_lines(
        [
            "nonconforming: 1 of * checks failed: timed",
            "reproduce  rnnbench run --no-baseline tiny.yaml --backend=fake:wrong-once-timed --only *",
            "crashed, at sample: died of SIGSEGV*",
        ]
    )


@pytest.mark.first(1)
@pytest.mark.usefixtures("few_checks")
@pytest.mark.parametrize("option", ["--benchmark-skip", "-pno:benchmark"])
def test_without_benchmarks_trials_are_checked(tiny, option):
    result = tiny.runpytest_inprocess("--rnnbench-backend=fake:honest", "--rnnbench-endurance=0", option, "-m", FIRST)
    assert result.parseoutcomes() == {"passed": 1, "deselected": 7}


def test_across_a_call_the_clock_shows_what_the_worker_says_and_runs_on():
    clock = WorkerClock()
    before = clock()
    clock.advance(0.25)
    clock.advance(0.5)
    time.sleep(0.01)
    after = clock()
    assert after - before == pytest.approx(0.75, abs=1e-9), "what passed here meanwhile does not show"
    time.sleep(0.01)
    assert 0.75 + 0.01 <= clock() - before < 1000
