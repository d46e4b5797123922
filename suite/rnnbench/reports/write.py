"""A report on disk: `report.md` with its pictures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rnnbench.disk import write_text
from rnnbench.optional import MissingExtraError
from rnnbench.reports import markdown, plots
from rnnbench.reports.comparison_page import comparison_markdown
from rnnbench.reports.errors import ReportError, unwritable_folder
from rnnbench.reports.machines_page import machines_page
from rnnbench.results import Comparison, Run, file_name, machine_key, split_by_machine, view_runs

PAGE = "report.md"
COMPARISON_PAGE = "comparison.md"


def write_report(runs: Sequence[Run], folder: Path) -> Path:
    """Write the report of `runs` into `folder` and return its page. Raises ReportError, and StoreError of `view_runs`.

    Merged shards of several machines have a report for each machine, in a folder of its own, and a page that links
    them. Without Matplotlib a page has no pictures, and says what to install.
    """
    if len(runs) == 1 and len(of_machines := split_by_machine(runs[0])) > 1:
        return _write_machines(runs[0], of_machines, folder)
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
        raise unwritable_folder(folder, error) from error
    return page


def _write_machines(run: Run, of_machines: Sequence[Run], folder: Path) -> Path:
    """A report for each machine of merged shards, and the page that links them."""
    pages = [write_report([run], folder / _machine_folder(run)) for run in of_machines]
    page = folder / PAGE
    try:
        links = [path.relative_to(folder) for path in pages]
        write_text(page, machines_page(list(zip(of_machines, links, strict=True)), run.warnings))
    except OSError as error:
        raise unwritable_folder(folder, error) from error
    return page


def _machine_folder(run: Run) -> str:
    """Fingerprint and interpreter: one machine may have several."""
    return file_name("-python".join(machine_key(run.parts[0].info)))


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """Write a comparison into `folder` and return its page. Raises ReportError."""
    page = folder / COMPARISON_PAGE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(page, comparison_markdown(comparison))
    except OSError as error:
        raise unwritable_folder(folder, error) from error
    return page


def write_page(page: str, file: Path) -> None:
    """Write a page as a whole. Raises ReportError."""
    try:
        write_text(file, page)
    except OSError as error:
        raise ReportError(f"cannot write {file}: {error.strerror or error}; choose another file") from error
