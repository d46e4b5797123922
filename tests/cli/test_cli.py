"""The command as a user meets it: what it prints, what it exits with, and how it answers mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from harness_command import run_command

CASE = """\
schema: 1
name: tiny
model: {cell: lstm, input: 3, hidden: 4}
workload: {steps: 8, chunk: [2, 4]}
strategy: {time: looped, state: [stitched, stateful]}
limits: {endurance: 10ms}
measure: {budget: 100ms, processes: 2}
"""


@pytest.fixture
def folder(tmp_path):
    """A folder that has `tiny.yaml`."""
    (tmp_path / "tiny.yaml").write_text(CASE)
    return tmp_path


@pytest.fixture
def rnnbench(folder):
    """Runs the command in that folder."""
    return partial(run_command, folder)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder in which a run has been made, and what the command said of it."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.yaml").write_text(CASE)
    return folder, run_command(folder, "run", "tiny.yaml", "--backend", "fake:honest")


def records(folder: Path):
    return [json.loads(line) for path in folder.glob("results/*/records.jsonl") for line in path.open()]


def test_help_imports_nothing_heavy():
    script = (
        "import sys\n"
        "from rnnbench.cli import main\n"
        "sys.argv = ['rnnbench', '--help']\n"
        "try:\n    main()\n"
        "finally:\n    print(sorted({'numpy', 'pydantic', 'yaml', 'rich', 'scipy', 'matplotlib'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    for command in ("run", "list", "backends", "report", "compare", "schema"):
        assert command in done.stdout


@pytest.mark.parametrize(("backend", "status"), [("fake:honest", 0), ("fakee", 2)])
def test_as_a_process_of_its_own_it_ends_with_its_status(folder, backend, status):
    command = [sys.executable, "-m", "rnnbench", "list", "tiny.yaml", "--backend", backend]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) == (0 if status else 4)


def test_a_run_leaves_records_samples_and_a_report_and_says_where(finished):
    folder, done = finished
    found = records(folder)
    assert [r["outcome"] for r in found] == ["ok"] * 8
    assert {r["backend"] for r in found} == {"numpy", "fake"}, "the baseline is in every table"
    (run,) = (folder / "results").iterdir()
    assert len(list((run / "samples").iterdir())) == 16
    assert not (run / "artifacts").exists()
    report = folder / "reports" / run.name / "report.md"
    assert report.is_file()
    assert str(report.relative_to(folder)) in done.stdout.replace("\n", "")
    info = json.loads((run / "run.json").read_text())
    assert info["finished"]
    assert {"total", "build", "check", "sample", "import"} <= set(info["seconds"])


def test_list_prints_an_id_a_line_and_runs_nothing(rnnbench, folder):
    done = rnnbench("list", "tiny.yaml", "--backend", "fake:honest,numpy")
    assert len(done.stdout.splitlines()) == 8
    assert all(line.startswith("tiny/") for line in done.stdout.splitlines())
    assert not (folder / "results").exists()


def test_only_the_trial_asked_for_runs(rnnbench, folder):
    first = rnnbench("list", "tiny.yaml", "--backend", "fake:honest").stdout.splitlines()[0]
    rnnbench("run", "tiny.yaml", "--backend", "fake:honest", "--no-baseline", "--only", first[-8:], "--processes", "1")
    (record,) = records(folder)
    assert record["trial"] == first
    assert len(record["timing"]["bound"]["process_medians"]) == 1


def test_set_changes_the_case(rnnbench):
    done = rnnbench("list", "tiny.yaml", "--backend", "fake:honest", "--set", "model.hidden=7", "--filter", "chunk=2")
    assert len(done.stdout.splitlines()) == 2
    assert all("/h7-" in line for line in done.stdout.splitlines())


@pytest.mark.parametrize(("route", "status"), [("wrong-bound", 1), ("build-fails", 3), ("honest", 0)])
def test_the_exit_status_tells_what_happened(rnnbench, route, status):
    rnnbench("run", "tiny.yaml", f"--backend=fake:{route}", "--no-baseline", "--filter=chunk=2", status=status)


def test_a_run_compared_with_itself_is_the_same_and_a_lost_outcome_is_a_regression(rnnbench, folder, finished):
    (base,) = (finished[0] / "results").iterdir()
    rnnbench("compare", str(base), str(base))
    new = folder / "b"
    new.mkdir()
    (new / "run.json").write_bytes((base / "run.json").read_bytes())
    broken = (base / "records.jsonl").read_text().replace('"outcome":"ok"', '"outcome":"crashed"')
    (new / "records.jsonl").write_text(broken)
    rnnbench("compare", str(base), str(new), status=1)
    (new / "records.jsonl").write_text("")
    assert "no trial in common" in rnnbench("compare", str(base), str(new), status=2).stderr, "nothing to be green for"


def test_check_proves_without_timing_and_tells_what_fails(rnnbench, folder):
    done = rnnbench("check", "tiny.yaml", "--backend", "fake:honest,fake:wrong-third-step,fake:build-fails", status=1)
    found = {(r["route"], r["outcome"]) for r in records(folder)}
    assert found == {("honest", "ok"), ("wrong-third-step", "nonconforming"), ("build-fails", "build-failed")}
    assert all(r["timing"]["bound"] is None and r["timing"]["build_s"] is None for r in records(folder))
    assert "✓ all" in done.stdout
    assert "values" in done.stdout
    assert "expected ';'" in done.stdout


def test_a_report_is_made_again_from_a_finished_run(finished):
    folder, _ = finished
    done = run_command(folder, "report", "latest", "--reports", "again")
    assert (folder / done.stdout.strip()).is_file()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run",), "name at least one case file"),
        (("run", "missing.yaml", "--backend", "fake"), "missing.yaml"),
        (("run", "tiny.yaml", "--backend", "fakee"), "did you mean 'fake'?"),
        (("run", "tiny.yaml", "--backend", "fake:honst"), "did you mean 'honest'?"),
        (("run", "tiny.yaml", "--backend", "absent"), "pip install 'rnnbench[absent]'"),
        (("run", "tiny.yaml", "--backend", ","), "names no backend"),
        (("run", "tiny.yaml", "--backend", "fake", "--set", "model.hiden=3"), "did you mean 'hidden'?"),
        (("run", "tiny.yaml", "--backend", "fake", "--only", "00000000"), "00000000"),
        (("run", "tiny.yaml", "--backend", "fake", "--max-trials", "3"), "--max-trials"),
        (("run", "--resume", "nothing"), "nothing"),
        (("run", "tiny.yaml", "--resume", "latest"), "leave CASE… out"),
        (("report", "nothing"), "no run 'nothing'"),
        (("compare", "one", "two"), "no run 'one'"),
        (("frobnicate",), "frobnicate"),
    ],
)
def test_a_mistake_is_told_in_a_sentence_with_status_2(rnnbench, folder, arguments, says):
    assert says in rnnbench(*arguments, status=2).stderr
    assert not records(folder)


def test_a_mistake_in_a_case_names_file_line_and_column(rnnbench, folder):
    (folder / "bad.yaml").write_text(CASE.replace("hidden: 4", "hiden: 4"))
    error = rnnbench("list", "bad.yaml", "--backend", "fake", status=2).stderr
    assert "bad.yaml:3:" in error
    assert "did you mean 'hidden'?" in error


def test_two_cases_of_one_name_are_refused(rnnbench, folder):
    (folder / "twin.yaml").write_text(CASE.replace("hidden: 4", "hidden: 5"))
    error = rnnbench("list", "tiny.yaml", "twin.yaml", "--backend", "fake:honest", status=2).stderr
    assert "both named 'tiny'" in error


@pytest.mark.skipif(os.getuid() == 0, reason="root writes wherever it likes")
def test_a_results_folder_that_cannot_be_written(rnnbench, folder):
    closed = folder / "closed"
    closed.mkdir(mode=0o500)
    error = rnnbench("run", "tiny.yaml", "--backend", "fake:honest", "--results", str(closed / "r"), status=2).stderr
    assert str(closed) in error


def test_a_threshold_in_per_cent_is_told(rnnbench):
    assert "--threshold" in rnnbench("compare", "a", "b", "--threshold", "5", status=2).stderr


def test_a_results_folder_that_is_a_file(rnnbench):
    error = rnnbench("run", "tiny.yaml", "--backend", "fake:honest", "--results", "tiny.yaml", status=2).stderr
    assert "tiny.yaml" in error


def test_backends_tells_what_is_here_and_how_to_get_what_is_not(rnnbench):
    done = rnnbench("backends")
    assert "rnnbench-fake 1.0" in done.stdout
    assert "absent-runtime is not installed" in done.stdout
    assert "rnnbench[absent]" in done.stdout
    for backend in ("numpy", "iree", "tvm"):
        assert backend in done.stdout


def test_the_schema_is_json(rnnbench):
    assert json.loads(rnnbench("schema").stdout)["type"] == "object"


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


def test_a_known_failure_beside_the_case_changes_no_exit_status(rnnbench, folder):
    (folder / "expectations.yaml").write_text(EXPECTATIONS)
    arguments = ("check", "tiny.yaml", "--backend", "fake:build-fails", "--filter")
    done = rnnbench(*arguments, "chunk=2")
    assert "as expected" in done.stdout
    assert "Its compiler knows no semicolons" in done.stdout
    rnnbench(*arguments, "chunk=4", status=3)


def test_a_known_failure_that_passes_is_an_alert(rnnbench, folder):
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
    assert "fixed upstream?" in done.stdout


@pytest.mark.parametrize(
    ("replaced", "by", "says"),
    [
        ("route: build-fails", "route: build-fail", "expectations.yaml:3:5: fake has no route 'build-fail'"),
        ("outcome: build-failed", "check: valeus", "expectations.yaml:7:12: expectations[0].check: there is no check"),
        ("rnnbench-fake", "rnnbench-fkae", "did you mean 'rnnbench-fake'?"),
    ],
)
def test_a_mistake_in_what_is_known_is_told_in_a_sentence(rnnbench, folder, replaced, by, says):
    (folder / "expectations.yaml").write_text(EXPECTATIONS.replace(replaced, by))
    assert says in rnnbench("check", "tiny.yaml", "--backend", "fake", status=2).stderr
    assert not records(folder)


def test_a_folder_of_cases_is_all_of_its_cases(rnnbench, folder):
    (folder / "other.yaml").write_text(CASE.replace("name: tiny", "name: other"))
    done = rnnbench("list", ".", "--backend", "fake:honest", "--filter", "chunk=2,state=stitched")
    assert sorted(line.split("/")[0] for line in done.stdout.splitlines()) == ["other", "tiny"]
