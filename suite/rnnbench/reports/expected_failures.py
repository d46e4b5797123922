"""Expected failures in reports: those that happened (xfail), and those that did not (XPASS)."""

from __future__ import annotations

from rnnbench.reports.lowered import strategies
from rnnbench.reports.tables import Table
from rnnbench.results import Entry, Record, View

XFAIL, XPASS = "failed, as expected", "passed unexpectedly"


def outcome_of(record: Record) -> str:
    """A trial's outcome in words; an expected failure says so."""
    return f"{record.outcome}, as expected" if record.fails_as_expected else record.outcome


def expected_failures_table(view: View) -> Table:
    """The expected failures that trials were tested for, those that passed first."""
    groups: dict[tuple[str, str, str, str], list[tuple[Entry, str]]] = {}
    for entry in view.entries:
        for failure in entry.record.expected_failures:
            verdict = XPASS if failure.verdict == "passed" else XFAIL
            key = (verdict, entry.target, failure.reason, failure.upstream)
            groups.setdefault(key, []).append((entry, failure.what))
    rows = []
    for (verdict, target, reason, upstream), failures in sorted(
        groups.items(), key=lambda item: (item[0][0] == XFAIL, item[0])
    ):
        what = ", ".join(sorted({what for _, what in failures}))
        trials = {entry.record.trial for entry, _ in failures}
        rows.append((verdict, target, strategies([e for e, _ in failures]), what, str(len(trials)), reason, upstream))
    return Table(
        "Expected failures",
        ("verdict", "program", "strategies", "what", "trials", "reason", "upstream"),
        tuple(rows),
        text=7,
        note="The list of expected failures stands beside the cases. One that passes makes the command exit with 1: it "
        "seems to be fixed upstream, and the list must be corrected.",
    )
