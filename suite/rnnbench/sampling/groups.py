"""Sampling groups: as many trials loaded side by side as memory allows. Groups of one workload share a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rnnbench.cases import Trial
from rnnbench.devices import KINDS
from rnnbench.measure import free_memory, requested
from rnnbench.stages import Checked, Examined
from rnnbench.worker import by_worker

MEMORY_SHARE = 0.5
"""Share of the available memory that the workers of a group may use. Other processes need some, and a latency with
swapped pages means nothing."""

T = TypeVar("T")


@dataclass(frozen=True)
class SamplingGroup(Generic[T]):
    """Trials, or pairs of trials, that are sampled together."""

    members: tuple[T, ...]
    common: T
    """One of the members. It is in every group of its workload, so that groups can be compared."""


def split_by_memory(
    members: Sequence[T],
    common: T,
    memory: Callable[[Sequence[T]], int],
    available: int | None = None,
    holds: Callable[[Sequence[T]], bool] = lambda group: True,
) -> Iterator[SamplingGroup[T]]:
    """Split members into groups whose `memory` fits in MEMORY_SHARE of the `available` bytes (default: the machine's).

    Each group has the common trial, and at least one more member of any size. `holds` tells whether a group fits on the
    device.
    """
    limit = MEMORY_SHARE * (free_memory() if available is None else available)
    group = [common]
    for member in members:
        if member is common:
            continue
        together = [*group, member]
        if len(group) > 1 and (memory(together) > limit or not holds(together)):
            yield SamplingGroup(tuple(group), common)
            group = [common]
        group.append(member)
    yield SamplingGroup(tuple(group), common)


def device_holds(trials: Sequence[Checked]) -> bool:
    """Whether the trials' measured memory on their device, and their workers', fit in MEMORY_SHARE of its memory.

    True if neither the driver nor the runtime reports it.
    """
    kind = trials[0].trial.device
    device = trials[0].examined.probe.device(kind)
    workers = len(by_worker((checked.examined, checked) for checked in trials))
    held_bytes = sum(map(_on_device, trials)) + workers * KINDS[kind].worker_memory
    return device is None or device.memory is None or held_bytes <= MEMORY_SHARE * device.memory


def most_workers(examined: Examined) -> int | None:
    """How many workers the device of a trial has memory for, before their programs are measured. None: any number."""
    kind = KINDS[examined.trial.device]
    if not kind.worker_memory:
        return None
    device = examined.probe.device(kind.name)
    if device is None or device.memory is None:
        return None
    return max(1, int(MEMORY_SHARE * device.memory) // kind.worker_memory)


def _on_device(checked: Checked) -> int:
    """Bytes of the process that the driver reports, or else the peak that the runtime counts."""
    if checked.device_memory is None and checked.loaded is not None and (count := checked.loaded.allocated) is not None:
        return count.now if count.peak is None else count.peak
    return checked.device_memory or 0


def common_trial_of(trials: Sequence[Checked]) -> Checked:
    """The baseline's first trial, or else the first."""
    return next((checked for checked in trials if checked.examined.probe.baseline), trials[0])


def memory_of(trials: Sequence[Checked]) -> int:
    """Expected resident bytes of the trials' workers: each worker's import, and what each of its trials adds."""
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
    """Bytes of the host's memory that emptying the device's caches needs; 0 if the trial's case has no cold calls."""
    evicts = any(path.evicts for path in requested(trial.measure.settings))
    return KINDS[trial.device].eviction_memory() if evicts else 0
