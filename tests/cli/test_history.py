"""`rnnbench history`: add, list, sql, changes; a mistake ends in a sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("duckdb")

STORED = Path(__file__).parents[1] / "results" / "runs_of_schema_1" / "scaling"
RELEASES = Path(__file__).parents[2] / "results" / "releases"
TRIALS = len((STORED / "records.jsonl").read_text().splitlines())


def test_a_run_is_added_once_listed_queried_and_compared(rnnbench, folder):
    shutil.copytree(STORED, folder / "run")
    assert f"added ({TRIALS} trials)" in rnnbench("history", "add", "run").stdout
    assert "already there" in rnnbench("history", "add", "run").stdout
    assert json.loads((STORED / "run.json").read_text())["run"] in rnnbench("history", "list").stdout
    query = "SELECT outcome, count(*) AS trials FROM rows GROUP BY ALL ORDER BY ALL"
    lines = rnnbench("history", "sql", query, "--csv").stdout.splitlines()
    assert lines[0] == "outcome,trials"
    assert sum(int(line.split(",")[1]) for line in lines[1:]) == TRIALS
    assert rnnbench("history", "changes").stdout == "No level changed.\n"


def test_a_comparison_is_added_by_its_verdicts_and_neither_side_becomes_a_night(rnnbench, folder):
    for name in ("run-a", "run-b", "other-a"):
        shutil.copytree(STORED, folder / name)
    own = json.loads((STORED / "run.json").read_text())["run"]
    sides = {"a": {"environment": "x==1", "run": "run-a"}, "b": {"environment": "x==2", "run": own}}
    verdict = {"trial": "t", "path": "bound", "ratio": 1.1, "interval": None, "verdict": "UNDECIDED", "observations": 4}
    content = {**sides, "differences": [], "verdicts": [verdict]}
    (folder / "run-b" / "verdicts.json").write_text(json.dumps(content))
    added = rnnbench("history", "add", "run-a", "run-b")
    assert added.stderr == "warning: run-a: is side a of a comparison, and no night; its verdicts are in run-b\n"
    assert added.stdout == "run-b: added as a comparison (1 verdict)\n"
    assert not (folder / "results" / "history" / "runs").exists()
    assert len(list((folder / "results" / "history" / "comparisons").iterdir())) == 1
    assert rnnbench("history", "list").stdout.splitlines()[-1].split()[-2:] == ["1", "comparison"]
    assert "UNDECIDED" in rnnbench("history", "sql", "SELECT verdict FROM verdicts").stdout
    assert "has no run, only comparisons or checks" in rnnbench("history", "changes", status=2).stderr
    (folder / "run-b" / "verdicts.json").write_text("[1")
    assert "is damaged; compare again" in rnnbench("history", "add", "run-b", status=2).stderr
    assert f"other-a: added ({TRIALS} trials)" in rnnbench("history", "add", "other-a").stdout


def test_the_sides_of_an_interrupted_comparison_become_no_night(rnnbench, folder):
    for side in ("a", "b"):
        shutil.copytree(STORED, folder / f"run-{side}")
        info = json.loads((STORED / "run.json").read_text())
        (folder / f"run-{side}" / "run.json").write_text(json.dumps({**info, "side": side}))
    said = rnnbench("history", "add", "run-a").stderr
    assert "is side a of a comparison, and no night; no side b beside it has verdicts; compare again" in said
    assert "did not come to its verdicts; compare again" in rnnbench("history", "add", "run-b", status=2).stderr
    assert not (folder / "results" / "history" / "runs").exists()


def test_a_check_is_added_as_a_check_and_once_damaged_is_added_again(rnnbench, folder):
    shutil.copytree(STORED, folder / "run")
    info = json.loads((folder / "run" / "run.json").read_text())
    (folder / "run" / "run.json").write_text(json.dumps({**info, "case_files": ["cases"]}))
    assert rnnbench("history", "add", "run").stdout.startswith("run: added as a check (")
    assert not (folder / "results" / "history" / "runs").exists()
    listed = rnnbench("history", "list").stdout
    assert "  check of iree" in listed
    file = next((folder / "results" / "history" / "checks").iterdir())
    file.write_text("{")
    assert "delete it, or add the run of its check again" in rnnbench("history", "list").stderr
    rnnbench("history", "add", "run")
    repaired = rnnbench("history", "list")
    assert (repaired.stdout, repaired.stderr) == (listed, "")


def test_a_query_that_fails_ends_in_a_sentence(rnnbench):
    query = "SELECT * FROM read_text('/etc/passwd')"
    failed = rnnbench("history", "sql", query, "--history", str(RELEASES), status=2)
    assert failed.stderr.startswith("rnnbench: the query failed: Permission Error")
    assert "Traceback" not in failed.stderr


@pytest.mark.parametrize("command", [("list",), ("sql", "SELECT 1"), ("changes",), ("false-alarms",), ("alerts",)])
def test_a_history_without_a_run_says_so(rnnbench, command):
    failed = rnnbench("history", *command, status=2)
    assert failed.stdout == ""
    assert failed.stderr.endswith("has no run; add one with: rnnbench history add RUN\n")


@pytest.mark.parametrize("command", [("history", "add", "latest"), ("run", "--resume", "latest")])
def test_the_latest_run_of_none_is_a_mistake(rnnbench, command):
    failed = rnnbench(*command, status=2)
    assert failed.stderr.startswith("rnnbench: results has no run with a name that `rnnbench run` gives")


def test_alerts_and_triage_of_a_history(rnnbench, folder):
    pytest.importorskip("ruamel.yaml")
    shutil.copytree(STORED, folder / "run")
    added = rnnbench("history", "add", "run", "--compress").stdout
    assert "records compressed from " in added
    assert not (folder / "run" / "records.jsonl").exists()
    assert "already there" in rnnbench("history", "add", "run", "--compress").stdout
    assert rnnbench("history", "alerts").stdout.endswith(
        "results/alerts.yaml: 0 alerts, 0 open, 0 candidates dropped\n"
    )
    assert rnnbench("triage", "-o", "page.md").stdout == "triage  page.md\n"
    assert rnnbench("triage", "-o", "page.md").stdout == "triage  page.md, in place of the earlier file\n"
    assert "**There is no alert.**" in (folder / "page.md").read_text()
    (folder / "results" / "alerts.yaml").write_text("schema: 1\nalerts: [{id: one}]\n")
    failed = rnnbench("triage", status=2)
    assert "alerts.yaml:2:10: the key 'state' is missing in alerts[0]; add it: one of new, " in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_home_that_no_shell_has_replaced_is_the_home_of_the_user(rnnbench, folder, monkeypatch):
    """A shell leaves `~` as it is in `--history=~/history`."""
    monkeypatch.setenv("HOME", str(folder / "home"))
    shutil.copytree(STORED, folder / "run")
    rnnbench("history", "add", "run", "--history=~/history")
    assert (folder / "home" / "history" / "runs").is_dir()
    assert not (folder / "~").exists()
