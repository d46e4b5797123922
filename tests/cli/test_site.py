"""`rnnbench site`: it says where the first page is, and a mistake ends in a sentence."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from harness_command import run_command

pytest.importorskip("duckdb")
pytest.importorskip("jinja2")


def test_the_site_of_a_run_is_written_where_the_command_says(finished, tmp_path):
    folder, _ = finished
    shown = run_command(folder, "site", "latest", "-o", str(tmp_path / "site"))
    assert shown.stdout == f"{tmp_path / 'site' / 'index.html'}\n"
    assert "fake:honest" in (tmp_path / "site" / "index.html").read_text()


def test_what_may_take_long_is_told(finished, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr("rnnbench.pipeline.told_if_long", lambda doing: told.append(doing) or nullcontext())
    run_command(finished[0], "site", "latest", "-o", str(tmp_path / "site"))
    assert told == ["reading the runs", f"writing the pages of 1 run into {tmp_path / 'site'}"]


def test_without_a_run_and_a_history_there_is_a_sentence(rnnbench):
    failed = rnnbench("site", status=2)
    assert failed.stderr == "rnnbench: the site needs the records of a run: rnnbench site RUN…, for example 'latest'\n"


def test_a_history_that_is_not_there_is_a_mistake_if_it_was_named(rnnbench):
    failed = rnnbench("site", "--history", "nowhere", status=2)
    assert failed.stderr.startswith("rnnbench: nowhere is not a folder; a history is made by")


def test_a_file_of_alerts_that_is_not_there_is_a_mistake_if_it_was_named(rnnbench):
    failed = rnnbench("site", "latest", "--alerts", "nowhere.yaml", status=2)
    assert failed.stderr.startswith(
        "rnnbench: nowhere.yaml does not exist; correct its path; `rnnbench history alerts`"
    )


def test_a_folder_that_cannot_be_made_is_named(finished, tmp_path):
    (tmp_path / "file").write_text("")
    failed = run_command(finished[0], "site", "latest", "-o", str(tmp_path / "file/site"), status=2)
    assert f"cannot use {tmp_path / 'file'}" in failed.stderr
