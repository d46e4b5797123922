"""`rnnbench night`: the newest versions, measured and compared with the last good ones."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.ending import leaves
from rnnbench.cli.exit_status import FAILED, NONCONFORMING, OK
from rnnbench.cli.option_types import ExistingPath, GivenPath, WholeNumber
from rnnbench.cli.options import (
    ALERTS,
    ANCHORS,
    BUDGET,
    ENVIRONMENT_FOLDER,
    EXPECTATIONS,
    HISTORY,
    NEW_RESULTS,
    REPORTS,
    THRESHOLD,
    console,
    load_anchors,
)
from rnnbench.cli.output import tell
from rnnbench.cli.selection import Selection, selection

if TYPE_CHECKING:
    from rnnbench.cases import Trial
    from rnnbench.night import ConformanceCases, MeasuredNight, NightFolders, NightPlan, VersionSearch
    from rnnbench.plan import ExpectedFailures
    from rnnbench.reports import NightSummary
    from rnnbench.results import Run


@click.command(short_help="Measure the newest versions, and compare them with the last good ones.")
@selection
@ANCHORS
@click.option("--pre", multiple=True, metavar="NAME,…", help="Backends whose pre-releases count, or 'all'.")
@click.option("--no-upgrade", is_flag=True, help="Ask no package index: what is installed here is the newest.")
@BUDGET
@THRESHOLD
@click.option(
    "--same-trials",
    default=2,
    show_default=True,
    type=WholeNumber(0, 100),
    help="Number of trials that are compared with themselves (A/A), to count this machine's false alarms.",
)
@click.option(
    "--state",
    "state_file",
    default=Path("results/night.yaml"),
    show_default=True,
    type=GivenPath(dir_okay=False),
    help="File with the last good versions.",
)
@click.option("--plan", "only_plan", is_flag=True, help="Print as JSON what would be measured, and measure nothing.")
@click.option("--measure-only", is_flag=True, help="Measure, and leave the rest to --collect.")
@click.option(
    "--collect",
    "collected",
    multiple=True,
    type=ExistingPath(file_okay=False),
    help="Collect what --measure-only left in this folder: its night.yaml and results. May be repeated.",
)
@click.option(
    "--check",
    "checked_cases",
    multiple=True,
    metavar="CASE",
    type=ExistingPath(),
    help="Check the conformance of each new version on these cases, for example cases/conformance. May be repeated.",
)
@click.option(
    "--checked",
    multiple=True,
    metavar="RUN",
    type=ExistingPath(file_okay=False),
    help="With --collect: what `rnnbench check --in` found of a newest version. May be repeated.",
)
@click.option(
    "--lost-check",
    "lost_checks",
    multiple=True,
    metavar="BACKEND",
    help="With --collect: the check of this backend's newest version was lost, so the version is not good yet. "
    "May be repeated.",
)
@HISTORY
@ALERTS
@NEW_RESULTS
@REPORTS
@EXPECTATIONS
@ENVIRONMENT_FOLDER
def night(
    selection: Selection,
    anchors: str | None,
    pre: tuple[str, ...],
    no_upgrade: bool,
    budget: float,
    threshold: float | None,
    same_trials: int,
    state_file: Path,
    only_plan: bool,
    measure_only: bool,
    collected: tuple[Path, ...],
    checked_cases: tuple[Path, ...],
    checked: tuple[Path, ...],
    lost_checks: tuple[str, ...],
    history_folder: Path,
    alerts_file: Path,
    results: Path,
    reports: Path,
    expectations: Path | None,
    environments: Path,
) -> None:
    """Measure CASE… with the newest version of each backend, and compare it with the last good one.

    A trial that became slower is compared once more, and then confirmed as an alert. With --check, each new version is
    also checked on other cases. The command updates the history, the alerts, a summary and the site. To continue a
    night that was interrupted, give the same command.

    \b
    Example:
      rnnbench night cases/backfill_gru_step.yaml \\
        --backend=onnxruntime,openvino --check cases/conformance

    \b
    Exit status:
      0  no alert was confirmed
      1  an alert was confirmed, or a trial is nonconforming
      3  a trial or a step failed
    """
    from rnnbench.history import require_history
    from rnnbench.night import NightFolders, NightPlan, VersionSearch
    from rnnbench.results import Store
    from rnnbench.sampling import PairBudget

    folders = NightFolders(history_folder, alerts_file, state_file, reports / "night")
    if collected:
        if selection.cases:
            raise click.UsageError("--collect takes what was measured; do not give CASE…")
        sys.exit(_collect_parts(collected, checked, _names(lost_checks), folders))
    if checked or lost_checks:
        option, what = ("--checked", "runs that are") if checked else ("--lost-check", "checks that were to be")
        raise click.UsageError(f"{option} names {what} collected with --collect; here --check CASE checks")
    if os.path.realpath(state_file) == os.path.realpath(alerts_file):
        raise click.UsageError(f"--state and --alerts both name {alerts_file}; give each a file of its own")
    search = VersionSearch(not no_upgrade, _names(pre))
    trials, pinned, expected = _select(selection, anchors, expectations)
    if only_plan:
        _print_plan(trials, search, state_file)
        return
    if not measure_only:
        require_history()
    plan = NightPlan(
        tuple(trials),
        tuple(pinned),
        expected,
        search,
        PairBudget(budget, threshold),
        same_trials,
        Store(results),
        state_file,
        reports,
        environments,
        _conformance_cases(selection, checked_cases, expectations, trials),
    )
    leaves(lambda: f"What is measured is in {results}; the same command goes on.")
    sys.exit(_carry_out(plan, folders, measure_only=measure_only))


def _carry_out(plan: NightPlan, folders: NightFolders, *, measure_only: bool) -> int:
    """Measure the night, and collect it unless `measure_only`. Returns the exit status."""
    from rnnbench.history import Alerts
    from rnnbench.night import hold_state, measure_night, measured_in
    from rnnbench.pipeline import ProgressBar

    with hold_state(plan.state):
        if not measure_only:
            Alerts.read(folders.alerts)  # A file that cannot be used is told before hours of measurements.
        with ProgressBar(console(), len(plan.trials) + len(plan.anchors)) as progress:
            measure_night(plan, progress, tell)
        if not measure_only:
            return _collect([measured_in(plan.state, plan.store)], folders)
    tell(f"measured {plan.state}; collect it with: rnnbench night --collect FOLDER")
    return OK


def _names(texts: tuple[str, ...]) -> frozenset[str]:
    """The backends of `--pre` and `--lost-check`. Raises BackendError."""
    from rnnbench.backends import entry_of
    from rnnbench.night import ALL

    names = frozenset(name for text in texts for name in text.split(","))
    for name in names - {ALL}:
        entry_of(name)
    return names


def _select(
    selection: Selection, anchors: str | None, expectations: Path | None
) -> tuple[list[Trial], list[Trial], ExpectedFailures]:
    """The trials of the night, its anchors, and the expected failures of both."""
    from rnnbench.cases import check_case_names
    from rnnbench.plan import expected_failures

    cases, pinned = selection.load_cases(), load_anchors(anchors, wanted=True)
    check_case_names([*cases, *pinned])
    trials = selection.select(cases, selection.targets(cases, baseline=True))
    of_anchors = [*(trial for trial in trials if trial.pinned), *(t for case in pinned for t in case.trials(()))]
    expected = expected_failures([*cases, *pinned], [*trials, *of_anchors], expectations)
    return [trial for trial in trials if not trial.pinned], of_anchors, expected


def _conformance_cases(
    selection: Selection, files: tuple[Path, ...], expectations: Path | None, trials: list[Trial]
) -> ConformanceCases:
    """The trials of these cases on every route of the backends of the night, and on its devices.

    The devices of the cases stay where the night has the processor alone: a case may be about another one.
    """
    from rnnbench.devices import KINDS
    from rnnbench.night import ConformanceCases
    from rnnbench.plan import expected_failures, targets_of

    if not files:
        return ConformanceCases()
    devices = sorted({trial.device for trial in trials})
    on_devices = () if all(KINDS[name].everywhere for name in devices) else (f"target.device=[{', '.join(devices)}]",)
    cases = Selection(files, (), on_devices, max_trials=selection.max_trials).load_cases()
    backends = dict.fromkeys(trial.target.backend for trial in trials)
    targets = targets_of([f"{backend}:*" for backend in backends], installed=False)
    of_cases = [trial for case in cases for trial in case.trials(targets, selection.max_trials, case.endurance)]
    return ConformanceCases(tuple(of_cases), expected_failures(cases, of_cases, expectations), files)


def _print_plan(trials: list[Trial], search: VersionSearch, state_file: Path) -> None:
    from rnnbench.night import checks_of, jobs_of, newest_of, read_state

    state = read_state(state_file)
    builds = newest_of(list(dict.fromkeys(trial.target.backend for trial in trials)), search)
    content = {
        "jobs": jobs_of(builds, state),
        "checks": checks_of(builds, state),
        "backends": {
            backend: {
                "good": state.good[backend].version if backend in state.good else None,
                "newest": one.newest.version if one.newest else None,
                "problem": one.problem,
            }
            for backend, one in builds.items()
        },
    }
    click.echo(json.dumps(content))


def _collect_parts(
    parts: tuple[Path, ...], checked: tuple[Path, ...], lost_checks: frozenset[str], folders: NightFolders
) -> int:
    """Collect the measurements of other jobs. Returns the exit status."""
    from rnnbench.night import hold_state, measured_in
    from rnnbench.results import Store, read_run

    nights = [measured_in(part / "night.yaml", Store(part / "results")) for part in parts]
    runs = [read_run(run) for run in checked]
    with hold_state(folders.state):
        return _collect(nights, folders, runs, lost_checks)


def _collect(
    nights: list[MeasuredNight],
    folders: NightFolders,
    checked: Sequence[Run] = (),
    lost_checks: frozenset[str] = frozenset(),
) -> int:
    from rnnbench.night import collect_night

    summary, page = collect_night(nights, folders, checked, lost_checks), folders.reports / "night.md"
    tell(f"\n{page.read_text(encoding='utf-8')}\nsummary  {page}")
    return _status(summary)


def _status(summary: NightSummary) -> int:
    """The exit status of a night. 1 comes before 3, since a wrong number is worse."""
    if summary.confirmed or summary.is_wrong:
        return NONCONFORMING
    return FAILED if summary.failed or summary.problems else OK
