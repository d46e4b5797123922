"""What `docs/extending.md` shows is all that it takes: its edits are made to a copy of the suite, which is then run.

The copy comes first on the path of a process of its own, so that the commands, the workers and the reports are its own.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import PATIENCE_S

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "extending.md"
README = ROOT / "suite" / "rnnbench" / "backends" / "README.md"
CASE = """
schema: 1
name: extended
model: {cell: lstm, input: 3, hidden: 4}
workload: {steps: 4, chunk: [2]}
strategy: {time: [looped], state: [stitched]}
measure: {budget: 200ms, processes: 1, pause: 1ms}
"""
FILE_CASE = """
schema: 1
name: read
model: {file: small.matrix, state: {h: next_h}, time: null, batch: 0}
workload: {steps: 4, chunk: [1]}
strategy: {time: [given], state: [stitched]}
"""
READER = """
from dataclasses import replace
from my_package import ToyBackend
from rnnbench.backends.base import Support

class Reader(ToyBackend):
    name = "reader"

    def probe(self):
        return replace(super().probe(), reads={"loop": frozenset({"matrix"})})

    def support(self, request):
        return Support("native") if request.file else super().support(request)
"""
"""The toy with a route that reads the new format: it runs the reference of any network."""
COMMANDS = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from rnnbench.cli import main

done = []
for arguments in json.loads(sys.argv[1]):
    output, errors = TextIOWrapper(BytesIO(), "utf-8"), TextIOWrapper(BytesIO(), "utf-8")
    sys.argv = ["rnnbench", *arguments]
    with redirect_stdout(output), redirect_stderr(errors):
        try:
            main()
        except SystemExit as ended:
            status = ended.code or 0
    for stream in (output, errors):
        stream.flush()
    done.append((status, *(stream.buffer.getvalue().decode() for stream in (output, errors))))
print(json.dumps(done))
"""
"""Several commands in one process, which imports the suite once."""


@dataclass(frozen=True)
class Edit:
    """One block of the page: where it goes, and its text."""

    section: str
    file: str
    place: str
    anchor: str
    text: str


def edits() -> list[Edit]:
    found, section = [], ""
    pattern = re.compile(
        r"^## ([^\n]+)$|<!-- (edit|new file): (\S+?)(?:, (before|after): (\".*?\"))? -->\n```python\n(.*?)```",
        re.M | re.S,
    )
    for match in pattern.finditer(PAGE.read_text()):
        if match[1]:
            section = match[1]
            continue
        anchor = json.loads(match[5]) if match[5] else ""
        found.append(Edit(section, match[3], match[4] or "new", anchor, match[6]))
    return found


def apply(edit: Edit, suite: Path) -> None:
    """An anchor must stand in the file; of several the last one counts."""
    path = suite / edit.file
    if edit.place == "new":
        path.write_text(edit.text)
        return
    content = path.read_text()
    at = content.rindex(edit.anchor) + (len(edit.anchor) if edit.place == "after" else 0)
    path.write_text(content[:at] + edit.text + content[at:])


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the extended suite, the toy backend and a case."""
    folder = tmp_path_factory.mktemp("extended")
    suite = folder / "rnnbench"
    # With what is compiled of it: only files that change are compiled anew. What another process compiles just now has
    # another name until it is whole.
    shutil.copytree(ROOT / "suite" / "rnnbench", suite, ignore=shutil.ignore_patterns("*.pyc.*"))
    for edit in edits():
        apply(edit, suite)
    with (suite / "reports" / "plots.py").open("a") as plots:
        plots.write("\n\ndef draw(view, folder):\n    return []\n")  # Pictures take longer than the run.
    (toy,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    (folder / "my_package.py").write_text(toy)
    facts = folder / "my_package-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(
        "[rnnbench.backends]\ntoy = my_package:ToyBackend\nreader = reader:Reader\n"
    )
    (folder / "reader.py").write_text(READER)
    (folder / "small.matrix").write_text("0.1 -0.4\n0.3 0.2\n-0.5 0.7\n")
    (folder / "flat.matrix").write_text("0.1 -0.4\n")
    (folder / "read.yaml").write_text(FILE_CASE)
    (folder / "case.yaml").write_text(CASE)
    return folder


def in_process(folder: Path, *arguments: str) -> str:
    """What a process of Python prints that has the extended suite."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    status: int
    output: str
    errors: str


@pytest.fixture(scope="module")
def run(extended: Path) -> dict[str, object]:
    """The record of a trial of the toy backend."""
    in_process(extended, "-m", "rnnbench", "run", "case.yaml", "--backend=toy", "--no-baseline")
    (records,) = extended.glob("results/[!.]*/records.jsonl")
    (line,) = records.read_text().splitlines()
    record: dict[str, object] = json.loads(line)
    return record


@pytest.fixture(scope="module")
def commands(extended: Path, run: object) -> dict[str, Done]:
    """Commands after the run, by what they are for."""
    (extended / "wrong.yaml").write_text(CASE.replace("pause: 1ms", "pause: soon"))
    given = {
        "rows": ["export", "latest", "--format=csv"],
        "lines": ["export", "latest", "--format=lines"],
        "device": ["list", "case.yaml", "--backend=toy", "--set", "target.device=metal"],
        "file": ["inspect", "small.matrix"],
        "damaged file": ["inspect", "flat.matrix"],
        "check": ["check", "read.yaml", "--backend=reader", "--endurance=0"],
        "mistake": ["list", "wrong.yaml", "--backend=toy"],
    }
    done = json.loads(in_process(extended, "-c", COMMANDS, json.dumps(list(given.values()))))
    return {name: Done(*each) for name, each in zip(given, done, strict=True)}


def test_each_kind_takes_two_files_at_most() -> None:
    sections: dict[str, set[str]] = {}
    for edit in edits():
        sections.setdefault(edit.section, set()).add(edit.file)
    assert set(sections) == {
        "A metric",
        "A latency path",
        "A check",
        "An export",
        "A device",
        "A format of model files",
    }
    assert max(map(len, sections.values())) == 1


def test_a_backend_of_a_package_of_its_own_runs(run) -> None:
    assert (run["backend"], run["route"], run["outcome"]) == ("toy", "loop", "ok")


def test_a_metric_is_in_the_record(run) -> None:
    assert run["metrics"]["cpu_seconds"] > 0


def test_a_latency_path_is_asked_for_by_its_key_and_recorded(run) -> None:
    assert run["timing"]["latency"]["rested"]["median"] > 0


def test_a_check_is_run_on_every_trial(run) -> None:
    assert run["conformance"]["two-sessions"]["verdict"] == "pass"


def test_the_report_shows_the_metric_and_the_path(extended: Path, run) -> None:
    (page,) = extended.glob("reports/*/report.md")
    report = page.read_text()
    assert "CPU time" in report
    assert "rested" in report


@pytest.mark.proof
def test_rows_and_an_export_have_what_is_new(commands, run) -> None:
    (row,) = csv.DictReader(io.StringIO(commands["rows"].output))
    assert float(row["metric_cpu_seconds"]) > 0
    assert float(row["rested_median_s"]) > 0
    assert commands["lines"].output.startswith(f"{run['trial']} ")


@pytest.mark.proof
def test_a_case_may_name_the_new_device(commands) -> None:
    assert commands["device"].status == 0
    assert "float32-metal-t1" in commands["device"].output


@pytest.mark.proof
def test_a_file_of_the_new_format_is_described_and_checked(commands) -> None:
    assert commands["file"].status == 0
    assert "next_h (given)" in commands["file"].output
    assert commands["check"].status == 0, commands["check"].output
    assert "ok  reader:loop/given-stitched/small-b1-c1-float32-cpu-t1" in commands["check"].output


@pytest.mark.proof
def test_a_damaged_file_of_the_new_format_is_told_in_a_sentence(commands) -> None:
    done = commands["damaged file"]
    assert (done.status, done.output) == (2, "")
    assert "flat.matrix: it has 1 rows; expected more than its 2 columns" in " ".join(done.errors.split())


@pytest.mark.proof
def test_a_mistake_in_the_new_key_is_told_with_its_place(commands) -> None:
    done = commands["mistake"]
    assert done.status == 2
    assert "wrong.yaml:7:" in done.errors
    assert "measure.pause" in done.errors
