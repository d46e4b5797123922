"""A report on disk: `report.md` with its pictures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rnnbench.disk import write_text
from rnnbench.optional import MissingExtraError
from rnnbench.reports import markdown, plots
from rnnbench.reports.comparison_page import comparison_markdown
from rnnbench.reports.plots import ReportError
from rnnbench.results import Comparison, Run, view_runs

PAGE = "report.md"
COMPARISON_PAGE = "comparison.md"


def write_report(runs: Sequence[Run], folder: Path) -> Path:
    """Write the report of `runs` into `folder` and return its page. Raises ReportError, and StoreError of `view_runs`.

    Without Matplotlib the page has no pictures, and says what to install.
    """
    shown = view_runs(runs)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            pictures, missing = plots.draw(shown, folder), ""
        except MissingExtraError as error:
            pictures, missing = [], f"There are none: {error}, then write the report again."
        page = folder / PAGE
        write_text(page, markdown.page(shown, pictures, missing))
    except OSError as error:
        raise _unwritable(folder, error) from error
    return page


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """Write a comparison into `folder` and return its page. Raises ReportError."""
    page = folder / COMPARISON_PAGE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(page, comparison_markdown(comparison))
    except OSError as error:
        raise _unwritable(folder, error) from error
    return page


def write_page(page: str, file: Path) -> None:
    """Write a page as a whole. Raises ReportError."""
    try:
        write_text(file, page)
    except OSError as error:
        raise ReportError(f"cannot write {file}: {error.strerror or error}; choose another file") from error


def _unwritable(folder: Path, error: OSError) -> ReportError:
    return ReportError(
        f"cannot write the report to {folder}: {error.strerror or error}; "
        f"make it writable, or choose another folder with --reports"
    )
