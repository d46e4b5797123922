"""`rnnbench run`: what it leaves behind, what it prints, and its exit status."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from harness_command import records_in, run_command
from harness_trials import make_trial

from rnnbench.fleet.dispatch import UnfinishedTrials
from rnnbench.plan import begin_run
from rnnbench.results import Store, read_run, write_info

ONE_TRIAL = "--filter=chunk=2,state=stitched"


def test_a_run_leaves_records_samples_and_a_report_and_says_where(finished):
    folder, done = finished
    records = records_in(folder)
    assert [r["outcome"] for r in records] == ["ok"] * 8
    assert {r["backend"] for r in records} == {"numpy", "fake"}, "the baseline is in every table"
    (run,) = (folder / "results").iterdir()
    assert len(list((run / "samples").iterdir())) == 16
    assert not (run / "artifacts").exists()
    report = folder / "reports" / run.name / "report.md"
    assert report.is_file()
    assert str(report.relative_to(folder)) in done.stdout.replace("\n", "")
    info = json.loads((run / "run.json").read_text())
    assert info["finished"]
    assert {"total", "build", "check", "sample", "import"} <= set(info["seconds"])


@pytest.mark.proof
def test_a_suite_that_was_started_with_ended_children_ignored_runs_all_the_same(rnnbench):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert "2 trials: 2 ok" in rnnbench("run", "tiny.yaml", "--backend=fake:honest", ONE_TRIAL).stdout
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize("command", ["run", "check"])
def test_trials_that_a_cluster_has_left_are_told_by_the_status(rnnbench, monkeypatch, command):
    """No record of them says so."""
    monkeypatch.setattr("rnnbench.fleet.require_cluster", lambda place: None)
    monkeypatch.setattr(
        "rnnbench.fleet.run_on_cluster", lambda plan, *_, **__: [UnfinishedTrials(plan.trials, "a node was lost")]
    )
    done = rnnbench(command, "tiny.yaml", "--backend=fake:honest", "--on=ray", status=3)
    assert "a node was lost" in done.stdout + done.stderr


def test_only_the_trial_asked_for_runs(rnnbench, folder):
    first = rnnbench("list", "tiny.yaml", "--backend", "fake:honest").stdout.splitlines()[0]
    rnnbench("run", "tiny.yaml", "--backend", "fake:honest", "--no-baseline", "--only", first[-8:], "--processes", "1")
    (record,) = records_in(folder)
    assert record["trial"] == first
    assert len(record["timing"]["latency"]["bound"]["process_medians"]) == 1


@pytest.mark.parametrize("pins", ["", "fake==1"])
def test_a_run_says_that_it_makes_environments_where_it_has_anchors(tmp_path, monkeypatch, capsys, pins):
    class Measured(Exception):
        pass

    def measure(plan, progress):
        raise Measured

    command = import_module("rnnbench.cli.run")
    monkeypatch.setattr(command, "run_leaves", lambda *_: None)
    plan = begin_run([replace(make_trial(), pinned=pins)], Store(tmp_path))
    with pytest.raises(Measured):
        command._carry_out(plan, tmp_path / "reports", None, measure)
    assert ("Making the environments of the anchors" in capsys.readouterr().out) == bool(pins)


def test_the_command_that_continues_a_run_can_be_given(tmp_path, monkeypatch):
    class Measured(Exception):
        pass

    def measure(plan, progress):
        raise Measured

    told = []
    command = import_module("rnnbench.cli.run")
    monkeypatch.setattr(command, "run_leaves", lambda folder, how_to_go_on: told.append(how_to_go_on))
    plan = begin_run([make_trial()], Store(tmp_path / "my runs"))
    with pytest.raises(Measured):
        command._carry_out(plan, tmp_path / "reports", None, measure)
    assert shlex.split(told[0].partition("To continue: ")[2]) == ["rnnbench", "run", "--resume", str(plan.folder)]


@pytest.mark.parametrize("change", [{"directory": "a\0b"}, {"command": ("rnnbench", "run", "--reports", "a\0b")}])
def test_a_null_byte_in_the_first_command_is_told(folder, change):
    plan = begin_run([make_trial()], Store(folder / "results"))
    info = read_run(plan.folder).info.model_copy(update={"command": ("rnnbench", "run"), **change})
    write_info(plan.folder, info)
    error = run_command(folder, "run", "--resume", plan.folder.name, status=2).stderr
    assert "run.json: has a null byte in `command` or `directory`, as no command has; restore it" in error


@pytest.mark.parametrize(("route", "status"), [("wrong-bound", 1), ("build-fails", 3)])
def test_the_exit_status_tells_what_happened(rnnbench, route, status):
    """That of the finished run is 0."""
    rnnbench("run", "tiny.yaml", f"--backend=fake:{route}", "--no-baseline", ONE_TRIAL, status=status)


def test_a_run_of_which_nothing_is_supported_says_so(rnnbench):
    shown = rnnbench("run", "tiny.yaml", "--backend=numpy", "--set=strategy.time=fused").stdout
    assert "4 trials: 4 unsupported" in shown


def test_a_results_folder_that_cannot_be_written_is_named(rnnbench):
    """Not by root either: the kernel makes the files of /proc."""
    error = rnnbench("run", "tiny.yaml", "--backend", "fake:honest", "--results", "/proc/self/r", status=2).stderr
    assert "/proc/self/r" in error


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize("make", [Path.touch, os.mkfifo, partial(os.symlink, "nowhere")], ids=["file", "pipe", "link"])
def test_a_report_that_could_not_be_written_is_refused_before_any_trial(rnnbench, folder, command, make):
    make(folder / "there")
    done = rnnbench(command, "tiny.yaml", "--backend", "fake:honest", "--reports", "there/below", status=2)
    assert "there is not a folder; choose another folder" in done.stderr
    assert not (folder / "results").exists()


def test_a_results_folder_that_is_a_file_is_refused(rnnbench):
    error = rnnbench("run", "tiny.yaml", "--backend", "fake:honest", "--results", "tiny.yaml", status=2).stderr
    assert "'--results': 'tiny.yaml' is a file; expected a folder, so give another path" in error


@pytest.mark.proof
def test_a_resumed_run_puts_its_files_where_the_first_command_said(folder, tmp_path_factory):
    options = ("--backend=fake:honest", "--no-baseline", ONE_TRIAL)
    run_command(folder, "run", "tiny.yaml", *options, "--reports", "my reports", "--keep-artifacts")
    (run,) = (folder / "results").iterdir()

    def resumed(where, *more):
        (run / "records.jsonl").write_bytes(b"")
        shutil.rmtree(run / "artifacts", ignore_errors=True)
        shutil.rmtree(folder / "my reports", ignore_errors=True)
        run_command(where, "run", "--resume", str(run), *more)

    elsewhere = tmp_path_factory.mktemp("elsewhere")
    resumed(elsewhere)
    assert (folder / "my reports" / run.name / "report.md").is_file()
    assert any((run / "artifacts").iterdir())
    assert not list(elsewhere.iterdir())

    resumed(elsewhere, "--reports", "others")
    assert (elsewhere / "others" / run.name / "report.md").is_file()
    assert not (folder / "my reports").exists()


@pytest.mark.proof
def test_the_report_of_a_resumed_run_that_said_nothing_goes_beside_its_results(folder, tmp_path_factory):
    run_command(folder, "run", "tiny.yaml", "--backend=fake:honest", "--no-baseline", ONE_TRIAL)
    (run,) = (folder / "results").iterdir()
    (run / "records.jsonl").write_bytes(b"")
    shutil.rmtree(folder / "reports")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    run_command(elsewhere, "run", "--resume", str(run))
    assert (folder / "reports" / run.name / "report.md").is_file()
    assert not list(elsewhere.iterdir())


@pytest.mark.proof
def test_a_reports_folder_of_the_first_command_that_cannot_be_written_any_more_is_told(folder):
    run_command(folder, "run", "tiny.yaml", "--backend=fake:honest", "--no-baseline", ONE_TRIAL, "--reports", "mine")
    (run,) = (folder / "results").iterdir()
    shutil.rmtree(folder / "mine")
    (folder / "mine").write_text("a file by now")
    error = run_command(folder, "run", "--resume", str(run), status=2).stderr
    assert "'--reports': 'mine' is a file; expected a folder, so give another path" in error
