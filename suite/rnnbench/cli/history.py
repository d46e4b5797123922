"""`rnnbench history`: the rows of many runs, and what changed."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.backfill import backfill
from rnnbench.cli.confirm import confirm
from rnnbench.cli.one_value import OneValueGroup
from rnnbench.cli.option_types import WholeNumber
from rnnbench.cli.options import ALERTS, HISTORY, RESULTS
from rnnbench.cli.output import tell, tell_warnings

if TYPE_CHECKING:
    from rnnbench.history import Alerts, History, News

LAST = click.option(
    "--last",
    type=WholeNumber(min=1),
    default=90,
    show_default=True,
    metavar="N",
    help="Look for changes in the last N runs of each machine.",
)


@click.group(cls=OneValueGroup, short_help="Keep the rows of many runs, and see what changed.")
def history() -> None:
    """Keep the rows of many runs, query them by SQL, and see what changed since when.

    docs/history.md says what is kept, and how a change becomes an alert.
    """


@history.command(short_help="Add runs.")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option(
    "--compress",
    is_flag=True,
    help="Then compress the records of each run that has ended. Every command reads them as before.",
)
@HISTORY
@RESULTS
def add(runs: tuple[str, ...], compress: bool, history_folder: Path, results: Path) -> None:
    """Add each RUN: a folder, a name, or 'latest'. A run is never added twice; one that was resumed is updated.

    Each shard of a merged run is added as a run of its own. Of a comparison by 'rnnbench ab', the run of side b adds
    its verdicts; neither side becomes a night, nor does a run of 'rnnbench check'.

    Example: rnnbench history add latest
    """
    from rnnbench.history import History, is_check, side_of
    from rnnbench.plan import compress_run
    from rnnbench.results import Store, shard_folders
    from rnnbench.spelling import count

    store = Store(results)
    tell_warnings(warning for run in runs for warning in store.left_out(run))
    named = [store.resolve(run) for run in runs]
    for folder in (part for run in named for part in ((run,) if is_check(run) else shard_folders(run))):
        if is_check(folder):
            checks = History(history_folder).add_checks(folder)
            of = ", ".join(f"{check.backend}: {count(len(check.trials), 'trial')}" for check in checks)
            tell(f"{folder}: added as a check ({of})")
            continue
        if side := side_of(folder):
            _add_side(side, folder, history_folder)
            continue
        addition = History(history_folder).add(folder)
        tell_warnings(addition.warnings)
        tell(f"{folder}: {addition.what} ({count(addition.entry.trials, 'trial')})")
        if compress and addition.entry.finished is None:
            tell(f"warning: {folder}: the run has not ended, and is not compressed", is_error=True)
        elif compress and (sizes := compress_run(folder)):
            tell(f"{folder}: records compressed from {sizes[0]:,} to {sizes[1]:,} bytes")


def _add_side(side: str, folder: Path, history_folder: Path) -> None:
    """Add the verdicts of a comparison. Side b has them if it came to its end."""
    from rnnbench.history import History, side_b_of
    from rnnbench.spelling import count

    if side == "a":
        side_b = side_b_of(folder)
        where = f"its verdicts are in {side_b}" if side_b else "no side b beside it has verdicts; compare again"
        tell(f"warning: {folder}: is side a of a comparison, and no night; {where}", is_error=True)
        return
    entry = History(history_folder).add_comparison(folder)
    tell(f"{folder}: added as a comparison ({count(len(entry.verdicts), 'verdict')})")


LISTED = """
    SELECT run_id, run, started, machine, trials, if(release IS NULL, 'run', 'release') AS kind FROM runs
    UNION ALL SELECT run_id, run, started, machine, count(DISTINCT trial), 'comparison' FROM verdicts GROUP BY ALL
    UNION ALL SELECT run_id, run, started, machine, checked, 'check of ' || backend FROM checks
    ORDER BY started, kind
"""


@history.command(name="list", short_help="List the runs, comparisons and checks.")
@HISTORY
def list_runs(history_folder: Path) -> None:
    """List the runs, comparisons and checks of the history, oldest first."""
    from rnnbench.history import plain_table

    for line in plain_table(_open(history_folder).sql(LISTED)):
        click.echo(line)


@history.command(short_help="Answer a SELECT.")
@click.argument("statement", metavar="SELECT")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with every text and figure whole.")
@HISTORY
def sql(statement: str, as_csv: bool, history_folder: Path) -> None:
    """Answer one SELECT over the tables 'rows' (one row for each trial of each run), 'runs', 'verdicts' and 'checks'.

    The statement can read no other file, and write none.

    Example: rnnbench history sql "SELECT trial, bound_median_s FROM rows WHERE chunk = 1"
    """
    from rnnbench.history import csv_lines, plain_table

    for line in (csv_lines if as_csv else plain_table)(_open(history_folder).sql(statement)):
        click.echo(line)


@history.command(short_help="Say what changed.")
@click.option("--screen", is_flag=True, help="Show candidates too, which a measurement has to confirm.")
@click.option("--last", type=WholeNumber(min=1), metavar="N", help="Look at the last N runs of each machine only.")
@HISTORY
def changes(screen: bool, last: int | None, history_folder: Path) -> None:
    """Say which levels changed, when, by how much and with which versions: backends first, then trials, then events."""
    from rnnbench.history import (
        PUBLISH,
        SCREEN,
        change_lines,
        event_lines,
        find_changes,
        find_events,
        machines_without_anchors,
        read_settings,
        release_change_lines,
        release_series,
        without_anchors,
    )

    opened = _open(history_folder, series=True)
    level_changes, events = find_changes(opened, SCREEN if screen else PUBLISH, last), find_events(opened, last)
    for machine in machines_without_anchors(opened, read_settings(history_folder).anchors):
        tell(f"warning: {without_anchors(machine)}", is_error=True)
    of_releases = release_change_lines(release_series(opened))
    for line in (*change_lines(level_changes), *event_lines(events), *of_releases):
        click.echo(line)


@history.command(name="false-alarms", short_help="Say how often machines raise false alarms.")
@HISTORY
def false_alarms(history_folder: Path) -> None:
    """Say how often A/A comparisons were wrong, by machine: one environment, compared with itself."""
    from rnnbench.history import false_alarm_lines
    from rnnbench.history import false_alarms as of_machines

    for line in false_alarm_lines(of_machines(_open(history_folder))):
        click.echo(line)


@history.command(short_help="Update the file of the alerts.")
@HISTORY
@ALERTS
@LAST
def alerts(history_folder: Path, alerts_file: Path, last: int) -> None:
    """Update the file of the alerts from the history. What people wrote in it stays.

    A change, bad news or missing nights become new alerts; a series that returns mends its alert; an acceptance that
    ran out is new again. `rnnbench triage` shows the alerts to a person.
    """
    from rnnbench.spelling import count

    updated, _ = look(history_folder, alerts_file, last)
    before = {alert.id: alert for alert in updated.as_read}
    updated.write()
    for alert in updated.all:
        if alert != before.get(alert.id):
            tell(f"{alert.id}: {alert.state}")
    dropped = len(before.keys() - {alert.id for alert in updated.all})
    still_open = sum(alert.is_open for alert in updated.all)
    tell(f"{alerts_file}: {count(len(updated.all), 'alert')}, {still_open} open, {count(dropped, 'candidate')} dropped")


def look(history_folder: Path, alerts_file: Path, last: int) -> tuple[Alerts, News]:
    """The alerts of a file, updated from the history, and the news of the update. Nothing is written."""
    from rnnbench.history import Alerts, News, update

    alerts = Alerts.read(alerts_file)
    news = News.of(_open(history_folder, series=True), datetime.now(UTC).replace(tzinfo=None), last)
    return update(alerts, news), news


history.add_command(backfill)
history.add_command(confirm)


def _open(history_folder: Path, *, series: bool = False) -> History:
    """Open the history in a folder, and warn of damaged files.

    Raises StoreError if it is empty; with `series` also if it has comparisons and checks alone, which are in none.
    """
    from rnnbench.history import History
    from rnnbench.results import StoreError
    from rnnbench.spelling import near_path

    if os.path.lexists(history_folder) and not history_folder.is_dir():
        raise StoreError(f"{history_folder} is not a folder; name another one with --history")
    if not history_folder.is_dir() and (near := near_path(history_folder)):
        raise StoreError(f"the folder {history_folder} does not exist; {near}")
    opened = History(history_folder)
    tell_warnings(opened.warnings)
    others = opened.comparisons or opened.checks
    if not opened.runs and (series or not others):
        only = ", only comparisons or checks, which are in no series" if others else ""
        raise StoreError(f"the history in {history_folder} has no run{only}; add one with: rnnbench history add RUN")
    return opened
