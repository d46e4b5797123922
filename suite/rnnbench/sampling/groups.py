"""Sampling groups: as many trials alive side by side as memory allows. Groups of one workload share an anchor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rnnbench.cases import Trial
from rnnbench.devices import KINDS
from rnnbench.measure import free_memory, requested
from rnnbench.stages import Checked
from rnnbench.worker import by_worker

MEMORY_SHARE = 0.5
"""Share of the available memory that the workers of a group may take. Other processes need some, and a page that was
swapped out has no meaningful latency."""

T = TypeVar("T")


@dataclass(frozen=True)
class SamplingGroup(Generic[T]):
    """Trials, or pairs of trials, that are sampled together."""

    members: tuple[T, ...]
    anchor: T
    """One of the members. It is in every group of its workload, so that groups can be compared."""


def split_by_memory(
    members: Sequence[T],
    anchor: T,
    memory: Callable[[Sequence[T]], int],
    available: int | None = None,
    holds: Callable[[Sequence[T]], bool] = lambda group: True,
) -> Iterator[SamplingGroup[T]]:
    """Groups whose `memory` fits in MEMORY_SHARE of the `available` bytes, the machine's unless given.

    Each has the anchor, and at least one more member, however large. `holds` says whether the device has room for one.
    """
    limit = MEMORY_SHARE * (free_memory() if available is None else available)
    group = [anchor]
    for member in members:
        if member is anchor:
            continue
        together = [*group, member]
        if len(group) > 1 and (memory(together) > limit or not holds(together)):
            yield SamplingGroup(tuple(group), anchor)
            group = [anchor]
        group.append(member)
    yield SamplingGroup(tuple(group), anchor)


def device_holds(trials: Sequence[Checked]) -> bool:
    """Whether what the trials were seen to have on their device fits in MEMORY_SHARE of its memory.

    True where neither the driver nor the runtime tells.
    """
    device = trials[0].examined.probe.device(trials[0].trial.device)
    taken = sum(map(_on_device, trials))
    return device is None or device.memory is None or taken <= MEMORY_SHARE * device.memory


def _on_device(checked: Checked) -> int:
    """Bytes that the driver tells of the process, or else those that the runtime counts at its peak."""
    if checked.device_memory is None and checked.loaded is not None and (count := checked.loaded.allocated) is not None:
        return count.now if count.peak is None else count.peak
    return checked.device_memory or 0


def anchor_of(trials: Sequence[Checked]) -> Checked:
    """The baseline's first trial, or else the first."""
    return next((checked for checked in trials if checked.examined.probe.baseline), trials[0])


def memory_of(trials: Sequence[Checked]) -> int:
    """Bytes that the trials' workers are expected to have resident.

    Each worker has its import, and each trial what it added to it.
    """
    total = 0
    for sharing in by_worker((checked.examined, checked) for checked in trials):
        figures = [
            (c.built.imports.imported, c.loaded.run_peak) for c in sharing if c.built.imports is not None and c.loaded
        ]
        total += max(imported for imported, _ in figures)
        total += sum(run_peak - imported for imported, run_peak in figures)
        total += max(map(eviction_memory, (checked.trial for checked in sharing)))
    return total


def eviction_memory(trial: Trial) -> int:
    """Bytes of the host's memory that emptying the device's caches takes, where the trial's case asks for it."""
    evicts = any(path.evicts for path in requested(trial.measure.settings))
    return KINDS[trial.device].eviction_memory() if evicts else 0
