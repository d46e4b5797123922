"""`rnnbench check`: conformance without timing, and expected failures."""

from __future__ import annotations

from pathlib import Path

import pytest
from forked_workers import write_python
from harness_command import records_in

from rnnbench.results import Store, read_run

EXPECTATIONS = """\
schema: 1
expectations:
  - backend: fake
    version: {rnnbench-fake: ">=1"}
    route: build-fails
    where: {chunk: 2}
    outcome: build-failed
    reason: Its compiler knows no semicolons.
    upstream: https://example.org/issues/1
"""


def test_check_times_nothing_and_prints_what_fails(rnnbench, folder):
    routes = "fake:honest,fake:wrong-third-step,fake:build-fails"
    done = rnnbench(
        "check", f"--backend={routes}", "--filter", "chunk=4,state=stitched", "tiny.yaml", "--no-shrink", status=1
    )
    found = {(r["route"], r["outcome"]) for r in records_in(folder)}
    assert found == {("honest", "ok"), ("wrong-third-step", "nonconforming"), ("build-fails", "build-failed")}
    assert all(not r["timing"]["latency"] and r["timing"]["build_s"] is None for r in records_in(folder))
    assert "✓ all" in done.stdout
    assert "  values: Every output and the final state equal the reference's." in done.stdout
    assert "expected ';'" in done.stdout
    (run,) = Store(folder / "results").runs()
    assert read_run(run).info.case_files == ("tiny.yaml",), "wherever it stood in the command"


def test_an_expected_failure_beside_the_case_changes_no_exit_status(rnnbench, folder):
    (folder / "expectations.yaml").write_text(EXPECTATIONS)
    arguments = ("check", "tiny.yaml", "--backend", "fake:build-fails", "--filter")
    done = rnnbench(*arguments, "chunk=2")
    assert "as expected" in done.stdout
    assert "Its compiler knows no semicolons" in done.stdout
    rnnbench(*arguments, "chunk=4", status=3)


@pytest.mark.proof
def test_an_expected_failure_that_passes_has_status_1(rnnbench, folder):
    (folder / "known.yaml").write_text(EXPECTATIONS.replace("route: build-fails", "route: honest"))
    done = rnnbench(
        "check",
        "tiny.yaml",
        "--backend",
        "fake:honest",
        "--filter",
        "chunk=2",
        "--expectations",
        "known.yaml",
        status=1,
    )
    assert "passed unexpectedly" in done.stdout


@pytest.mark.parametrize(
    ("replaced", "by", "says"),
    [
        ("route: build-fails", "route: build-fail", "expectations.yaml:3:5: fake has no route 'build-fail'"),
        ("outcome: build-failed", "check: valeus", "expectations.yaml:7:12: expectations[0].check: there is no check"),
        ("rnnbench-fake", "rnnbench-fkae", "did you mean 'rnnbench-fake'?"),
    ],
)
def test_a_mistake_in_the_expected_failures_has_one_sentence_and_status_2(rnnbench, folder, replaced, by, says):
    (folder / "expectations.yaml").write_text(EXPECTATIONS.replace(replaced, by))
    assert says in rnnbench("check", "tiny.yaml", "--backend", "fake", status=2).stderr
    assert not records_in(folder)


@pytest.mark.proof
def test_no_shrink_leaves_out_the_search_for_a_smaller_trial(rnnbench):
    arguments = (
        "check",
        "tiny.yaml",
        "--backend=fake:wrong-third-step",
        "--filter=chunk=4,state=stitched",
        "--endurance=0",
        "--set=model.hidden=2",
        "--set=model.input=1",
    )
    printed = rnnbench(*arguments, status=1).stdout
    command, subcommand, case = printed.partition("smallest trial found")[2].partition("with:")[2].split()[:3]
    assert (command, subcommand, Path(case).name) == ("rnnbench", "check", "tiny.yaml")
    assert "smallest trial found" not in rnnbench(*arguments, "--no-shrink", status=1).stdout


@pytest.mark.proof
def test_another_environment_checks_its_own_program(rnnbench, folder):
    write_python(folder / "old" / "bin" / "python", {"RNNBENCH_FAKE_VERSION": "0.1"})
    given = ("check", "tiny.yaml", "--filter", "chunk=4,state=stitched", "--endurance=0", "--in", "./old")
    rnnbench(*given, "--backend=fake:honest")
    (record,) = records_in(folder)
    assert (record["outcome"], record["version"]) == ("ok", {"rnnbench-fake": "0.1"})
    assert "--in needs the backends that are checked there" in rnnbench(*given, status=2).stderr
    elsewhere = rnnbench(*given, "--backend=fake:honest", "--on=ray", status=2)
    assert "it cannot be given with --on" in elsewhere.stderr
