"""As many trials alive side by side as memory allows; the rest of a group in parts that share its anchor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import psutil

from rnnbench.backends.registry import baselines
from rnnbench.cases.trial import Trial
from rnnbench.measure.caches import eviction_bytes
from rnnbench.measure.latency import summarise
from rnnbench.results.record import Anchor
from rnnbench.run.prepare import Findings
from rnnbench.run.sample import by_worker

MEMORY_SHARE = 0.5
"""Of the memory that is available as sampling begins, for all workers of a part: their processes are not the only ones,
and a page that is swapped out is no latency."""

T = TypeVar("T")


@dataclass(frozen=True)
class Part(Generic[T]):
    """Trials, or pairs of them, that are sampled together."""

    trials: list[T]
    anchor: T
    """One of them: of the first part the anchor itself, of the others the same trial once more."""


def split(group: Sequence[Findings], available: int | None = None) -> Iterator[Part[Findings]]:
    """Trials in parts whose memory fits in MEMORY_SHARE of the `available` bytes, the machine's unless given."""
    return split_by(memory_of, group, anchor_of(group), once_more, available)


def split_by(
    memory: Callable[[Sequence[T]], int],
    group: Sequence[T],
    anchor: T,
    again: Callable[[T], T],
    available: int | None = None,
) -> Iterator[Part[T]]:
    """Parts of a group, in order. Each holds the anchor, and at least one more, however large; `again` repeats it."""
    room = MEMORY_SHARE * (psutil.virtual_memory().available if available is None else available)
    part = [anchor]
    for one in group:
        if one is anchor:
            continue
        if len(part) > 1 and memory([*part, one]) > room:
            yield Part(part, part[0])
            part = [again(anchor)]
        part.append(one)
    yield Part(part, part[0])


def anchor_of(group: Sequence[Findings]) -> Findings:
    """The baseline's first trial, or else the first. A baseline is in every run, and the same everywhere."""
    backends = {target.backend for target in baselines()}
    return next((findings for findings in group if findings.trial.target.backend in backends), group[0])


def memory_of(trials: Sequence[Findings]) -> int:
    """Bytes that the trials' workers are expected to have resident: each its import, each trial what it added to it."""
    total = 0
    for held in by_worker(trials):
        imported = max(findings.started["imported"] for findings in held)
        total += imported + sum(findings.loaded["run_peak"] - findings.started["imported"] for findings in held)
        total += eviction_bytes() if any(findings.trial.measure.cold for findings in held) else 0
    return total


def note_anchor(parts: Sequence[Part[Findings]]) -> None:
    """Tell the trials of a group that had more than one part what their anchor took beside them."""
    if len(parts) < 2:
        return
    trial = parts[0].anchor.trial
    for number, part in enumerate(parts):
        figure = Anchor(trial=trial.id, part=number, parts=len(parts), bound=_median(part.anchor, trial))
        for findings in part.trials:
            findings.anchor = figure


def _median(anchor: Findings, trial: Trial) -> float | None:
    return summarise(anchor.blocks["bound"], trial.strategy.chunk).median if anchor.is_measured() else None


def once_more(anchor: Findings) -> Findings:
    """The anchor's trial as it was before it was sampled."""
    again = Findings(anchor.trial, anchor.probe, anchor.support)
    again.started, again.built, again.loaded = anchor.started, anchor.built, anchor.loaded
    return again
