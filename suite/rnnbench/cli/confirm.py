"""`rnnbench history confirm`: measures whether a change of the history is there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rnnbench.cli.ending import leaves
from rnnbench.cli.option_types import GivenPath
from rnnbench.cli.options import ALERTS, BUDGET, ENVIRONMENT_FOLDER, NEW_RESULTS, console
from rnnbench.cli.output import tell
from rnnbench.cli.selection import Selection

if TYPE_CHECKING:
    from rnnbench.cases import Case, Trial
    from rnnbench.history import Alert, Alerts
    from rnnbench.pipeline import Confirmation


@click.command(short_help="Measure whether the changes in the file of the alerts are there.")
@click.argument("cases", nargs=-1, metavar="CASE…", type=GivenPath())
@click.option(
    "--alert",
    "identities",
    multiple=True,
    metavar="ID",
    help="Compare only this alert. May be repeated.  [default: each new alert that can be compared]",
)
@BUDGET
@ALERTS
@NEW_RESULTS
@ENVIRONMENT_FOLDER
def confirm(
    cases: tuple[Path, ...],
    identities: tuple[str, ...],
    budget: float,
    alerts_file: Path,
    results: Path,
    environments: Path,
) -> None:
    """Compare the versions before and after each new change of a latency, as `rnnbench ab` does, on trials of CASE….

    An alert becomes `confirmed` or `refuted`, and gets the ratio, its interval and the day. It stays as it is where the
    comparison is undecided or cannot be made. At most 5 trials of an alert are compared; more than half must agree.

    Example: rnnbench history confirm cases/lstm_streaming.yaml

    \b
    Exit status:
      0  nothing was confirmed
      1  an alert was confirmed
      2  a named alert cannot be compared
    """
    from rnnbench.history import Alerts
    from rnnbench.pipeline import ProgressBar, SideError
    from rnnbench.pipeline import confirm as confirm_alert
    from rnnbench.results import Store
    from rnnbench.spelling import count

    loaded = Selection(cases, ()).load_cases()
    alerts = Alerts.read(alerts_file)
    chosen = _chosen(alerts, identities)
    tell(f"{count(len(chosen), 'alert')} to compare.")
    if not chosen:
        return
    leaves(lambda: f"Finished comparisons are in {results}; what they showed is in {alerts_file}.")
    by_backend = {
        backend: _trials(loaded, backend) for backend in dict.fromkeys(alert.found.backend for alert in chosen)
    }
    answers, problems = [], 0
    with ProgressBar(console(), len(chosen)) as progress:
        for alert in chosen:
            try:
                trials = by_backend[alert.found.backend]
                confirmation = confirm_alert(alert.found, trials, budget, Store(results), environments, progress)
            except SideError as error:
                problems += 1
                tell(f"{alert.id}: not compared: {error}", is_error=bool(identities))
                continue
            answers.append(confirmation.answer)
            _note(alerts_file, alert, confirmation)
    if "confirmed" in answers:
        sys.exit(1)
    if identities and problems:
        sys.exit(2)


def _chosen(alerts: Alerts, identities: Sequence[str]) -> list[Alert]:
    """The named alerts; if none is named, each new alert that can be compared."""
    from rnnbench.pipeline import not_comparable

    if identities:
        return [alerts.find(identity) for identity in dict.fromkeys(identities)]
    return [alert for alert in alerts.all if alert.state == "new" and not not_comparable(alert.found)]


def _trials(cases: list[Case], backend: str) -> list[Trial]:
    """The trials of the cases on every route of a backend."""
    selection = Selection((), (f"{backend}:*",))
    return selection.select(cases, selection.targets(cases, installed=False))


def _note(file: Path, alert: Alert, done: Confirmation) -> None:
    """Write the result of a comparison at once, since the next one may take minutes.

    It goes into the file as it is now: a person, or a night, may have changed other alerts since the comparison began.
    """
    from rnnbench.history import Alerts

    measured = done.measured(datetime.now(UTC).date().isoformat())
    verdicts = ", ".join(judged.verdict for judged in done.verdicts.values()) or "every trial failed on a side"
    if measured is None or done.answer == "undecided":
        tell(f"{alert.id}: undecided ({verdicts}); a larger --budget may decide; runs: {done.runs[0]}, {done.runs[1]}")
        return
    low, high = measured.interval
    tell(f"{alert.id}: {done.answer}: ratio {measured.ratio:.3f} ({low:.3f} to {high:.3f}); {verdicts}")
    alerts = Alerts.read(file)
    if not any(now.id == alert.id and now.state != "mended" for now in alerts.all):
        tell(f"{alert.id}: was mended or removed meanwhile, so this is not written into {file}", is_error=True)
        return
    transition = alerts.confirm if done.answer == "confirmed" else alerts.refute
    transition(alert.id, measured).write()
