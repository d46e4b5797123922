"""What a run says of the plan that it is one shard of: `shard` in `run.json`, and `shards.json` with the whole plan."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from rnnbench.disk import read_or_copy, write_with_copy
from rnnbench.results.frozen_model import FrozenModel
from rnnbench.results.reading import StoreError
from rnnbench.results.text import visible

PLAN = "shards.json"
SHARDS = "shards"
"""The folder of a merged run that has the runs of its shards."""
DIGEST_DIGITS = 16


class ShardInfo(FrozenModel):
    """Which shard of which plan a run is."""

    number: int
    """From 1."""
    of: int
    plan: str
    """`WholePlan.digest`: shards with the same one belong together."""

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class MergedInfo(FrozenModel):
    """The shards of a merged run. Their folders are `shards/<number>-of-<of>`."""

    plan: str
    of: int
    numbers: tuple[int, ...]

    def folder(self, run: Path, number: int) -> Path:
        """The run of a shard, as it was before it was merged."""
        return run / SHARDS / f"{number}-of-{self.of}"


class WholePlan(FrozenModel):
    """`shards.json`: which trials each shard of a plan has. It is the same in every shard of the plan."""

    trials: str
    """SHA-256 of all trials with their settings."""
    shards: tuple[tuple[str, ...], ...]
    """By shard, the ids of the trials that belong to it. A trial belongs to one shard."""
    anchors: tuple[str, ...]
    """Ids of the trials that every shard runs, but for a shard to which no trial belongs."""

    @cached_property
    def digest(self) -> str:
        """16 hex digits of all of it."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:DIGEST_DIGITS]

    def own(self, number: int) -> tuple[str, ...]:
        """Trials that belong to a shard."""
        return self.shards[number - 1]

    def expected(self, number: int) -> frozenset[str]:
        """Trials that a shard runs: its own, and the anchors of all shards."""
        share = self.own(number)
        return frozenset({*share, *self.anchors} if share else ())

    def shard(self, number: int) -> ShardInfo:
        return ShardInfo(number=number, of=len(self.shards), plan=self.digest)


def write_whole_plan(folder: Path, plan: WholePlan) -> None:
    """Raises OSError."""
    write_with_copy(folder / PLAN, plan.model_dump_json().encode() + b"\n")


def _has_digest(content: bytes, digest: str) -> bool:
    try:
        return WholePlan.model_validate_json(content).digest == digest
    except ValidationError:
        return False


def read_whole_plan(folder: Path, about: ShardInfo | MergedInfo) -> tuple[WholePlan, tuple[str, ...]]:
    """The plan that `run.json` names, and a sentence if it is that of the copy.

    Raises StoreError where the file is damaged, or has another plan.
    """
    file = folder / PLAN
    try:
        content, why_copy = read_or_copy(file, lambda content: _has_digest(content, about.plan))
        plan = WholePlan.model_validate_json(content)
    except OSError as error:
        raise StoreError(f"{file}: cannot be read: {error.strerror or error}; restore it") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "its content"
        raise StoreError(visible(f"{file}: damaged: {where}: {first['msg']}; restore it")) from error
    numbers = (about.number,) if isinstance(about, ShardInfo) else about.numbers
    is_known = numbers and len(set(numbers)) == len(numbers) and all(1 <= number <= about.of for number in numbers)
    if plan.digest != about.plan or len(plan.shards) != about.of or not is_known:
        named = ", ".join(map(str, numbers)) or "none"
        raise StoreError(
            visible(
                f"{file}: has plan {plan.digest} in {len(plan.shards)} shards, but run.json names plan {about.plan} in "
                f"{about.of} shards, and of these {named}; restore both files of this run"
            )
        )
    return plan, (why_copy,) if why_copy else ()
