"""Changes and events in words: plain lines, safe in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rnnbench.history.changes import Change, told_by_backends
from rnnbench.history.events import Event
from rnnbench.history.measures import MEASURES
from rnnbench.results import visible
from rnnbench.spelling import listed, percents

NAMED = 5
"""Trials that are named of those that moved together."""
LEGEND = (
    "A size is new over old level, with its 95 % interval; the trend of the machine's anchors (the baseline's trials) "
    "is divided out of times.",
    "environment: the machine moved, or nothing of the program changed. No alert.",
)


def without_anchors(machine: str) -> str:
    """What it means that a machine has no anchors."""
    return (
        f"no anchor was measured on machine {machine}: a move of the machine looks like a change of every trial there; "
        f"let runs measure the baseline, or name pinned targets in settings.yaml"
    )


def change_lines(changes: Sequence[Change]) -> Iterator[str]:
    """Backends first, then trials that no change of their backend has, then what the environment did to others."""
    alerted = [change for change in changes if change.cause == "program"]
    environment = [change for change in changes if change.cause == "environment"]
    told = told_by_backends(alerted) | told_by_backends(environment)
    for title, some in (
        ("Backends", [c for c in alerted if c.level == "backend"]),
        ("Trials", [c for c in alerted if c.level == "trial" and c not in told]),
        ("Environment", [c for c in environment if c not in told]),
    ):
        if some:
            yield title
            for change in some:
                yield from _change(change)
    if changes:
        yield from LEGEND
    else:
        yield "No level changed."


def event_lines(events: Sequence[Event]) -> Iterator[str]:
    """One line for each event, oldest first."""
    if events:
        yield "Events"
    for event in events:
        yield visible(f"  {event.night[:10]}  {event.subject} {event.sentence}{_versions(event.versions, event.fact)}")


def _change(change: Change) -> Iterator[str]:
    title = MEASURES[change.measure].title
    subject = "the machine" if change.level == "machine" else change.subject
    low, high = (percents(bound - 1, "+") for bound in change.interval)
    drift = f", a drift that went on until {change.until[:10]}" if change.until else ""
    yield visible(
        f"  {change.night[:10]}  {subject}: {title} {percents(change.ratio - 1, '+')} ({low} to {high}){drift}, "
        f"from {change.run} on{_versions(change.versions)} [machine {change.machine}]"
    )
    if change.reason:
        yield visible(f"      environment: {change.reason}")
    if change.together:
        yield visible(f"      moved together: {listed(change.together, NAMED)}")


def _versions(versions: tuple[str, str], fact: str = "") -> str:
    before, after = versions
    return "" if fact == "versions" or before == after else f"; {before or 'none'} → {after or 'none'}"
