"""Trials that are compared: they are built one after the other, sampled in turn, and cut into no two shards."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from rnnbench.cases import Trial
from rnnbench.rnn import DTYPES

T = TypeVar("T")


def group_by_workload(items: Iterable[T], trial_of: Callable[[T], Trial]) -> list[list[T]]:
    """Trials of the same case and sizes, small chunks first: ragged rests run through the program of chunk 1."""
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(workload_of(trial_of(item)), []).append(item)
    return [sorted(group, key=lambda item: trial_of(item).strategy.chunk) for group in groups.values()]


def workload_of(trial: Trial) -> Hashable:
    """What trials that are compared have in common: the case and the sizes. They are sampled in turn.

    The forms of int8 are compared with float32.
    """
    dtype = DTYPES[trial.dtype].sampled_with
    return (trial.case, trial.model, trial.batch, dtype, trial.device, trial.threads, trial.seed)
