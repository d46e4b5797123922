"""Ways in which the folder of a shard may be damaged before it is merged, and what merging makes of each.

`whole`: all of its trials are there. `missing`: it is read, what is wrong is told, and its trials are missing.
`refused`: a sentence says what is wrong, and nothing is written.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import fake_shards as made

from rnnbench.disk import copy_of, write_with_copy
from rnnbench.results.journal import INFO, RECORDS, TRIALS
from rnnbench.results.shards import PLAN

Outcome = Literal["whole", "missing", "refused"]
WITH_COPY = (INFO, PLAN, TRIALS)
OTHERS = ("shard", "plan", "sitting")
"""Whose file lies in the place of the shard's own: that of another shard, of another plan, or of the same shard at
another time."""


@dataclass(frozen=True)
class Damage:
    name: str
    outcome: Outcome
    do: Callable[[Path, dict[str, Path]], object]
    """To the shard's folder; the others are by OTHERS."""


def make_shards(folder: Path) -> tuple[list[Path], dict[str, Path]]:
    """The shards of a plan, of which the first is to be damaged, and the folders of others."""

    def shards(name: str, trials: str, seeds: int) -> list[Path]:
        found = []
        for number in (1, 2, 3):
            seed = seeds + number
            plan = made.the_plan(trials)
            stamped = lambda _, record, seed=seed: record.model_copy(update={"run_seed": seed})  # noqa: E731
            found.append(made.make_shard(folder / name, number, stamped, plan, seed=seed))
            write_with_copy(found[-1] / TRIALS, b"[]")
        return found

    own, plan, sitting = shards("own", "f" * 64, 0), shards("plan", "e" * 64, 10), shards("sitting", "f" * 64, 20)
    return own, {"shard": own[1], "plan": plan[0], "sitting": sitting[0]}


def _damages() -> Iterator[Damage]:
    for name in (*WITH_COPY, *(f"{name}.copy" for name in WITH_COPY)):
        for how, change in _CHANGES.items():
            no_run = name == INFO and how in ("gone", "a folder", "a pipe")
            yield Damage(f"{name} is {how}", "refused" if no_run else "whole", _of(name, change))
    for how, change in _CHANGES.items():
        refused = how in ("a folder", "a pipe")
        yield Damage(f"{RECORDS} is {how}", "refused" if refused else "missing", _of(RECORDS, change))
    for name in WITH_COPY:
        outcome: Outcome = "whole" if name == TRIALS else "refused"
        yield Damage(f"{name} and its copy are cut", outcome, _both(name, _CHANGES["cut"]))
    for whose in OTHERS:
        of_another_plan = whose == "plan"
        yield Damage(f"{PLAN} of another {whose}", "refused" if of_another_plan else "whole", _taken(PLAN, whose))
        yield Damage(f"{RECORDS} of another {whose}", "missing", _taken(RECORDS, whose))
        yield Damage(f"lines of another {whose} after its own", "whole", _joined(whose, own_first=True))
        yield Damage(f"lines of another {whose} before its own", "whole", _joined(whose, own_first=False))
    yield Damage(f"{INFO} of another shard", "missing", _taken(INFO, "shard"))
    yield Damage(f"{INFO} of another plan", "refused", _taken(INFO, "plan"))
    yield Damage(f"{INFO} of another sitting", "missing", _taken(INFO, "sitting"))


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replace(file: Path) -> None:
        file.unlink()
        make(file)

    return replace


_CHANGES: dict[str, Callable[[Path], object]] = {
    "cut": _cut,
    "empty": lambda file: file.write_bytes(b""),
    "gone": Path.unlink,
    "a folder": _replaced(Path.mkdir),
    "a pipe": _replaced(os.mkfifo),
}


def _of(name: str, change: Callable[[Path], object]) -> Callable[[Path, dict[str, Path]], object]:
    return lambda shard, others: change(shard / name)


def _both(name: str, change: Callable[[Path], object]) -> Callable[[Path, dict[str, Path]], object]:
    return lambda shard, others: [change(file) for file in (shard / name, copy_of(shard / name))]


def _taken(name: str, whose: str) -> Callable[[Path, dict[str, Path]], object]:
    def take(shard: Path, others: dict[str, Path]) -> None:
        for file in (name, f"{name}.copy"):
            if (others[whose] / file).exists():
                shutil.copyfile(others[whose] / file, shard / file)

    return take


def _joined(whose: str, *, own_first: bool) -> Callable[[Path, dict[str, Path]], object]:
    def join(shard: Path, others: dict[str, Path]) -> None:
        parts = [(folder / RECORDS).read_bytes() for folder in (shard, others[whose])]
        (shard / RECORDS).write_bytes(b"".join(parts if own_first else reversed(parts)))

    return join


DAMAGES = tuple(_damages())
