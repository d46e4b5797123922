"""Histories of runs that no machine made: some trials over some nights, with what each night changes."""

from __future__ import annotations

import atexit
import json
import os
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fake_records as fake
import pytest

from rnnbench.devices import Device
from rnnbench.history import History, store
from rnnbench.results import Record, Timing, tables

MACHINE = {"cpu": "Fake CPU 9000", "cores": 2}
Night = Callable[[int, Record], Record | None]
"""What a night makes of a record; None: it is not measured."""
_files: dict[str, bytes] = {}
"""Files of rows by what is in them."""
_databases: dict[int, Any] = {}
"""By the process that opened it: in a fork, a database has no threads."""
_open_database = tables.open_database
atexit.register(_databases.clear)


def trials() -> list[Record]:
    """Four anchors, four trials of one backend, and two of another."""
    anchors = [fake.record("fakebase", "ops", chunk=2**k, baseline=True) for k in range(4)]
    first = [fake.record("fakemlir", "linalg", chunk=2**k) for k in range(4)]
    return [*anchors, *first, fake.record("fakelib", "ops"), fake.record("fakelib", "ops", chunk=64)]


def slower(record: Record, factor: float) -> Record:
    """The record with latencies that are so many times as long."""
    latencies = {
        path: one.model_copy(
            update={
                "median": one.median * factor,
                "process_medians": tuple(m * factor for m in one.process_medians),
                "interval": one.interval and tuple(end * factor for end in one.interval),
            }
        )
        for path, one in record.timing.latency.items()
    }
    return record.model_copy(update={"timing": Timing(**{**dict(record.timing), "latency": latencies})})


def of_version(record: Record, version: str) -> Record:
    """The record of another build: versions and digest are others."""
    artifact = record.artifact and record.artifact.model_copy(update={"digest": version})
    return record.model_copy(update={"version": {f"{record.backend}-package": version}, "artifact": artifact})


def on_gpu(record: Record, name: str | None) -> Record:
    """The record of a trial that ran on this GPU; None: no driver told on which."""
    device = None if name is None else Device(name, "a driver", "9.0", 80 << 30)
    return record.model_copy(update={"device": device, "params": record.params.model_copy(update={"device": "cuda"})})


def shared_database(purpose: str) -> Any:
    """In the place of `tables.open_database`, for files of rows: it takes as long to open as to write one of them."""
    if os.getpid() not in _databases:
        _databases[os.getpid()] = _open_database(purpose)
    return _databases[os.getpid()].cursor()


def make(
    folder: Path,
    nights: int,
    night: Night = lambda n, record: record,
    machine: Callable[[int], dict] = lambda n: MACHINE,
) -> History:
    """A history of so many nights, with a scatter of 0.5 %.

    They share a database, and equal nights of all histories share a file of rows.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "open_database", shared_database)
        patch.setattr(store, "parquet", _parquet_once)
        return _made(folder, nights, night, machine)


def _parquet_once(types: Mapping[str, str], rows: tables.TableRows, purpose: str) -> bytes:
    lines = list(rows)
    written = json.dumps(lines)
    if written not in _files:
        _files[written] = tables.parquet(types, lines, purpose)
    return _files[written]


def _made(folder: Path, nights: int, night: Night, machine: Callable[[int], dict]) -> History:
    chance = random.Random(0)
    root = folder / "history"
    for number in range(nights):
        scattered = [slower(record, 1 + chance.gauss(0, 0.005)) for record in trials()]
        records = [changed for record in scattered if (changed := night(number, record)) is not None]
        started = f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}T02:00:00+00:00"
        run = folder / f"night{number:03d}"
        run.mkdir(parents=True)
        info = fake.info(run=run.name, started=started, seed=number, machine=machine(number))
        (run / "run.json").write_text(info.model_dump_json())
        (run / "records.jsonl").write_text("".join(record.model_dump_json() + "\n" for record in records))
        History(root).add(run)
    return History(root)
