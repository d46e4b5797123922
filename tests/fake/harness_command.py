"""The command `rnnbench`, run in this process: a fresh one takes a second to import what this one has."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rnnbench.cli import main


class Done(NamedTuple):
    stdout: str
    stderr: str


def run_command(folder: Path, *arguments: str, status: int = 0) -> Done:
    """Run it in a folder, in 160 columns: it ends with that status, and raises nothing."""
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        patch.setenv("COLUMNS", "160")
        patch.setattr(sys, "argv", ["rnnbench", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    done = Done(out.getvalue(), err.getvalue())
    assert (ended.value.code or 0) == status, done.stderr or done.stdout
    return done


def records_in(folder: Path) -> list[dict[str, Any]]:
    """The records of all runs under a folder in which the command was run, as they are written."""
    return [json.loads(line) for path in folder.glob("results/[!.]*/records.jsonl") for line in path.open()]
