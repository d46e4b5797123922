"""A history of nights that no machine measured, for the size of the site: 500 trials over a year, and one run.

Every name says so: the backends are `fake…`, and the machine's description has `synthetic`, which the site shows on
every page. The latencies are those of `nights`, with some steps planted.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import duckdb
import fake_records as fake
import nights
import numpy as np

from rnnbench.history import History, entry_of
from rnnbench.history.columns import ROW_TYPES, rows_of
from rnnbench.results import Record, fingerprint, parquet, read_run

MACHINE = {"cpu": "Synthetic CPU", "cores": 2, "memory": 24 << 30, "python": "3.13.0", "synthetic": True}
STEPS = (nights.Planted(7, -20, 10), nights.Planted(23, -18, -5), nights.Planted(45, 100, 5))
"""Planted changes; a negative night counts from the end."""
SHAPES = [(hidden, chunk) for hidden in (64, 128, 256, 512, 1024) for chunk in (1, 4, 16, 64, 128)]
STRATEGIES = (("looped", "stitched"), ("unrolled", "stitched"))
TARGETS = tuple((f"fake{index}", "ops" if index % 3 else "linalg") for index in range(nights.BACKENDS))


def records(count: int) -> list[Record]:
    """Trial t is of backend t % 10, as in `nights`; backend 0 is the baseline."""
    made = []
    for number in range(count):
        backend, route = TARGETS[number % len(TARGETS)]
        hidden, chunk = SHAPES[number // len(TARGETS) % len(SHAPES)]
        time, state = STRATEGIES[number // len(TARGETS) // len(SHAPES) % len(STRATEGIES)]
        made.append(
            fake.record(
                backend,
                route,
                time=time,
                state=state,
                chunk=chunk,
                hidden=hidden,
                bound=chunk * hidden**1.5 * 1e-9 * (1 + 0.2 * (number % len(TARGETS))),
                baseline=number % len(TARGETS) == 0,
            )
        )
    return made


def scaled(record: Record, factor: float) -> Record:
    """The record with latencies that are so many times as long, and intervals of ±1 %."""
    figures = ("min", "median", "mean", "p90", "p99", "max", "per_step")
    changed = {
        path: fake.with_interval(
            one.model_copy(
                update={
                    **{name: getattr(one, name) * factor for name in figures},
                    "process_medians": tuple(median * factor for median in one.process_medians),
                }
            )
        )
        for path, one in record.timing.latency.items()
    }
    return fake.with_latencies(record, **changed)


def write(folder: Path, trials: int, count: int) -> History:
    """The history in `folder/history` and the records of its last night in `folder/results/<night>`."""
    planted = [nights.Planted(s.trial, s.night % count, s.percent) for s in STEPS if s.trial < trials]
    factors = np.exp(nights.make(trials, count, 0, planted).values)
    made = records(trials)
    root, results = folder / "history", folder / "results"
    for sub in ("rows", "runs"):
        (root / sub).mkdir(parents=True)
    newest = [scaled(record, factors[number, -1]) for number, record in enumerate(made)]
    run = read_run(fake.write_run(results / _name(count - 1), newest, **_info(count - 1)))
    base = rows_of(replace(run, records=tuple(scaled(record, 1.0) for record in made)), "base", {})
    (root / "base.parquet").write_bytes(parquet(ROW_TYPES, base, "the test"))
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE base AS SELECT * FROM read_parquet('{root / 'base.parquet'}')")
        for night in range(count):
            entry = entry_of(replace(run, info=fake.info(run=_name(night), **_info(night))), "")
            target = root / "rows" / f"{entry.run_id}.parquet"
            pairs = json.dumps(
                [{"trial": r.trial, "factor": float(f)} for r, f in zip(made, factors[:, night], strict=True)]
            )
            database.execute(
                f"COPY (SELECT base.* REPLACE ('{entry.run_id}' AS run_id, '{_name(night)}' AS run, "
                f"TIMESTAMP '{entry.started}' AS started, "
                f"CASE WHEN baseline THEN 'pinned' ELSE 'fake {night // 30}' END AS versions, "
                f"'{night // 30}' AS artifact_digest, {_scaled()}) FROM base JOIN "
                '(SELECT unnest(from_json(?, \'[{"trial":"VARCHAR","factor":"DOUBLE"}]\'), recursive := true)) f '
                f"USING (trial)) TO '{target}' (FORMAT parquet)",
                [pairs],
            )
            digest = hashlib.sha256(target.read_bytes()).hexdigest()
            stored = entry.model_copy(update={"rows_sha256": digest})
            (root / "runs" / f"{entry.run_id}.json").write_text(stored.model_dump_json())
    (root / "base.parquet").unlink()
    assert all(entry.machine == fingerprint(MACHINE) for entry in History(root).runs)
    return History(root)


def _scaled() -> str:
    paths = ("bound", "public")
    columns = [f"{path}_{name}" for path in paths for name in ("median_s", "low_s", "high_s", "per_step_s")]
    lists = [f"[x * factor FOR x IN {path}_process_medians] AS {path}_process_medians" for path in paths]
    columns.append("build_s")
    return ", ".join([*(f"{column} * factor AS {column}" for column in columns), *lists])


def _name(night: int) -> str:
    return f"synthetic-night{night:03d}"


def _info(night: int) -> dict[str, object]:
    started = f"{nights.started(night)}+00:00"
    return {"started": started, "finished": started, "seed": night, "machine": MACHINE}
