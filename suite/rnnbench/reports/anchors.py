"""The table of the anchors of a run: the trials whose versions are pinned."""

from __future__ import annotations

from rnnbench.reports import units
from rnnbench.reports.reliability import half_width
from rnnbench.reports.tables import Table, program, strategy
from rnnbench.results import View


def anchors_table(view: View) -> Table:
    """A row for each anchor."""
    rows = []
    for entry in view.anchors:
        bound, record = entry.bound, entry.record
        median = units.seconds(bound.median) if bound else units.MISSING
        scatter = units.percent(half_width(bound)) if bound else units.MISSING
        size = str(record.params.model.get("hidden", units.MISSING))
        rows.append((program(entry), strategy(entry), record.params.pinned, record.outcome, size, median, scatter))
    return Table(
        "Anchors",
        ("program", "strategy", "versions", "outcome", "hidden", "bound/call", "95 %"),
        tuple(rows),
        text=4,
        note="Anchors have pinned versions and environments of their own. What they all do from run to run is the "
        "machine's doing. They are in no ranking. 95 %: half the 95 % interval of the median between processes.",
    )
