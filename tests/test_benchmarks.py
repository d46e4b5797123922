"""The proofs of `make bench`, which `make test` does not run: they can be collected, and are told and run by name."""

from __future__ import annotations

import ast
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S, join

ROOT = Path(__file__).parents[1]
MAKEFILE = ROOT / "Makefile"
PROOFS = {path.stem.removeprefix("test_"): path for path in sorted((ROOT / "tests" / "benchmarks").rglob("test_*.py"))}
FIRST = re.compile(r".+ \((a minute|minutes|half an hour|an hour|hours)(, pip)?; (?P<page>docs/\S+\.md|no figures)\)\.")
"""The first line of a proof: what it shows, how long it takes, whether it needs a package index, and its figures."""
PYTHON = """\
#!/bin/sh
for word in "$@"; do case $word in *.py) echo "runs $word"; grep -q right $word; exit $?;; esac; done
"""
"""An interpreter that runs no proof, and fails for one that is not right."""


def _collect(printed: Path) -> None:
    file = os.open(printed, os.O_WRONLY | os.O_CREAT)
    for descriptor in (1, 2):
        os.dup2(file, descriptor)
    os.chdir(ROOT)
    status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", "tests/benchmarks"])
    sys.stdout.flush()
    os._exit(status)


@pytest.mark.proof
def test_every_benchmark_can_be_collected(tmp_path: Path) -> None:
    """In a fork, which has most of what they import."""
    printed = tmp_path / "printed"
    process = multiprocessing.get_context("fork").Process(target=_collect, args=(printed,), daemon=True)
    process.start()
    join(process)
    assert process.exitcode == 0, printed.read_text()


def test_make_bench_has_each_proof_once() -> None:
    named = [
        name for line in re.findall(r"^PROOFS [:+]= (.*)$", MAKEFILE.read_text(), re.MULTILINE) for name in line.split()
    ]
    assert sorted(named) == sorted(PROOFS)


@pytest.mark.parametrize("name", PROOFS)
def test_a_proof_says_first_what_it_shows_how_long_it_takes_and_where_its_figures_are(name: str) -> None:
    docstring = ast.get_docstring(ast.parse(PROOFS[name].read_text())) or ""
    first = FIRST.fullmatch(docstring.partition("\n")[0])
    assert first, docstring
    if (page := first["page"]) == "no figures":
        return
    text = (ROOT / page).read_text()
    # A page of a question has figures of its own command, which its proof runs.
    assert page.startswith("docs/questions/") or f"make bench-{name}" in text


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the Makefile, an interpreter that runs no proof, and three proofs, one of them wrong."""
    shutil.copy(MAKEFILE, tmp_path)
    for name, text in {
        **dict.fromkeys(("pyproject.toml", "constraints.txt", ".ci/install.py"), ""),
        "tests/benchmarks/test_one.py": "wrong",
        "tests/benchmarks/test_two.py": "right",
        "tests/benchmarks/questions/test_three.py": "right",
        ".venv-test/bin/python": PYTHON,
        ".venv-test/.ready": "",
    }.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    return tmp_path


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--no-print-directory", *arguments]  # These tests may be a job of `make` themselves.
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_make_bench_goes_on_after_a_proof_that_fails_and_names_it_at_the_end(checkout: Path) -> None:
    done = make(checkout, "bench", "PROOFS=one two three")
    assert done.returncode != 0
    assert [line.split("_")[-1] for line in done.stdout.splitlines() if line.startswith("runs ")] == [
        "one.py",
        "two.py",
        "three.py",
    ]
    assert done.stdout.splitlines()[-1] == "error: these proofs failed: one"
    assert make(checkout, "bench", "PROOFS=two three").returncode == 0


def test_one_proof_is_run_by_its_name_and_another_name_runs_nothing(checkout: Path) -> None:
    done = make(checkout, "bench-three")
    assert done.returncode == 0
    assert "runs tests/benchmarks/questions/test_three.py" in done.stdout
    done = make(checkout, "bench-four")
    assert done.returncode != 0
    assert "no proof is called four" in done.stderr
    assert "runs" not in done.stdout
