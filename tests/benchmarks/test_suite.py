"""The suite adds little to starts and runs (minutes; docs/measurement.md)."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from waiting import LONG_S, PATIENCE_S

ROOT = Path(__file__).parents[2]
STARTS = 9
HELP_LIMIT_S, LIST_LIMIT_S, RUN_LIMIT_S, OVERHEAD_LIMIT = 0.3, 1.0, 300.0, 0.15
THOUSAND = """\
schema: 1
name: thousand
model: {cell: lstm, input: 64, hidden: [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192]}
workload: {steps: 128, chunk: [1, 2, 4, 8, 16, 32, 64, 128], batch: [1, 2, 3, 4, 5]}
strategy: {time: [looped], state: [none, stitched, stateful]}
"""


def median_s(*arguments: str) -> float:
    """Median wall seconds of whole commands, the interpreter's start included."""
    seconds = []
    for _ in range(STARTS):
        start = time.perf_counter()
        command = [sys.executable, "-m", "rnnbench", *arguments]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def test_help_starts_at_once():
    seconds = median_s("--help")
    print(f"\nrnnbench --help: {seconds:.3f} s")
    assert seconds < HELP_LIMIT_S


def test_a_thousand_trials_are_listed_in_a_second(tmp_path):
    case = tmp_path / "thousand.yaml"
    case.write_text(THOUSAND)
    seconds = median_s("list", str(case), "--backend", "iree")
    print(f"\nrnnbench list, 1,200 trials: {seconds:.3f} s")
    assert seconds < LIST_LIMIT_S


def test_a_run_adds_little_to_what_its_trials_spend(tmp_path):
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "rnnbench", "run", str(ROOT / "cases/lstm_streaming.yaml"), "--backend=iree,tvm"],
        cwd=tmp_path,
        check=True,
        timeout=LONG_S,
    )
    wall = time.perf_counter() - start
    (run,) = (tmp_path / "results").iterdir()
    spent = json.loads((run / "run.json").read_text())["seconds"]
    own = spent["build"] + spent["check"] + spent["sample"]
    overhead = spent["total"] / own - 1
    print(f"\nlstm_streaming: {wall:.0f} s; trials {own:.0f} s, imports {spent['import']:.1f} s, added {overhead:.1%}")
    assert overhead <= OVERHEAD_LIMIT
    assert wall < RUN_LIMIT_S
