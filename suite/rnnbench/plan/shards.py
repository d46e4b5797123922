"""A plan cut into shards, for machines that share its trials. The cut depends on the trials alone, not on the machine.

Trials that are compared stay together. The shards have about equal cost, by an estimate. The anchors, which are the
trials of the baseline and those of pinned versions, are in every shard that has others: by them machines are compared.
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
"""Seconds of a trial's import, build and checks: the mean of 258 trials of three runs, 2.9 s."""
_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True)
class Shard:
    """One shard of so many, written `2/8`."""

    number: int
    """From 1."""
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Raises ValueError, with a sentence."""
        match = _SHARD.fullmatch(text)
        if match is None:
            raise ValueError(f"'{text}' is no shard; expected K/N, for example 2/8")
        number, of = map(int, match.groups())
        if not 1 <= of <= MOST_SHARDS:
            raise ValueError(f"'{text}': a plan is cut into 1 to {MOST_SHARDS:,} shards, not into {of:,}")
        if not 1 <= number <= of:
            raise ValueError(f"'{text}': the first number is that of the shard, from 1 to {of}, not {number}")
        return cls(number, of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(frozen=True)
class ShardedPlan:
    """One shard of a plan, and what the whole plan is."""

    shard: Shard
    trials: tuple[Trial, ...]
    """What the shard runs, in the order of the plan: its own trials and, where it has any, all anchors."""
    whole: WholePlan

    @property
    def info(self) -> ShardInfo:
        return self.whole.shard(self.shard.number)

    @property
    def sentence(self) -> str:
        """What the shard has, for people."""
        total = sum(map(len, self.whole.shards))
        own = len(self.whole.own(self.shard.number))
        if not own:
            filled = sum(map(bool, self.whole.shards))
            where = "one other shard" if filled == 1 else f"{filled} other shards"
            return (
                f"shard {self.shard} is empty: trials that are compared stay together, and all {total:,} are in {where}"
            )
        others = len(self.trials) - own
        anchors = ", and 1 anchor of another shard" if others == 1 else f", and {others:,} anchors of other shards"
        return (
            f"shard {self.shard}: {own:,} of {total:,} trials{f'{anchors}, which every shard runs' if others else ''}"
        )


def estimated_cost(trial: Trial) -> float:
    """Seconds that a trial takes, by its case alone: its sampling budget, and a mean time for the rest.

    Unlike a count of trials, this tells a case that samples for 12 s from one that samples for 0.3 s. What a program
    takes to build, and whether it is supported, is not known before it is asked for.
    """
    return PREPARATION_S + trial.measure.budget


def anchor_trials(trials: Collection[Trial]) -> frozenset[str]:
    """Ids of the trials of baselines, and of those whose versions are pinned; none if the plan has no others."""
    baselines = {name for name in {t.target.backend for t in trials} if probe_or_stand_in(name).baseline}
    pinned = frozenset(trial.id for trial in trials if trial.pinned)
    of_baselines = frozenset(trial.id for trial in trials if trial.target.backend in baselines)
    for anchors in (pinned | of_baselines, pinned):
        if any(trial.id not in anchors for trial in trials):
            return anchors
    return frozenset()


def cut(trials: Collection[Trial], of: int, anchors: Collection[str]) -> WholePlan:
    """The ids of each shard's trials. Their order, and that of `trials`, decides nothing.

    `anchors` are ids of trials that every shard runs. Each also belongs to one shard: the one that has the rest of its
    group. The dearest group goes first, each to the shard that costs least so far. Groups of anchors alone cost no
    shard anything, and belong to the first one.
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
    """What one shard runs. A shard that has no trials of its own runs no anchors either."""
    whole = cut(trials, shard.of, anchors)
    runs = whole.expected(shard.number)
    kept = {trial.id: trial for trial in trials if trial.id in runs}
    return ShardedPlan(shard, tuple(kept.values()), whole)


def _digest(ordered: Sequence[Trial]) -> str:
    """SHA-256 of all that the trials say, limits and how they are sampled included."""
    content = TypeAdapter(list[Trial]).dump_python(list(ordered), mode="json")
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
