"""The table of shards that are merged: where each was measured, and what it has."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from rnnbench.reports import units
from rnnbench.reports.escape import show
from rnnbench.reports.tables import Table, print_table
from rnnbench.results import Run, WholePlan, fingerprint
from rnnbench.spelling import count


def print_shards(shards: Sequence[Run], plan: WholePlan, console: Console) -> None:
    """One line for each shard, and what the columns mean."""
    print_table(shards_table(shards, plan), console)
    show(
        console,
        "trials: those that belong to the shard, with a record. anchors: those of other shards, which every shard runs "
        "so that machines can be compared; each shard keeps its own.",
        style="dim",
    )
    if empty := [str(number) for number, own in enumerate(plan.shards, start=1) if not own]:
        show(console, f"Without trials, by the plan: {count(len(empty), 'shard')} ({', '.join(empty)}).")


def shards_table(shards: Sequence[Run], plan: WholePlan) -> Table:
    """Each shard: its machine, its run, and how many of its trials have a record."""
    rows = []
    for shard in shards:
        assert shard.info.shard is not None, "the shards of a plan say which they are"
        shard_trials = set(plan.own(shard.info.shard.number))
        recorded = shard.by_trial.keys()
        rows.append(
            (
                str(shard.info.shard),
                fingerprint(shard.info.machine),
                str(shard.info.machine.get("cpu", units.MISSING)),
                shard.info.run,
                f"{len(recorded & shard_trials)} of {len(shard_trials)}",
                str(len(recorded - shard_trials)),
            )
        )
    return Table("Shards", ("shard", "machine", "processor", "run", "trials", "anchors"), tuple(rows), text=4)
