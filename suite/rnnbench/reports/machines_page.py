"""The page of merged shards of several machines: it links the report of each, and compares the machines by anchors."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from rnnbench.reports import units
from rnnbench.reports.escape import Markdown, code, paragraph
from rnnbench.reports.tables import Table, markdown_table
from rnnbench.results import Run, fingerprint

Anchor = tuple[str, tuple[tuple[str, str], ...]]
"""An anchor, and the versions that it was measured with."""


def machines_page(of_machines: Sequence[tuple[Run, Path]], warnings: Sequence[str]) -> str:
    """Markdown. `of_machines` has the part of the run that each machine made, with its report's path from this page."""
    first = anchor_latencies(of_machines[0][0])
    rows = tuple(_row(run, page, first) for run, page in of_machines)
    columns = ("machine", "processor", "shards", "report", "trials", "anchors", "their latency")
    table = Table("Machines", columns, rows, text=4)
    cases = sorted({case for run, _ in of_machines for case in run.info.cases})
    parts: list[str] = [Markdown("# {}").format(", ".join(cases) or "No trials")]
    parts += [Markdown("> **Warning:** {}").format(warning) for warning in warnings]
    parts.append(
        f"Shards of {len(of_machines)} machines were merged. Each machine has a report of its own: latencies of two "
        "machines are in no ranking together."
    )
    parts.append(markdown_table(table))
    parts.append(
        Markdown(
            "Each shard ran the anchors: the trials of the baseline, and those of pinned versions. *Their latency* is "
            "the geometric mean of the ratios of their bound latencies to those on the first machine: 2 is twice as "
            "slow. It compares the machines, and no program. An anchor counts where its versions are the same. A dash "
            "(—): no anchor was measured on both."
        )
    )
    return "\n\n".join(map(paragraph, parts)) + "\n"


def anchor_latencies(run: Run) -> dict[Anchor, float]:
    """By anchor and its versions, the median of its bound latencies over the shards of one machine, in seconds."""
    latencies: dict[Anchor, list[float]] = {}
    for record in (record for part in run.parts for record in part.records if record.is_anchor):
        if (latency := record.latency("bound")) is not None and record.outcome == "ok" and not record.not_believed:
            versions = tuple(sorted(record.version.items()))
            latencies.setdefault((record.trial, versions), []).append(latency.median)
    return {anchor: statistics.median(seconds) for anchor, seconds in latencies.items()}


def _row(run: Run, page: Path, first: Mapping[Anchor, float]) -> tuple[str, ...]:
    machine = run.parts[0].info.machine
    mine = anchor_latencies(run)
    ratios = [mine[anchor] / first[anchor] for anchor in mine.keys() & first.keys()]
    mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None
    return (
        code(fingerprint(machine)),
        str(machine.get("cpu", units.MISSING)),
        ", ".join(str(part.info.shard) for part in run.parts),
        Markdown("[report]({})").format(Markdown(page.as_posix())),
        str(len(run.records)),
        str(len(ratios)),
        units.MISSING if mean is None else units.ratio(mean),
    )
