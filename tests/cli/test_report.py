"""`rnnbench report`: a report of a finished run."""

from __future__ import annotations

from harness_command import run_command


def test_a_report_is_written_again_from_a_finished_run(finished):
    folder, _ = finished
    done = run_command(folder, "report", "latest", "--reports", "again")
    assert (folder / done.stdout.strip()).is_file()
