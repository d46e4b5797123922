"""The conformance matrix: backend × strategy × check."""

from __future__ import annotations

from collections.abc import Sequence

from rnnbench.reports import units
from rnnbench.reports.tables import Table
from rnnbench.results import NO_ANSWER, Entry, Record, View, worst_rounding


def conformance_table(view: View) -> Table:
    """Backend × strategy × check; a cell gives the worst of its trials, as a multiple of the expected rounding."""
    checks = list(dict.fromkeys(name for entry in view.entries for name in entry.record.conformance))
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in view.entries:
        if entry.record.conformance:
            groups.setdefault((entry.target, entry.strategy), []).append(entry)
    rows = [
        (
            *key,
            str(len(entries)),
            *(_check_cell(check, [e.record for e in entries]) for check in checks),
        )
        for key, entries in sorted(groups.items())
    ]
    return Table(
        "Conformance",
        ("program", "strategy", "trials", *checks),
        tuple(rows),
        text=2,
        note="✓ passed in every trial that reached the check. The number is the largest error, as a multiple of the "
        "rounding error expected at that step; checks that compare bits have none. until chaos: passed up to the step "
        "from which the reference itself diverges. ✗ failed in that many trials. xfail: all of these failures were "
        "expected. XPASS: an expected failure did not happen. n/a: the check has no meaning for the strategy. too "
        "short: the time did not suffice for the check to mean anything, in all trials or in that many. — not reached.",
    )


def _check_cell(check: str, records: Sequence[Record]) -> str:
    figures = [record.conformance.get(check) for record in records]
    ran = [figure for figure in figures if figure is not None and figure.verdict not in NO_ANSWER]
    too_short = sum(figure is not None and figure.verdict == "too-short" for figure in figures)
    if not ran:
        return "too short" if too_short else "n/a" if any(figures) else units.MISSING
    failed = [figure for figure in ran if figure.verdict == "fail"]
    worst = worst_rounding(failed or ran)
    chaotic = any(figure.verdict == "chaotic" for figure in ran)
    expected = sum(f.what == check and f.verdict == "failed" for record in records for f in record.expected_failures)
    mark = "xfail" if expected == len(failed) else "✗"
    text = f"{mark} {len(failed)} of {len(ran)}" if failed else "✓ until chaos" if chaotic else "✓"
    if any(f.what == check and f.verdict == "passed" for record in records for f in record.expected_failures):
        text += " XPASS"
    if worst is not None:
        text += f" {units.multiple(worst)}×"
    return f"{text}, {too_short} too short" if too_short else text
