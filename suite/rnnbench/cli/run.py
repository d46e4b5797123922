"""`rnnbench run`: build, check, time, report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from rnnbench.cli.ending import run_leaves
from rnnbench.cli.option_types import WholeNumber
from rnnbench.cli.options import (
    ANCHORS,
    ENVIRONMENT_FOLDER,
    EXPECTATIONS,
    MACHINE_CLASS,
    NEW_RESULTS,
    NO_BASELINE,
    ON,
    REBUILD,
    REPORTS,
    SHARD,
    console,
    load_anchors,
    on_again,
    open_cache,
    place_of,
)
from rnnbench.cli.output import tell, tell_failed_checks, tell_left, tell_warnings
from rnnbench.cli.selection import Selection, selection

if TYPE_CHECKING:
    from rnnbench.cache import CacheFolder
    from rnnbench.cases import Case, Trial
    from rnnbench.fleet import Place, UnfinishedTrials
    from rnnbench.pipeline import ProgressBar
    from rnnbench.plan import RunPlan, Shard
    from rnnbench.results import Run, Store

_PLAN_OPTIONS = (
    *("backends", "overrides", "only", "filters", "max_trials", "expectations", "processes", "shard"),
    *("no_baseline", "anchors"),
)
"""Options that decide which trials a run has, and how they are measured and judged."""
_FILE_OPTIONS = ("reports", "environments", "keep_artifacts", "rebuild")
"""Options that decide where files go and how programs are made. A resumed run takes them from its first command."""


@click.command(short_help="Build, check and time every trial, and write a report.")
@selection
@NEW_RESULTS
@REPORTS
@EXPECTATIONS
@click.option(
    "--processes",
    type=WholeNumber(1, 100),
    help="Number of fresh processes that sample each trial.  [default: as in the case]",
)
@SHARD
@click.option(
    "--resume",
    metavar="RUN",
    help="Continue an interrupted run: give its folder, its name, or 'latest'. Its files go to the folders of the "
    "first command.",
)
@NO_BASELINE
@ANCHORS
@ENVIRONMENT_FOLDER
@click.option("--keep-artifacts", is_flag=True, help="Keep the compiled files in the run's folder.")
@REBUILD
@ON
@MACHINE_CLASS
def run(
    selection: Selection,
    results: Path,
    reports: Path,
    expectations: Path | None,
    processes: int | None,
    shard: Shard | None,
    resume: str | None,
    no_baseline: bool,
    anchors: str | None,
    environments: Path,
    keep_artifacts: bool,
    rebuild: bool,
    address: str | None,
    machine_class: str | None,
) -> None:
    """Build, check and time every trial of CASE…, and write a report.

    Example: rnnbench run cases/smoke.yaml --backend=iree

    \b
    Exit status:
      0  every trial is ok, not supported, not installed, or fails as expected
      1  a trial is nonconforming, or passes and was expected to fail
      3  a trial failed
    """
    from rnnbench.plan import resume_run
    from rnnbench.results import Store

    place = place_of(address, machine_class)
    if place is not None and keep_artifacts:
        raise click.UsageError("--keep-artifacts keeps files of this machine; with --on they are on the nodes")
    if place is not None and anchors is not None:
        raise click.UsageError("--anchors makes environments on this machine; with --on there are none on the nodes")
    store = Store(results)
    if resume is not None:
        if selection.cases:
            raise click.UsageError("--resume continues the cases of the run; do not give CASE…")
        _refuse_options_of_a_plan()
        tell_warnings(store.left_out(resume))
        plan = resume_run(store.resolve(resume), elsewhere=place is not None)
        began = _options_of_the_beginning(plan.folder)
        reports, environments = began.get("reports", reports), began.get("environments", environments)
        keep_artifacts, rebuild = keep_artifacts or "keep_artifacts" in began, rebuild or "rebuild" in began
    else:
        cases = selection.load_cases()
        trials = _select(selection, cases, processes, shard, place, baseline=not no_baseline)
        pinned = load_anchors(anchors, wanted=shard is not None and place is None)
        plan = _begin((cases, trials), pinned, store, expectations, shard)
    measure = (
        partial(_measure_on, place=place, rebuild=rebuild)
        if place
        else partial(
            _measure_here, keep_artifacts=keep_artifacts, environments=environments, cache=open_cache(rebuild=rebuild)
        )
    )
    sys.exit(_carry_out(plan, reports, place, measure))


def _refuse_options_of_a_plan() -> None:
    """Raise UsageError for an option of a plan: a resumed run has its plan, and the option would do nothing."""
    context = click.get_current_context()
    for option in context.command.params:
        is_given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if is_given and option.name in _PLAN_OPTIONS:
            raise click.UsageError(f"--resume continues the run as it began; do not give {option.opts[0]}")


def _options_of_the_beginning(folder: Path) -> dict[str, Any]:
    """The options of _FILE_OPTIONS that the run's first command had, and this command does not have.

    Relative paths refer to the working folder of the first command. Raises UsageError if one cannot be written now, and
    StoreError.
    """
    from rnnbench.results import INFO, StoreError, read_info

    context, info = click.get_current_context(), read_info(folder)[0]
    if any("\0" in word for word in (*info.command, info.directory or "")):
        raise StoreError(f"{folder / INFO}: has a null byte in `command` or `directory`, as no command has; restore it")
    if info.command[1:2] != (context.info_name,):
        return {}
    try:
        options = context.command.make_parser(context).parse_args(list(info.command[2:]))[0]
    except click.UsageError:  # Another version of rnnbench, with other options, began the run.
        return {}
    began: dict[str, Any] = {}
    for option in context.command.params:
        name = option.name or ""
        if name not in _FILE_OPTIONS or context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            continue
        value = options.get(name, option.default)
        if isinstance(value, str | Path):
            began[name] = option.process_value(context, _as_seen_from_here(Path(value), folder, info.directory))
        elif value is True:
            began[name] = True
    return began


def _as_seen_from_here(path: Path, run: Path, directory: str | None) -> Path:
    """A path that was given in the working folder `directory`, which is relative to the run's folder."""
    if directory is None or path.is_absolute() or path.parts[:1] == ("~",):
        return path
    began_in = Path(os.path.realpath(run / directory))
    return path if began_in == Path.cwd().resolve() else began_in / path


def _select(
    selection: Selection,
    cases: list[Case],
    processes: int | None,
    shard: Shard | None,
    place: Place | None,
    *,
    baseline: bool,
) -> list[Trial]:
    from rnnbench.plan import require_devices

    trials = selection.select(cases, selection.targets(cases, baseline=baseline, everywhere=shard is not None))
    if selection.backends and shard is None and place is None:
        require_devices(trials)
    if processes is not None:
        trials = [replace(trial, measure=replace(trial.measure, processes=processes)) for trial in trials]
    return trials


def _begin(
    selected: tuple[list[Case], list[Trial]],
    pinned: list[Case],
    store: Store,
    expectations: Path | None,
    shard: Shard | None,
) -> RunPlan:
    """Begin a run of the selected trials, or of a shard of them, and of the anchors of the cases `pinned`."""
    from rnnbench.cases import check_case_names
    from rnnbench.plan import anchor_trials, begin_run, expected_failures, shard_of

    cases = [*selected[0], *pinned]
    check_case_names(cases)
    trials = [*selected[1], *(trial for case in pinned for trial in case.trials(()))]
    part = None if shard is None else shard_of(trials, shard, anchor_trials(trials))
    if part is not None:
        tell(part.sentence)
    return begin_run(trials, store, expected_failures(cases, trials, expectations), shard=part)


def _carry_out(
    plan: RunPlan, reports: Path, place: Place | None, measure: Callable[[RunPlan, ProgressBar], list[UnfinishedTrials]]
) -> int:
    from rnnbench.cli.exit_status import FAILED, OK, exit_status
    from rnnbench.pipeline import MAKING_ANCHORS, ProgressBar
    from rnnbench.plan import end_run
    from rnnbench.reports import print_summary, write_report
    from rnnbench.results import read_run

    if plan.is_empty:
        end_run(plan.folder, {})
        tell(f"records  {plan.folder}")
        return OK
    terminal = console()
    how_to_go_on = f"rnnbench run --resume {quote(str(plan.folder))}{on_again(place)}"
    run_leaves(plan.folder, f". To continue: {how_to_go_on}")
    for change in plan.changes:
        tell(f"warning: {change}", is_error=True)
    if any(trial.pinned for trial in plan.trials):
        tell(MAKING_ANCHORS)
    with ProgressBar(terminal, len(plan.trials)) as progress:
        left = measure(plan, progress)
    finished = read_run(plan.folder)
    print_summary(finished, terminal)
    tell_failed_checks(finished.records)
    report = write_report([finished], reports / finished.name)
    tell(f"\nrecords  {plan.folder}\nreport   {report}")
    tell(_time(finished))
    if left:
        tell_left(left, how_to_go_on)
    return exit_status(finished.records) or (FAILED if left else 0)


def _measure_here(
    plan: RunPlan, progress: ProgressBar, *, keep_artifacts: bool, environments: Path, cache: CacheFolder | None
) -> list[UnfinishedTrials]:
    from rnnbench.pipeline import examine_with_anchors, run_trials

    examined = examine_with_anchors(plan.trials, environments)
    run_trials(plan, progress, keep_artifacts=keep_artifacts, examined=examined, cache=cache)
    return []


def _measure_on(plan: RunPlan, progress: ProgressBar, *, place: Place, rebuild: bool) -> list[UnfinishedTrials]:
    from rnnbench.fleet import run_on_cluster

    return run_on_cluster(plan, place, progress, progress.tell, rebuild=rebuild)


def _time(finished: Run) -> str:
    from rnnbench.fleet import describe_nodes
    from rnnbench.measure import describe_seconds

    info = finished.info  # If the run has not ended, nodes of a cluster have left trials.
    return describe_nodes(info) if info.nodes or not info.finished else describe_seconds(info.seconds)
