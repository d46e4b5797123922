"""Shards that no machine made: fake records of three sizes, one size a shard, with the baseline's as anchors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fake_records as fake

from rnnbench.results import Record, WholePlan, write_whole_plan

SIZES = (64, 128, 256)
ONE, OTHER = {"cpu": "Fake CPU 9000", "cores": 2}, {"cpu": "Fake CPU 7", "cores": 4}
Change = Callable[[int, Record], Record | None]


def records_of(hidden: int) -> list[Record]:
    """Of one size: an anchor and two programs."""
    seconds = hidden * 1e-6
    return [
        fake.record("fakebase", "ops", hidden=hidden, bound=seconds, baseline=True),
        fake.record("fakelib", "ops", hidden=hidden, bound=seconds / 2),
        fake.record("fakemlir", "linalg", hidden=hidden, bound=seconds / 3),
    ]


def the_plan(trials: str = "f" * 64) -> WholePlan:
    """The plan of all three; its fourth shard is empty."""
    own = [tuple(sorted(record.trial for record in records_of(hidden))) for hidden in SIZES]
    anchors = tuple(sorted(records_of(hidden)[0].trial for hidden in SIZES))
    return WholePlan(trials=trials, shards=(*own, ()), anchors=anchors)


def make_shard(
    folder: Path,
    number: int,
    change: Change = lambda number, record: record,
    plan: WholePlan | None = None,
    machine: Mapping[str, Any] = ONE,
    **info: Any,
) -> Path:
    """One shard on disk, with its own trials and the anchors of the others."""
    plan = plan or the_plan()
    runs = plan.expected(number)
    records = [record for hidden in SIZES for record in records_of(hidden) if record.trial in runs]
    kept = [changed for record in records if (changed := change(number, record)) is not None]
    started = f"2026-01-31T12:00:0{number}+00:00"
    content = {"started": started, "seed": number, "machine": dict(machine), "shard": plan.shard(number), **info}
    path = fake.write_run(folder / f"2026013{number}T120000Z-fake_case-{number}-of-4", kept, **content)
    write_whole_plan(path, plan)
    return path


def make_shards(folder: Path, change: Change = lambda number, record: record, **content: Any) -> list[Path]:
    return [make_shard(folder, number, change, **content) for number in (1, 2, 3)]
