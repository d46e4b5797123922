"""Kills of a run at random moments: no record is lost, doubled or torn (an hour; docs/reliability.md).

No process is left, either. RNNBENCH_KILLS=N kills N times.
"""

from __future__ import annotations

import os
import random
import time

from killed_runs import at_random, kill_and_resume, start, written
from waiting import PATIENCE_S, wait_until

KILLS = int(os.environ.get("RNNBENCH_KILLS", "200"))
CASE = """\
schema: 1
name: killed
model: {cell: lstm, input: 3, hidden: [2, 3, 4, 5, 6, 7]}
workload: {steps: 8, chunk: 2}
strategy: {time: looped, state: stitched}
measure: {budget: 50ms, processes: 1}
"""
FIRST = ("run", "killed.yaml", "--backend=fake:honest,fake:build-fails,numpy")
TRIALS = 18


def test_two_hundred_kills_lose_no_record_and_leave_no_process(tmp_path):
    """Of the parent alone, by SIGKILL. Each is followed by `--resume`; a run that has ended, by another one.

    They come as late as a run of this machine takes to write half of its records.
    """
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for folder in (killed, whole):
        folder.mkdir()
        (folder / "killed.yaml").write_text(CASE)
    began = time.monotonic()
    process = start(whole, *FIRST)
    wait_until(lambda: written(whole) >= TRIALS // 2, "half of the trials have no record", process)
    half_s = time.monotonic() - began
    process.communicate(timeout=PATIENCE_S)
    done = kill_and_resume(killed, FIRST, KILLS, at_random(random.Random(0), half_s))
    print(
        f"\n{done.kills} kills up to {half_s:.1f} s after the start, {done.at_risk} of them of runs with records; "
        f"{done.runs} runs of {TRIALS} trials, {done.records} records; {done.lost} lost, {done.doubled} doubled, "
        f"{done.torn} torn; {done.outlived} kills that a process outlived by 2 s, the slowest end "
        f"{done.slowest_end_s:.2f} s"
    )
    assert (done.lost, done.doubled, done.torn, done.outlived) == (0, 0, 0, 0)
    assert done.records == TRIALS * done.runs
    assert done.at_risk > 0
