"""The known failures that hold for the cases of a command: their own files, or the one that an option names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rnnbench.cases import Case
    from rnnbench.cases.expectations import Expectation

EXPECTATIONS = click.option(
    "--expectations",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Known failures. Without it, those of the nearest expectations.yaml beside or above each case.",
)


def known_failures(
    cases: Sequence[Case], backends: Iterable[str], file: Path | None
) -> dict[str, tuple[Expectation, ...]]:
    """Entries by case, for the backends at hand. Raises CaseError for a file, or what it says of one of them."""
    from rnnbench.cases.expectations import nearest

    at_hand, read = sorted(set(backends)), {}
    known = {}
    for case in cases:
        path = file or nearest(Path(case.path))
        if path is not None and path not in read:
            read[path] = _read(path, at_hand)
        known[case.name] = read[path] if path is not None else ()
    return known


def _read(path: Path, backends: Sequence[str]) -> tuple[Expectation, ...]:
    from rnnbench.backends.registry import find
    from rnnbench.cases import CaseError, Place, Problem
    from rnnbench.cases.expectations import read_expectations
    from rnnbench.conformance.checks import CHECKS, TIMED
    from rnnbench.conformance.endurance import endurance

    checks = [*(check.name for check in (*CHECKS, *endurance(0))), TIMED]
    entries = read_expectations(Path(os.path.relpath(path)), checks)
    problems = []
    for entry in entries:
        if entry.backend in backends:
            probe = find(entry.backend).probe()
            problems += [
                Problem(Place(entry.place), message) for message in entry.mistakes(probe.routes, probe.versions)
            ]
    if problems:
        raise CaseError(problems)
    return tuple(entry for entry in entries if entry.backend in backends)
