"""As many trials alive side by side as memory allows; the rest of a group in parts that share its anchor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import psutil

from rnnbench.cases.trial import Trial
from rnnbench.measure.caches import eviction_bytes
from rnnbench.measure.latency import summarise
from rnnbench.results.record import Anchor
from rnnbench.run.prepare import Findings
from rnnbench.run.sample import by_worker

MEMORY_SHARE = 0.5
"""Of the memory that is available as sampling begins, for all workers of a part: their processes are not the only ones,
and a page that is swapped out is no latency."""
BASELINE = "numpy"
"""The backend that is the anchor of a group where it has a trial in it: it is everywhere, and alike everywhere."""


@dataclass(frozen=True)
class Part:
    """Trials that are sampled together."""

    trials: list[Findings]
    anchor: Findings
    """One of them: of the first part the anchor itself, of the others the same trial once more."""


def split(group: Sequence[Findings], available: int | None = None) -> Iterator[Part]:
    """Parts, in order, whose memory fits in MEMORY_SHARE of the `available` bytes: what the machine has, unless given.

    Each holds the anchor, and at least one trial more, however large.
    """
    room = MEMORY_SHARE * (psutil.virtual_memory().available if available is None else available)
    anchor = anchor_of(group)
    part = [anchor]
    for findings in group:
        if findings is anchor:
            continue
        if len(part) > 1 and memory_of([*part, findings]) > room:
            yield Part(part, part[0])
            part = [_once_more(anchor)]
        part.append(findings)
    yield Part(part, part[0])


def anchor_of(group: Sequence[Findings]) -> Findings:
    """The baseline's first trial, or else the first."""
    return next((findings for findings in group if findings.trial.target.backend == BASELINE), group[0])


def memory_of(trials: Sequence[Findings]) -> int:
    """Bytes that the trials' workers are expected to have resident: each its import, each trial what it added to it."""
    total = 0
    for held in by_worker(trials):
        imported = max(findings.started["imported"] for findings in held)
        total += imported + sum(findings.loaded["run_peak"] - findings.started["imported"] for findings in held)
        total += eviction_bytes() if any(findings.trial.measure.cold for findings in held) else 0
    return total


def note_anchor(parts: Sequence[Part]) -> None:
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


def _once_more(anchor: Findings) -> Findings:
    """The anchor's trial as it was before it was sampled."""
    return replace(anchor, failure=None, stage="", verdicts={}, blocks={}, courses={}, roofs=[], anchor=None)
