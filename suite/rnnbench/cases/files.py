"""Finding files: the case files that a path names, and the file of expected failures for a case."""

from __future__ import annotations

import os
from pathlib import Path

from rnnbench.cases.errors import CaseError, Place

SUFFIX = ".yaml"
EXPECTED_FAILURES = "expectations.yaml"
"""Name of the files of expected failures."""
SHIPPED = (Path(__file__).parents[3] / "cases" / EXPECTED_FAILURES, Path(__file__).parent / EXPECTED_FAILURES)
"""Where the suite's own file lies: in a checkout, or in an installed package."""
ANCHORS = Path(__file__).parent / "anchors.yaml"
"""The case of the anchors that every night and every shard runs."""


def case_files(path: Path) -> list[Path]:
    """`path` itself, or the case files in that folder, by name. Raises CaseError if a folder has none."""
    if not os.path.isdir(path):  # Unlike Path.is_dir, False for a name that is too long to be one.
        return [path]
    files = sorted(file for file in path.glob(f"*{SUFFIX}") if file.name != EXPECTED_FAILURES)
    if not files:
        raise CaseError.at(Place(str(path)), f"no case file lies in this folder; expected at least one *{SUFFIX}")
    return files


def expected_failures_file(case: Path) -> Path | None:
    """The file of expected failures for a case: beside it, else in the nearest folder above, else the suite's."""
    beside = (folder / EXPECTED_FAILURES for folder in case.resolve().parents)
    return next((file for file in (*beside, *SHIPPED) if os.path.isfile(file)), None)
