"""`rnnbench report`: a report of a finished run."""

from __future__ import annotations

import shutil

from harness_command import run_command


def test_what_is_damaged_in_a_run_is_said_as_its_report_and_its_site_are_written(finished, tmp_path):
    (run,) = (finished[0] / "results").glob("[!.]*")
    shutil.copytree(run, tmp_path / "results" / run.name)
    records = tmp_path / "results" / run.name / "records.jsonl"
    records.write_text(records.read_text().replace("{", "[", 1))
    for command in ("report", "site"):
        errors = run_command(tmp_path, command, "latest").stderr
        assert f"warning: results/{run.name}/records.jsonl:1: not JSON" in errors


def test_a_report_is_written_again_from_a_finished_run(finished):
    folder, _ = finished
    done = run_command(folder, "report", "latest", "--reports", "again")
    assert (folder / done.stdout.strip()).is_file()
