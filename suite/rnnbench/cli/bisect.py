"""`rnnbench bisect`: the release in which a trial became slower, or stopped conforming."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.ending import leaves
from rnnbench.cli.exit_status import NONCONFORMING, OK
from rnnbench.cli.option_types import GivenText, ReleaseVersion
from rnnbench.cli.options import BUDGET, ENVIRONMENT_FOLDER, NEW_RESULTS, PACKAGE, RELEASE_LIST, THRESHOLD, console
from rnnbench.cli.output import tell
from rnnbench.cli.selection import Selection, selection

if TYPE_CHECKING:
    from rnnbench.cases import Trial
    from rnnbench.pipeline import Bisection, Release, Step


@click.command(short_help="Find the release in which a trial became slower or wrong.")
@selection
@click.option("--good", required=True, type=ReleaseVersion(), metavar="V", help="A release that is good.")
@click.option("--bad", required=True, type=ReleaseVersion(), metavar="V", help="A later release that is bad.")
@click.option(
    "--on",
    "subject",
    type=click.Choice(["latency", "outcome"]),
    default="latency",
    show_default=True,
    help="What is bad: a SLOWER latency, or the outcome of the bad release (nothing is timed).",
)
@click.option("--path", default="bound", show_default=True, type=click.Choice(["bound", "public"]), help="The latency.")
@click.option("--versions", metavar="SPEC", type=GivenText(), help="Releases to walk: '!=1.25.0', or 1.24.1,1.25.0.")
@RELEASE_LIST
@PACKAGE
@BUDGET
@THRESHOLD
@NEW_RESULTS
@ENVIRONMENT_FOLDER
def bisect(
    selection: Selection,
    good: str,
    bad: str,
    subject: str,
    path: str,
    versions: str | None,
    listed: Path | None,
    package: str | None,
    budget: float,
    threshold: float | None,
    results: Path,
    environments: Path,
) -> None:
    """Find the first bad release of a backend's package, for one trial of CASE….

    Each step compares a release with the good one as `rnnbench ab` does, in an environment that is made and kept. A
    release that cannot be judged is skipped. Select the one trial with --backend, --only and --filter.

    \b
    Example:
      rnnbench bisect cases/backfill_gru_step.yaml --backend=onnxruntime \\
        --filter time=fused,hidden=96 --good 1.20.1 --bad 1.21.0

    \b
    Exit status:
      0  the first bad release is known
      1  it is one of several releases, because some were skipped
      2  the good and the bad release do not differ, or cannot be used
    """
    from rnnbench.pipeline import (
        LatencyJudge,
        OutcomeJudge,
        ProgressBar,
        Steps,
        bisect_releases,
        list_releases,
        released_package,
    )
    from rnnbench.results import Store
    from rnnbench.sampling import PairBudget

    trial = _only_trial(selection.select(cases := selection.load_cases(), selection.targets(cases, installed=False)))
    package_name = package or released_package(trial.target.backend)
    releases = _releases(list_releases(package_name, versions or "", listed), package_name, good, bad)
    tell(f"{trial.id}: {len(releases)} releases of {package_name}, from {good} to {bad}.")
    leaves(lambda: f"Finished steps are in {results}.")
    settings = [word for setting in selection.overrides for word in ("--set", setting)]
    selected = shlex.join([*map(str, selection.cases), f"--backend={trial.target}", *settings, "--only", trial.id])
    with ProgressBar(console(), 2 * len(releases)) as progress:
        steps = Steps(trial, Store(results), environments, progress, selected)
        judge = (
            OutcomeJudge(steps) if subject == "outcome" else LatencyJudge(steps, PairBudget(budget, threshold), path)
        )
        result = bisect_releases(releases, judge, _tell_step)
    sys.exit(_tell_found(result))


def _only_trial(trials: list[Trial]) -> Trial:
    if len(trials) != 1:
        some = [trial.id for trial in trials[:10]] + ([f"and {more} more"] if (more := len(trials) - 10) > 0 else [])
        listed = "".join(f"\n  {name}" for name in some)
        raise click.UsageError(f"a bisection takes one trial, and {len(trials)} are selected; add --only ID:{listed}")
    return trials[0]


def _releases(listing: Sequence[Release], package: str, good: str, bad: str) -> Sequence[Release]:
    """The releases from the good one to the bad one, both included."""
    from rnnbench.pipeline import between, find_release

    ends = find_release(listing, package, good, "--good"), find_release(listing, package, bad, "--bad")
    releases = between(listing, *ends)
    if len(releases) < 2:
        raise click.UsageError(f"--good {good} must be older than --bad {bad}")
    return releases


def _tell_step(step: Step) -> None:
    tell(f"{step.release.version}: {step.state}: {step.reason}" + (f"\n  {step.command}" if step.command else ""))


def _tell_found(found: Bisection) -> int:
    """Print the result of a bisection. Returns the exit status."""
    if len(found.suspects) == 1:
        tell(f"The first bad release is {found.suspects[0].version}. The last good one is {found.last_good.version}.")
        return OK
    names = ", ".join(release.version for release in found.suspects)
    tell(f"The first bad release is one of {names}. The last good one is {found.last_good.version}.")
    return NONCONFORMING
