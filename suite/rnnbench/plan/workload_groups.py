"""Groups of trials that are compared with each other: they are sampled in turn, and belong to one shard."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from rnnbench.cases import Trial
from rnnbench.rnn import DTYPES

T = TypeVar("T")


def group_by_workload(items: Iterable[T], trial_of: Callable[[T], Trial]) -> list[list[T]]:
    """Group items by the workload of their trials, small chunks first: ragged rests use the program of chunk 1."""
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(workload_of(trial_of(item)), []).append(item)
    return [sorted(group, key=lambda item: trial_of(item).strategy.chunk) for group in groups.values()]


def workload_of(trial: Trial) -> Hashable:
    """The case and sizes that trials must share to be compared. The int8 dtypes are compared with float32."""
    dtype = DTYPES[trial.dtype].sampled_with
    return (trial.case, trial.model, trial.batch, dtype, trial.device, trial.threads, trial.seed)
