"""A plan cut into shards, for machines that share its trials. The cut depends only on the trials, not on the machine.

Trials that are compared stay together. The shards have about equal estimated cost. The anchors, which are the trials of
the baseline and those of pinned versions, are in every shard that has other trials. Machines are compared by them.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from rnnbench.cases import Trial
from rnnbench.plan.adapters import probe_or_stand_in
from rnnbench.plan.workload_groups import group_by_workload
from rnnbench.results import ShardInfo, WholePlan

MOST_SHARDS = 10_000
PREPARATION_S = 3.0
"""Estimated seconds of a trial's import, build and checks. The mean of 258 trials of three runs was 2.9 s."""
_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True)
class Shard:
    """The number of a shard, and of how many: `2/8`."""

    number: int
    """From 1."""
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `2/8`. Raises ValueError, with a sentence."""
        match = _SHARD.fullmatch(text)
        if match is None:
            raise ValueError(f"'{text}' is no shard; expected K/N, for example 2/8")
        number, shards = map(int, match.groups())
        if not 1 <= shards <= MOST_SHARDS:
            raise ValueError(f"'{text}': a plan is cut into 1 to {MOST_SHARDS:,} shards, not into {shards:,}")
        if not 1 <= number <= shards:
            raise ValueError(f"'{text}': the first number is the number of the shard, from 1 to {shards}, not {number}")
        return cls(number, shards)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True)
class ShardedPlan:
    """One shard of a plan, and the whole plan."""

    shard: Shard
    trials: tuple[Trial, ...]
    """The trials that the shard runs, in the plan's order: its own trials and, if it has any, all anchors."""
    whole: WholePlan

    @property
    def info(self) -> ShardInfo:
        return self.whole.shard(self.shard.number)

    @property
    def sentence(self) -> str:
        """How many trials the shard has, in words."""
        total = sum(map(len, self.whole.shards))
        share = len(self.whole.own(self.shard.number))
        if not share:
            filled = sum(map(bool, self.whole.shards))
            where = "one other shard" if filled == 1 else f"{filled} other shards"
            return (
                f"shard {self.shard} is empty: trials that are compared stay together, and all {total:,} are in {where}"
            )
        others = len(self.trials) - share
        anchors = ", and 1 anchor of another shard" if others == 1 else f", and {others:,} anchors of other shards"
        return (
            f"shard {self.shard}: {share:,} of {total:,} trials{f'{anchors}, which every shard runs' if others else ''}"
        )


def estimated_cost(trial: Trial) -> float:
    """Estimated seconds of a trial: its sampling budget, and a mean time for the rest.

    The estimate uses only the case. A program's build time, and whether it is supported, are not known yet.
    """
    return PREPARATION_S + trial.measure.budget


def anchor_trials(trials: Collection[Trial]) -> frozenset[str]:
    """The ids of the trials of baselines and of pinned versions.

    If the plan has no other trials, only those of pinned versions; if all have pinned versions, none.
    """
    baselines = {name for name in {t.target.backend for t in trials} if probe_or_stand_in(name).baseline}
    pinned = frozenset(trial.id for trial in trials if trial.pinned)
    of_baselines = frozenset(trial.id for trial in trials if trial.target.backend in baselines)
    for anchors in (pinned | of_baselines, pinned):
        if any(trial.id not in anchors for trial in trials):
            return anchors
    return frozenset()


def cut(trials: Collection[Trial], of: int, anchors: Collection[str]) -> WholePlan:
    """Cut a plan into `of` shards. The order of `trials` does not matter.

    `anchors` are the ids of trials that every shard runs. Each also belongs to the shard that has the rest of its
    group. Groups are assigned by falling cost, each to the shard with the least cost so far. Groups of anchors alone
    cost nothing, and belong to the first shard.
    """
    by_id = {trial.id: trial for trial in trials}
    ordered = [by_id[identity] for identity in sorted(by_id)]
    costs = [
        (-sum(estimated_cost(trial) for trial in group if trial.id not in anchors), sorted(trial.id for trial in group))
        for group in group_by_workload(ordered, lambda trial: trial)
    ]
    shards: list[list[str]] = [[] for _ in range(of)]
    loads = [(0.0, number) for number in range(of)]
    for minus_cost, identities in sorted(costs):
        if not minus_cost:
            shards[0] += identities
            continue
        load, number = heapq.heappop(loads)
        shards[number] += identities
        heapq.heappush(loads, (load - minus_cost, number))
    return WholePlan(
        trials=_digest(ordered),
        shards=tuple(tuple(sorted(shard)) for shard in shards),
        anchors=tuple(sorted(set(anchors) & by_id.keys())),
    )


def shard_of(trials: Sequence[Trial], shard: Shard, anchors: Collection[str] = ()) -> ShardedPlan:
    """The trials that one shard runs. A shard without trials of its own runs no anchors either."""
    whole = cut(trials, shard.of, anchors)
    runs = whole.expected(shard.number)
    kept = {trial.id: trial for trial in trials if trial.id in runs}
    return ShardedPlan(shard, tuple(kept.values()), whole)


def _digest(ordered: Sequence[Trial]) -> str:
    """SHA-256 of all settings of the trials, limits and sampling included."""
    content = TypeAdapter(list[Trial]).dump_python(list(ordered), mode="json")
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
