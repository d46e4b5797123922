"""Runs whose folders are not here, from their rows in the history; and the newest release of each backfill."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from rnnbench.disk import any_damage_is_told
from rnnbench.history import History, ReleaseSeries, RunEntry
from rnnbench.results import (
    Record,
    Run,
    RunInfo,
    Store,
    StoreError,
    fingerprint,
    read_info,
    read_run,
    shard_folders,
    sql_literal,
    words_of,
)
from rnnbench.site.stored_records import Row, record_of

MACHINE = "machine_"
"""Prefix of the columns that describe the machine."""


@dataclass(frozen=True)
class StoredRun(Run):
    """A run made of rows: what `stored_records` says is absent from its records."""

    fingerprint: str = ""
    """Fingerprint of the machine. The whole description, of which it is computed, is not there."""
    stored: Mapping[str, Row] = field(default_factory=dict)
    """The row of each trial."""


def fingerprint_of(run: Run) -> str:
    """Fingerprint of the machine of a run, stored or not."""
    return run.fingerprint if isinstance(run, StoredRun) else fingerprint(run.info.machine)


def newest_runs(history: History, results: Path) -> list[Run]:
    """The newest night of each machine and its cases: from its folder in `results`, or else from its rows.

    Each shard is a night. A shard that was merged is shown with the merged run.
    """
    newest = list({(entry.machine, entry.cases, entry.shard): entry for entry in history.nights}.values())
    folders = _folders(results)
    read = [read_run(folder) for folder in dict.fromkeys(folders[e.run] for e in newest if e.run in folders)]
    return [*read, *stored_runs(history, [entry for entry in newest if entry.run not in folders])]


def _folders(results: Path) -> dict[str, Path]:
    """By a run's name, the folder that has its records: its own, or that of the merged run that it is in."""
    folders = {path.name: path for path in results.glob("*") if os.path.isfile(path / "run.json")}
    for path in Store(results).runs():
        try:
            shards = shard_folders(path)
            folders |= {read_info(shard)[0].run: path for shard in shards if shard != path}
        except StoreError:  # A folder that is damaged and not asked for is not shown.
            continue
    return folders


def newest_releases(history: History, series: Iterable[ReleaseSeries]) -> list[RunEntry]:
    """For each machine and package of a backfill, the run of the newest release that was measured."""
    newest = {
        (each.machine, each.package): [point.version for point in each.points if point.ratios][-1]
        for each in series
        if any(point.ratios for point in each.points)
    }
    runs = {
        (entry.machine, entry.release.package): entry
        for entry in history.runs
        if entry.release and newest.get((entry.machine, entry.release.package)) == entry.release.version
    }
    return list(runs.values())


def stored_runs(history: History, entries: Sequence[RunEntry]) -> list[StoredRun]:
    """The runs of these entries, from their rows."""
    rows = rows_of_runs(history, [entry.run_id for entry in entries])
    return [_stored(history, entry, rows.get(entry.run_id, [])) for entry in entries]


def rows_of_runs(history: History, identities: Sequence[str]) -> dict[str, list[Row]]:
    """Every row of the runs with these ids, by run. Empty columns are left out."""
    if not identities:
        return {}
    listed = ", ".join(map(sql_literal, identities))
    table = history.sql(f"SELECT * FROM rows WHERE run_id IN ({listed}) ORDER BY run_id, trial")
    rows = (
        {name: _plain(v) for name, v in zip(table.columns, row, strict=True) if v is not None} for row in table.rows
    )
    return {identity: list(group) for identity, group in groupby(rows, key=lambda row: str(row["run_id"]))}


def _plain(value: Any) -> Any:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else value


def _stored(history: History, entry: RunEntry, rows: Sequence[Row]) -> StoredRun:
    damaged: list[str] = []
    records = tuple(_sound_records(entry, rows, damaged))
    info = RunInfo(
        run=entry.run,
        started=entry.started,
        finished=entry.finished,
        rnnbench=entry.rnnbench,
        command=words_of(entry.command),
        cases=entry.cases,
        seed=0,  # not stored; no page shows that of a stored run
        machine={
            name.removeprefix(MACHINE): value
            for name, value in (rows[0] if rows else {}).items()
            if name.startswith(MACHINE)
        },
        versions=entry.versions,
    )
    stored = {str(row["trial"]): row for row in rows}
    # The folder does not exist: nothing of another run is read in its place.
    folder = history.root / "rows" / entry.run_id
    return StoredRun(folder, info, records, tuple(damaged), fingerprint=entry.machine, stored=stored)


def _sound_records(entry: RunEntry, rows: Sequence[Row], damaged: list[str]) -> Iterator[Record]:
    for row in rows:
        try:
            with any_damage_is_told():
                record = record_of(row)
        except ValueError as error:
            reason = str(error).splitlines()[0]
            damaged.append(f"{entry.run}: a row of the history is no record and was left out: {reason}")
        else:
            yield record
