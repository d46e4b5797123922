"""What changed in the history, as rows: levels, facts of trials, and the checks of new versions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from rnnbench.history import MEASURES, PUBLISH, Change, CheckChange, Event, FailedTrial, check_changes, told_by_backends
from rnnbench.reports import change_with_interval, drift_until
from rnnbench.results import fact_direction
from rnnbench.site.content import Content
from rnnbench.spelling import count

WEEK = timedelta(days=7)
NAMED = 5
"""Trials that are named of those that moved together."""
INTERVAL = "95 % interval "
"""Stands before the interval of a change of level."""
Direction = Literal["worse", "better", "other", "environment"]
SIGN = {"worse": "▲", "better": "▼", "other": "●", "environment": "○"}
"""Sign of each direction. Pages have a legend beside it."""
JUDGED_FACTS = ("outcome", "failed_checks", "believed")
"""Facts that are shown as worse or better. All others have the direction `other`."""


@dataclass(frozen=True)
class ChangeRow:
    """One thing that changed."""

    night: str
    run: str
    direction: Direction
    subject: str
    page: str
    """The trial's page; empty for a backend or a machine, or where no record of it is shown."""
    backend: str
    sentence: str
    """Without its subject."""
    detail: str
    machine: str
    machine_name: str
    """For people; empty where the site tells of one machine alone."""
    what: str
    """The measure or the fact that changed; empty for the check of a version."""
    told: str
    """When it could be told: a new level is published after so many nights."""
    is_fact: bool
    """Whether it is about an outcome, a check or belief, and not about a level."""
    is_mended: bool = False
    """Whether it was wrong and is right again."""
    together: tuple[tuple[str, str], ...] = ()
    """Other trials that moved with it, with their pages."""
    more: int = 0
    """How many of these are not named."""

    @property
    def sign(self) -> str:
        return SIGN[self.direction]


def change_rows(content: Content) -> list[ChangeRow]:
    """All changes, the newest first.

    What a backend's change says of its trials is not said again for each of them. What the machine did to single trials
    is not said at all.
    """
    told = told_by_backends([c for c in content.changes if c.cause == "program"])
    changes = [c for c in content.changes if c.level != "trial" or (c.cause == "program" and c not in told)]
    rows = [
        *(_of_change(c, content) for c in changes),
        *(_of_event(e, content) for e in content.events),
        *(row for change in check_changes(content.checks) for row in _of_check(change, content)),
    ]
    return sorted(rows, key=lambda row: (row.night, row.direction != "environment", row.subject), reverse=True)


def last_week(content: Content, rows: Sequence[ChangeRow]) -> list[ChangeRow]:
    """What was told in the seven days up to the newest night and the machine did not cause, the worse first."""
    since = week_before(content)
    recent = [row for row in rows if since is not None and row.told >= since and row.direction != "environment"]
    return sorted(recent, key=lambda row: list(SIGN).index(row.direction))


def week_before(content: Content) -> str | None:
    """Seven days before the newest night; None where there is no night."""
    if not content.nights:
        return None
    return (datetime.fromisoformat(content.nights[-1].entry.started) - WEEK).isoformat()


def sentence_of(change: Change) -> str:
    """`bound latency +3.1 % (95 % interval +2.5 % to +3.8 %)`."""
    size = change_with_interval(change.ratio, change.interval, INTERVAL)
    return f"{MEASURES[change.measure].title} {size}{drift_until(change.until)}"


def versions_change(versions: tuple[str, str]) -> str:
    """The versions before and after; empty where they did not change."""
    before, after = versions
    return "" if before == after else f"{before or 'none'} → {after or 'none'}"


def _of_change(change: Change, content: Content) -> ChangeRow:
    direction: Direction = "environment" if change.cause == "environment" else "worse" if change.ratio > 1 else "better"
    reason = change.reason and f"environment: {change.reason}"
    named = content.named_machine(change.machine)
    of_machine = change.level == "machine"
    return ChangeRow(
        night=change.night,
        run=change.run,
        direction=direction,
        subject=f"the machine {named}".rstrip() if of_machine else change.subject,
        page=content.pages.get((change.machine, change.subject), ""),
        backend=change.backend,
        sentence=sentence_of(change),
        detail="; ".join(filter(None, (versions_change(change.versions), reason))),
        machine=change.machine,
        machine_name="" if of_machine else named,
        what=change.measure,
        told=_published(change, content),
        is_fact=False,
        together=tuple((trial, content.pages.get((change.machine, trial), "")) for trial in change.together[:NAMED]),
        more=max(0, len(change.together) - NAMED),
    )


def _published(change: Change, content: Content) -> str:
    """The start of the first night on which the new level had enough nights to be told."""
    starts = content.starts_of.get(change.machine, [])
    nights = starts[bisect_left(starts, change.night) :]
    return nights[min(PUBLISH.nights, len(nights)) - 1] if nights else change.night


def _of_event(event: Event, content: Content) -> ChangeRow:
    direction = _direction(event)
    still_failing = event.fact == "failed_checks" and bool(event.after)
    return ChangeRow(
        night=event.night,
        run=event.run,
        direction=direction,
        subject=event.subject,
        page=content.pages.get((event.machine, event.subject), ""),
        backend=event.backend,
        sentence=event.sentence,
        detail="" if event.fact == "versions" else versions_change(event.versions),
        machine=event.machine,
        machine_name=content.named_machine(event.machine),
        what=event.fact,
        told=event.night,
        is_fact=event.fact in JUDGED_FACTS,
        is_mended=direction == "better" and not still_failing,
    )


def _direction(event: Event) -> Direction:
    direction = fact_direction(event.fact, event.before, event.after)
    return "other" if event.fact not in JUDGED_FACTS or direction == "neutral" else direction


def _of_check(change: CheckChange, content: Content) -> Iterator[ChangeRow]:
    """What the check of a new version found, and what of the check before is mended."""
    of_checked = f"of {count(len(change.check.trials), 'trial')} checked"
    if change.worse:
        sentence = f"the conformance check finds {len(change.worse)} {of_checked} failing: {change.worse[0].reason}"
        yield _check_row(change, content, "worse", sentence, change.worse)
    if change.mended:
        sentence = f"{len(change.mended)} {of_checked} conform again"
        yield _check_row(change, content, "better", sentence, change.mended)


def _check_row(
    change: CheckChange, content: Content, direction: Direction, sentence: str, trials: Sequence[FailedTrial]
) -> ChangeRow:
    check = change.check
    return ChangeRow(
        night=check.started,
        run=check.run,
        direction=direction,
        subject=check.backend,
        page="",
        backend=check.backend,
        sentence=sentence,
        detail=versions_change((change.before.versions, check.versions)) if change.before else check.versions,
        machine=check.machine,
        machine_name=content.named_machine(check.machine),
        what="",
        told=check.started,
        is_fact=True,
        is_mended=direction == "better",
        together=tuple((trial.trial, "") for trial in trials[:NAMED]),
        more=max(0, len(trials) - NAMED),
    )
