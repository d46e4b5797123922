"""Known failures in reports: what failed as expected (xfail), and what passed although it was known to fail (XPASS)."""

from __future__ import annotations

from rnnbench.reports.entries import Entry, View
from rnnbench.reports.tables import Table
from rnnbench.results.record import Record

XFAIL, XPASS = "failed, as expected", "passed: fixed upstream?"


def outcome_of(record: Record) -> str:
    """A trial's outcome in words; a failure that was known says so."""
    return f"{record.outcome}, as expected" if record.fails_as_expected else record.outcome


def expected_table(view: View) -> Table:
    """What was known to fail and was put to the test, the alerts first."""
    groups: dict[tuple[str, str, str, str], list[Entry]] = {}
    for entry in view.entries:
        for figure in entry.record.expected_failures:
            verdict = XPASS if figure.verdict == "passed" else XFAIL
            key = (verdict, entry.target, figure.reason, figure.upstream)
            groups.setdefault(key, []).append(entry)
    rows = []
    for (verdict, target, reason, upstream), entries in sorted(groups.items(), key=_alerts_first):
        what = sorted({f.what for entry in entries for f in entry.record.expected_failures if f.reason == reason})
        trials = {entry.record.trial for entry in entries}
        strategies = sorted({entry.strategy for entry in entries})
        rows.append((verdict, target, ", ".join(strategies), ", ".join(what), str(len(trials)), reason, upstream))
    return Table(
        "Known failures",
        ("verdict", "program", "strategies", "what", "trials", "reason", "upstream"),
        tuple(rows),
        text=7,
        note="From the expectations beside the cases. What passed although it was known to fail makes the command exit "
        "with 1, so that the list stays true.",
    )


def _alerts_first(group: tuple[tuple[str, str, str, str], list[Entry]]) -> tuple[bool, tuple[str, str, str, str]]:
    return group[0][0] == XFAIL, group[0]
