"""Kills of a run at random moments: no record is lost, doubled or torn, and no process is left."""

from __future__ import annotations

import random

from killed_runs import kill_and_resume

KILLS = 200
LATEST_S = 6.0
"""A sitting of that length finishes some trials, and now and then the whole run."""
CASE = """\
schema: 1
name: killed
model: {cell: lstm, input: 3, hidden: 4}
workload: {steps: 8, chunk: [1, 2, 4, 8]}
strategy: {time: looped, state: [stitched, stateful]}
limits: {endurance: 10ms}
measure: {budget: 400ms, processes: 1}
"""
TRIALS = 24


def test_two_hundred_kills_lose_no_record_and_leave_no_process(tmp_path):
    """Of the parent alone, by SIGKILL. Each is followed by `--resume`; a run that has ended, by another one."""
    (tmp_path / "killed.yaml").write_text(CASE)
    first = ("run", "killed.yaml", "--backend=fake:honest,fake:build-fails,numpy")
    done = kill_and_resume(tmp_path, first, KILLS, random.Random(0), LATEST_S)
    print(
        f"\n{done.kills} kills in {done.runs} runs of {TRIALS} trials: {done.records} records; {done.lost} lost, "
        f"{done.doubled} doubled, {done.torn} torn; {done.outlived} kills that a process outlived by 2 s, the slowest "
        f"end {done.slowest_end_s:.2f} s"
    )
    assert (done.lost, done.doubled, done.torn, done.outlived) == (0, 0, 0, 0)
    assert done.records == TRIALS * done.runs
