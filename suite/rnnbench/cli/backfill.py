"""`rnnbench history backfill`: measures the releases of a backend's package into a history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.ending import leaves
from rnnbench.cli.option_types import Duration, GivenPath, GivenText, ReleaseVersion, Share, WholeNumber
from rnnbench.cli.options import ENVIRONMENT_FOLDER, HISTORY, NEW_RESULTS, PACKAGE, RELEASE_LIST, REPORTS, console
from rnnbench.cli.output import tell
from rnnbench.cli.selection import Selection

if TYPE_CHECKING:
    from rich.console import Console

    from rnnbench.history import ReleaseSeries
    from rnnbench.pipeline import Backfill, Release


@click.command(short_help="Measure the releases of a backend into the history.")
@click.argument("backend", metavar="BACKEND[:ROUTE]")
@click.argument("cases", nargs=-1, required=True, metavar="CASE…", type=GivenPath())
@click.option(
    "--versions",
    metavar="SPEC",
    type=GivenText(),
    help="'>=1.24,<1.30', or the versions themselves: 1.24.1,1.25.0.  [default: all]",
)
@RELEASE_LIST
@PACKAGE
@click.option(
    "--reference",
    metavar="V",
    type=ReleaseVersion(),
    help="The release that is sampled in turn with each other one.  [default: the newest]",
)
@click.option("--minors", is_flag=True, help="Take the newest release of each minor version only.")
@click.option("--filter", "filters", multiple=True, metavar="EXPR", help="Keep only trials that match.")
@click.option("--pairs", default=8, show_default=True, type=WholeNumber(2, 40), help="Pairs of processes a release.")
@click.option(
    "--within",
    default="15min",
    show_default=True,
    type=Duration(),
    help="Longest measuring time. Run again to go on.",
)
@click.option("--retry", is_flag=True, help="Try releases again that could not be installed.")
@click.option(
    "--threshold",
    default="3%",
    show_default=True,
    type=Share(0.001, 0.9),
    help="The smallest change of latency that matters, 3% or 0.03.",
)
@HISTORY
@NEW_RESULTS
@REPORTS
@ENVIRONMENT_FOLDER
def backfill(
    backend: str,
    cases: tuple[Path, ...],
    versions: str | None,
    listed: Path | None,
    package: str | None,
    reference: str | None,
    minors: bool,
    filters: tuple[str, ...],
    pairs: int,
    within: float,
    retry: bool,
    threshold: float,
    history_folder: Path,
    results: Path,
    reports: Path,
    environments: Path,
) -> None:
    """Measure releases of BACKEND on the trials of CASE…, each in an environment of its own, into one history.

    Each release is sampled in turn with a reference release, so the machine's speed is in both. What the history
    already has is not measured again: a backfill that was interrupted, or that ran out of time, goes on.

    \b
    Example:
      rnnbench history backfill onnxruntime --versions '>=1.24' \\
        cases/backfill_gru_step.yaml
    """
    from rnnbench.pipeline import (
        Backfill,
        find_release,
        list_releases,
        newest_of_minors,
        released_package,
        stored_reference,
    )
    from rnnbench.results import Store
    from rnnbench.sampling import PairBudget
    from rnnbench.spelling import count

    selection = Selection(cases, (backend,), filters=filters)
    trials = selection.select(loaded := selection.load_cases(), selection.targets(loaded, installed=False))
    package_name = package or released_package(trials[0].target.backend)
    releases = list_releases(package_name, versions or "", listed)
    kept = newest_of_minors(releases) if minors else releases
    reference_version = reference or stored_reference(history_folder, package_name) or releases[-1].version
    plan = Backfill(
        tuple(trials),
        find_release(releases, package_name, reference_version, "--reference" if reference else str(history_folder)),
        PairBudget(within, threshold, pairs),
        Store(results),
        history_folder,
        environments,
        within,
        retry,
    )
    measured = f"{count(len(kept), 'release')} of {package_name}, each beside {plan.reference.version}"
    tell(f"{measured}, {count(len(trials), 'trial')}.")
    leaves(lambda: f"Finished releases are in {history_folder}; the same command goes on.")
    terminal = console()
    _measure(plan, kept, terminal)
    _show(history_folder, package_name, threshold, reports, terminal)
    _tell_left(plan, kept)


def _tell_left(plan: Backfill, releases: Sequence[Release]) -> None:
    from rnnbench.pipeline import missing_trials

    if left := [version for version, lacking in missing_trials(plan, releases).items() if lacking]:
        tell(f"Not measured yet, the time was spent: {', '.join(left)}. The same command goes on with them.")


def _measure(plan: Backfill, releases: Sequence[Release], terminal: Console) -> None:
    from rnnbench.pipeline import ProgressBar, measure_releases

    with ProgressBar(terminal, 2 * len(plan.trials) * len(releases)) as progress:
        for one in measure_releases(plan, releases, progress, tell):
            tell(f"{one.release.version}: " + (one.problem or f"measured in {one.seconds:.0f} s"))


def _show(history_folder: Path, package: str, threshold: float, reports: Path, terminal: Console) -> None:
    from rnnbench.history import History, release_change_lines, release_series
    from rnnbench.reports import RELEASE_LEGEND, print_table, release_tables, write_release_page

    every = release_series(History(history_folder))
    series: list[ReleaseSeries] = [each for each in every if each.package == package]
    lines = list(release_change_lines(series, threshold))
    tables = release_tables(series, threshold)
    for content in tables:
        if content.text == 1:
            print_table(content, terminal)
    tell("\n".join([RELEASE_LEGEND, "", *lines]))
    page = write_release_page(
        f"Releases of {package}", [*lines, RELEASE_LEGEND], tables, reports / f"releases-{package}"
    )
    tell(f"\nhistory  {history_folder}\nreport   {page}")
