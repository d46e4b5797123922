"""The overview: open alerts, what moved in the last week, what conforms, what releases changed, and what is fastest."""

from __future__ import annotations

from collections.abc import Sequence

from rnnbench.site.alerts import beside_alerts, open_alerts
from rnnbench.site.changes import ChangeRow, last_week
from rnnbench.site.conformance import conformance_of
from rnnbench.site.content import Content
from rnnbench.site.fastest import STEPS, heat_maps
from rnnbench.site.page import Folder
from rnnbench.site.releases import backfills_of

INDEX = "index.html"


def write_overview(content: Content, folder: Folder, changes: Sequence[ChangeRow]) -> None:
    """`index.html`. `changes` are the newest first."""
    folder.page(
        INDEX,
        "overview.html",
        content=content,
        moved=beside_alerts(content, last_week(content, changes)),
        changes=changes,
        open_alerts=open_alerts(content),
        conformance=conformance_of(content),
        backfills=backfills_of(content),
        maps=heat_maps(content),
        steps=STEPS,
    )
