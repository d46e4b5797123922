"""Commands on runs of ten thousand trials are quick and small (minutes; docs/reports.md).

The figures are seconds of processor time, and memory. The runs are synthetic: the records of the committed runs again
and again, under the case `synthetic`, in a folder that pytest removes. Nothing is written beside real results.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from rnnbench.results import read_run

ROOT = Path(__file__).parents[2]
COUNTS = (2_500, 5_000, 10_000)
MOST_MEMORY = 500 << 20
MOST_SECONDS = {"list": 2.0, "compare": 5.0, "report": 20.0, "history": 2.0}
MOST_GROWTH = 1.15
"""Exponent of the growth of time with the number of trials: 1 is proportional."""
MANY = """\
schema: 1
name: many
model: {cell: lstm, input: 64, hidden: [%s]}
workload: {steps: 128, chunk: [1, 2, 4, 8, 16, 32, 64, 128], batch: [1, 2, 3, 4, 5]}
strategy: {time: [looped, unrolled], state: [none, stitched, stateful]}
"""
PER_SIZE = 8 * 5 * 2 * 3


@dataclass(frozen=True)
class Cost:
    """What one command took."""

    seconds: float
    """Of the processor, in the command and what it started: the wall time of a quiet machine."""
    nbytes: int
    """The largest resident size."""


def cost_of(folder: Path, *arguments: str) -> Cost:
    """Run a command, which ends with 0."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rnnbench", *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    assert process.returncode == 0, said.decode()
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10)


def write_run(folder: Path, count: int) -> Path:
    """A run of so many trials."""
    runs = [read_run(ROOT / "results" / name) for name in ("scaling", "reference", "realtime")]
    records = [json.loads(record.model_dump_json()) for run in runs for record in run.records]
    folder.mkdir()
    info = json.loads((ROOT / "results" / "scaling" / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**info, "run": f"20260101T000000Z-{folder.name}"}))
    with (folder / "records.jsonl").open("w") as lines:
        for number in range(count):
            lines.write(json.dumps(_copy(records[number % len(records)], number // len(records))) + "\n")
    return folder


def _copy(record: dict, number: int) -> dict:
    shared = record["same_as"] and f"synthetic/{record['same_as']}-{number}"
    return {**record, "case": "synthetic", "trial": f"synthetic/{record['trial']}-{number}", "same_as": shared}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with two runs of each size, and a history that has the first one of each."""
    folder = tmp_path_factory.mktemp("synthetic")
    for count in COUNTS:
        for side in "ab":
            write_run(folder / f"{side}{count}", count)
        subprocess.run(
            [sys.executable, "-m", "rnnbench", "history", "add", f"a{count}", "--history", f"history{count}"],
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        sizes = ", ".join(str(size) for size in range(1, count // PER_SIZE + 1))
        (folder / f"many{count}.yaml").write_text(MANY % sizes)
    return folder


COMMANDS = {
    "list": ("list", "many{}.yaml", "--backend", "iree"),
    "compare": ("compare", "a{}", "b{}"),
    "report": ("report", "a{}"),
    "history": ("history", "changes", "--history", "history{}"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_on_ten_thousand_trials_is_quick_and_small_and_grows_no_faster_than_they(runs, name):
    costs = {count: cost_of(runs, *(part.format(count) for part in COMMANDS[name])) for count in COUNTS}
    first, last = COUNTS[0], COUNTS[-1]
    growth = math.log(costs[last].seconds / costs[first].seconds) / math.log(last / first)
    told = ", ".join(f"{count:,}: {cost.seconds:.1f} s, {cost.nbytes >> 20} MiB" for count, cost in costs.items())
    print(f"\n{name}: {told}; time grows with the power {growth:.2f}")
    assert growth <= MOST_GROWTH
    assert costs[last].nbytes <= MOST_MEMORY
    assert costs[last].seconds <= MOST_SECONDS[name]


def test_the_page_has_the_limit_of_a_comparison():
    limit = f"takes more than {MOST_SECONDS['compare']:g} s"
    assert limit in (ROOT / "docs" / "reports.md").read_text().replace("\n", " ")
