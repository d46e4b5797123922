"""`rnnbench check`: conformance alone."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.ending import run_leaves
from rnnbench.cli.option_types import Number, WholeNumber
from rnnbench.cli.options import (
    ENVIRONMENT_FOLDER,
    EXPECTATIONS,
    MACHINE_CLASS,
    NEW_RESULTS,
    ON,
    REBUILD,
    REPORTS,
    SHARD,
    console,
    open_cache,
    place_of,
)
from rnnbench.cli.output import tell, tell_failed_checks, tell_left
from rnnbench.cli.selection import Selection, selection

if TYPE_CHECKING:
    from rnnbench.cases import Case, ExpectedFailure, Trial
    from rnnbench.fleet import Place, UnfinishedTrials
    from rnnbench.pipeline import ProgressBar
    from rnnbench.plan import CoveringTrials, RunPlan, Shard
    from rnnbench.results import Run, Store
    from rnnbench.stages import Checked, Examined


@click.command(short_help="Check every trial against the reference, without timing.")
@selection
@NEW_RESULTS
@REPORTS
@EXPECTATIONS
@click.option(
    "--jobs",
    type=WholeNumber(1, 256),
    help="Number of trials checked in parallel.  [default: one per core, within the free memory]",
)
@click.option(
    "--endurance",
    type=Number(0, 3600),
    help="Seconds for each long check (drift, memory); 0 leaves them out.  [default: as in the cases]",
)
@click.option("--no-shrink", is_flag=True, help="Do not look for a smaller trial that fails in the same way.")
@click.option(
    "--covering",
    is_flag=True,
    help="Check each target on few trials that together contain every pair of values that it supports.  "
    "[default where no --backend is given]",
)
@click.option(
    "--in",
    "environment",
    metavar="ENV",
    help="Check in another environment: a virtual environment's folder, or requirements such as "
    "'onnxruntime==1.30.0', from which one is made.",
)
@ENVIRONMENT_FOLDER
@SHARD
@REBUILD
@ON
@MACHINE_CLASS
def check(
    selection: Selection,
    results: Path,
    reports: Path,
    expectations: Path | None,
    jobs: int | None,
    endurance: float | None,
    no_shrink: bool,
    covering: bool,
    environment: str | None,
    environments: Path,
    shard: Shard | None,
    rebuild: bool,
    address: str | None,
    machine_class: str | None,
) -> None:
    """Check every trial of CASE… against the reference, in parallel and without timing.

    CASE may be a folder of case files. Without --backend, every route of every installed backend is checked, on few
    trials that together contain every pair of values that the route supports. Routes into one compiler share these
    pairs, and each has every value. Routes that build slowly are checked on trials that contain every value once.

    Example: rnnbench check cases/conformance --backend=iree

    \b
    Exit status:
      0  every trial is ok, not supported, not installed, or fails as expected
      1  a trial is nonconforming, or passes and was expected to fail
      3  a trial failed
    """
    from rnnbench.cli.exit_status import OK
    from rnnbench.pipeline import ProgressBar, check_trials
    from rnnbench.plan import end_run, expected_failures
    from rnnbench.results import Store

    if environment is not None and not selection.backends:
        raise click.UsageError("--in needs the backends that are checked there; give them with --backend")
    if environment is not None and address is not None:
        raise click.UsageError("--in names an environment of this machine; it cannot be given with --on")
    place = place_of(address, machine_class)
    cases = selection.load_cases()
    if environment is None:
        trials = _trials(selection, cases, endurance, covering=covering, elsewhere=place is not None)
        examined = None
    else:
        examined = _examine(selection, cases, endurance, environment, environments, covering=covering)
        trials = [one.trial for one in examined]
    expected = expected_failures(cases, trials, expectations)
    plan, examined = _begin(selection, trials, examined, shard, Store(results), expected)
    if plan.is_empty:
        end_run(plan.folder, {})
        tell(f"records  {plan.folder}")
        sys.exit(OK)
    run_leaves(plan.folder, ". A check is not resumed: check the same cases again")
    with ProgressBar(console(), len(plan.trials)) as progress:
        if place is None:
            smallest = check_trials(
                plan,
                progress,
                jobs,
                shrinks=not no_shrink and environment is None,
                examined=examined,
                cache=open_cache(rebuild=rebuild),
            )
            left: list[UnfinishedTrials] = []
        else:
            smallest, left = [], _check_on(plan, place, progress, jobs, rebuild)
    sys.exit(_show_results(plan.folder, reports, [_smallest(checked, cases) for checked in smallest], left))


def _show_results(folder: Path, reports: Path, smallest: Sequence[str], left: Sequence[UnfinishedTrials]) -> int:
    """Print the results and write the report. Returns the exit status."""
    from rnnbench.cli.exit_status import FAILED, exit_status
    from rnnbench.reports import print_conformance, write_report
    from rnnbench.results import read_run

    finished = read_run(folder)
    print_conformance(finished, console())
    tell_failed_checks(finished.records)
    for sentence in smallest:
        tell(sentence)
    if finished.info.finished:  # Otherwise nodes of a cluster have left trials, and nothing is known of its seconds.
        tell(_cost(finished))
    tell(f"\nrecords  {folder}\nreport   {write_report([finished], reports / finished.name)}")
    if left:
        tell_left(left, "check the same cases again: a check that was interrupted is not resumed")
    return exit_status(finished.records) or (FAILED if left else 0)


def _check_on(
    plan: RunPlan, place: Place, progress: ProgressBar, jobs: int | None, rebuild: bool
) -> list[UnfinishedTrials]:
    from rnnbench.fleet import run_on_cluster

    return run_on_cluster(plan, place, progress, progress.tell, timed=False, jobs=jobs, rebuild=rebuild)


def _smallest(checked: Checked, cases: list[Case]) -> str:
    """A text about the smallest trial that fails the same check, with the command that reproduces it."""
    from rnnbench.pipeline import reproduce_command

    file = next(Path(case.path or "") for case in cases if case.name == checked.trial.case)
    reason = checked.failure.reason if checked.failure else ""
    command = reproduce_command(checked.trial, file)
    return f"\nsmallest trial found that fails the same check: {reason}\nreproduce it with:\n  {command}"


def _trials(
    selection: Selection, cases: list[Case], endurance: float | None, *, covering: bool, elsewhere: bool
) -> list[Trial]:
    from rnnbench.plan import covering_trials, installed_backends, require_devices, targets_of

    if selection.backends:
        trials = selection.select(cases, selection.targets(cases), endurance)
        if not elsewhere:
            require_devices(trials)
        if not covering:
            return trials
    else:
        targets = targets_of([f"{name}:*" for name in installed_backends()], installed=False)
        trials = selection.select(cases, targets, endurance)
    return _announce(covering_trials(trials))


def _examine(
    selection: Selection,
    cases: list[Case],
    endurance: float | None,
    environment: str,
    environments: Path,
    *,
    covering: bool,
) -> list[Examined]:
    """The trials as the adapters of another environment examine them. Raises SideError."""
    from rnnbench.pipeline import open_environment
    from rnnbench.plan import covering_of

    trials = selection.select(cases, selection.targets(cases, installed=False), endurance)
    examined = open_environment(environment, trials, environments).examined()
    kept = {trial.id for trial in _announce(covering_of(examined))} if covering else None
    return [one for one in examined if kept is None or one.trial.id in kept]


def _announce(covering: CoveringTrials) -> list[Trial]:
    for sentence in covering.sentences():
        tell(sentence)
    return covering.trials


def _begin(
    selection: Selection,
    trials: list[Trial],
    examined: list[Examined] | None,
    shard: Shard | None,
    store: Store,
    expected: dict[str, tuple[ExpectedFailure, ...]],
) -> tuple[RunPlan, list[Examined] | None]:
    """Begin the run of the check, or of its shard. Returns its plan, and those of its trials that were examined."""
    from rnnbench.pipeline import note_versions
    from rnnbench.plan import begin_run, shard_of

    part = None if shard is None else shard_of(trials, shard)
    if part is not None:
        tell(part.sentence)
    plan = begin_run(trials, store, expected, shard=part, case_files=selection.cases)
    if examined is None:
        return plan, None
    note_versions(plan, examined)
    of_plan = {trial.id for trial in plan.trials}
    return plan, [one for one in examined if one.trial.id in of_plan]


def _cost(run: Run) -> str:
    """A sentence about the wall time, the parts of the workers' time, and the memory of this process."""
    from rnnbench.spelling import count, percents

    seconds, resident = run.info.seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    of_workers = {what: seconds.get(what, 0.0) for what in ("build", "check", "import")}
    total = sum(of_workers.values())
    listed = ", ".join(f"{what} {value:.0f} s" for what, value in of_workers.items())
    reference = f"; {percents(seconds.get('reference', 0.0) / total)} of it for the reference" if total else ""
    return (
        f"{count(len(run.records), 'trial')} in {seconds['total']:.0f} s. Time in workers: {listed}{reference}. "
        f"Peak memory of this process: {resident >> 10} MiB."
    )
