"""The expected failures that hold for the cases of a command: their own files, or the one that an option names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rnnbench.cases import Case, ExpectedFailure

EXPECTATIONS = click.option(
    "--expectations",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Known failures. Without it, those of the nearest expectations.yaml beside or above each case.",
)


def known_failures(
    cases: Sequence[Case], backends: Iterable[str], file: Path | None
) -> dict[str, tuple[ExpectedFailure, ...]]:
    """Entries by case, for the backends at hand. Raises CaseError for a file, or what it says of one of them."""
    from rnnbench.backends.registry import find
    from rnnbench.cases import expected_failures_for
    from rnnbench.conformance import CHECK_NAMES

    return expected_failures_for(cases, {name: find(name).probe() for name in set(backends)}, CHECK_NAMES, file)
