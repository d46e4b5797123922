"""The case files that a path names: itself, or those of a folder."""

from __future__ import annotations

from pathlib import Path

from rnnbench.cases.errors import CaseError, Place
from rnnbench.cases.expectations import FILE

SUFFIX = ".yaml"


def case_files(path: Path) -> list[Path]:
    """`path`, or the case files that lie in it, by name. Raises CaseError where a folder has none."""
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.glob(f"*{SUFFIX}") if file.name != FILE)
    if not found:
        raise CaseError.at(Place(str(path)), f"no case file lies in this folder; expected at least one *{SUFFIX}")
    return found
