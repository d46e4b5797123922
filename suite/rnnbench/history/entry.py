"""The entries of the history, and the entry of a run: what its rows have in common, and which run it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from rnnbench.history.release_file import ReleaseInfo
from rnnbench.results import FrozenModel, Run, StoreError, earlier_fingerprint, fingerprint

SCHEMA: Literal[1] = 1
"""Version of an entry's file."""
ID_DIGITS = 16
EARLIEST_YEAR, LATEST_YEAR = 1970, 9998
"""The first and the last year of a run: weeks are subtracted from its time, and days are added."""


def _stored_time(text: str) -> str:
    time = datetime.fromisoformat(text)
    if time.tzinfo is not None or not EARLIEST_YEAR <= time.year <= LATEST_YEAR:
        raise ValueError("the time of no run")
    return text


StoredTime = Annotated[str, AfterValidator(_stored_time)]
"""UTC without a zone, ISO 8601. A file with another one is damaged."""


class Entry(FrozenModel):
    """What every entry of the history has: which run it is of, and on which machine."""

    schema_version: Literal[1] = SCHEMA
    run_id: str
    """Hex digits of the run's name, start and seed. A folder that was renamed or copied has the same."""
    run: str
    """Its name when it was made."""
    started: StoredTime
    """UTC, ISO 8601."""
    machine: str
    """Fingerprint of the machine."""
    machine_cpu: str | None

    @property
    def name(self) -> str:
        """The name of its file, without an ending."""
        return self.run_id


class RunEntry(Entry):
    """One run of the history: a row of the table `runs`, and the file `runs/<run_id>.json`."""

    finished: StoredTime | None
    rnnbench: str
    machine_earlier: str | None = None
    """Its fingerprint by the earlier rule. An entry without this field has that one in `machine`."""
    cases: tuple[str, ...]
    command: str
    baseline: tuple[str, ...]
    """Targets that declare themselves the baseline."""
    versions: dict[str, dict[str, str]]
    """Versions of the packages by backend."""
    steal: float | None
    """Share of the processors' time that the machine's host gave to others."""
    trials: int
    shard: str | None = None
    """The shard, as 2/8; None for a run of a whole plan."""
    release: ReleaseInfo | None = None
    """The release that it measured, where it is a run of a backfill; None where it is a night's."""
    rows_sha256: str
    """Digest of the file with the rows. A file with another one is damaged."""

    @property
    def completeness(self) -> tuple[int, str]:
        """Orders two states of one run: the later one has more trials, or ended later."""
        return self.trials, self.finished or ""


ENTRY_TYPES: Mapping[str, str] = {
    "run_id": "VARCHAR",
    "run": "VARCHAR",
    "started": "TIMESTAMP",
    "machine": "VARCHAR",
    "machine_cpu": "VARCHAR",
}
"""Columns of every entry with DuckDB's types. Times are UTC."""
RUN_TYPES: Mapping[str, str] = {
    "run_id": "VARCHAR",
    "run": "VARCHAR",
    "started": "TIMESTAMP",
    "finished": "TIMESTAMP",
    "rnnbench": "VARCHAR",
    "machine": "VARCHAR",
    "machine_cpu": "VARCHAR",
    "cases": "VARCHAR[]",
    "command": "VARCHAR",
    "baseline": "VARCHAR[]",
    "versions": "JSON",
    "steal": "DOUBLE",
    "trials": "BIGINT",
    "shard": "VARCHAR",
    "package": "VARCHAR",
    "release": "VARCHAR",
    "reference": "VARCHAR",
    "released": "VARCHAR",
}
"""Columns of the table `runs` with DuckDB's types. Times are UTC. The last four are those of a backfill."""


def run_row(entry: RunEntry) -> dict[str, object]:
    """The row of an entry in the table `runs`."""
    of_run = entry.model_dump(include=set(RUN_TYPES) - {"release"})
    info = entry.release
    if info is None:
        return of_run
    return {
        **of_run,
        "package": info.package,
        "release": info.version,
        "reference": info.reference,
        "released": info.released or None,
    }


def cpu_of(machine: Mapping[str, Any]) -> str | None:
    """Model of the processor in a machine's description; None where it was not read."""
    cpu = machine.get("cpu")
    return None if cpu is None else str(cpu)


def run_id(run: Run) -> str:
    """The identity of a run, from its content."""
    content = json.dumps([run.info.run, run.info.started, run.info.seed])
    return hashlib.sha256(content.encode()).hexdigest()[:ID_DIGITS]


def fields_of(run: Run, machine: Mapping[str, Any], timespec: str = "milliseconds") -> dict[str, Any]:
    """The fields of `Entry`. Raises StoreError where the run's start is no time."""
    return {
        "run_id": run_id(run),
        "run": run.info.run,
        "started": utc_of(run.info.started, run, timespec),
        "machine": fingerprint(machine),
        "machine_cpu": cpu_of(machine),
    }


def entry_of(run: Run, rows_sha256: str, release: ReleaseInfo | None = None) -> RunEntry:
    """The entry of a run as it was read. Raises StoreError where its start is no time."""
    info = run.info
    return RunEntry(
        **fields_of(run, info.machine, "seconds"),
        finished=utc_of(info.finished, run) if info.finished else None,
        rnnbench=info.rnnbench,
        machine_earlier=earlier_fingerprint(info.machine),
        cases=info.cases,
        command=info.command_line,
        baseline=tuple(sorted({record.target for record in run.records if record.baseline})),
        versions=info.versions,
        steal=info.conditions.steal if info.conditions else None,
        trials=len(run.records),
        shard=str(info.shard) if info.shard else None,
        release=release,
        rows_sha256=rows_sha256,
    )


def utc_of(time: str, run: Run, timespec: str = "seconds") -> str:
    """A time of a run's `run.json`, as the history has it. Raises StoreError where it is no time."""
    try:
        parsed = datetime.fromisoformat(time)
        aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        began = aware.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        raise StoreError(f"{run.path}: '{time}' is no time in ISO 8601; restore its run.json") from error
    if not EARLIEST_YEAR <= began.year <= LATEST_YEAR:
        years = f"the years {EARLIEST_YEAR} to {LATEST_YEAR}"
        raise StoreError(f"{run.path}: '{time}' is outside of {years}; restore its run.json")
    return began.isoformat(timespec=timespec)
