"""The claims of the adapters of a run's trials: contradictions between them are found before records are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rnnbench.pipeline.record import record_of
from rnnbench.results import Claim, Contradiction, Finding, FindingKind, contradictions
from rnnbench.stages import Sampled

WithFirst = tuple[Sampled, Sampled | None]
"""A trial, and the earlier trial whose samples it shares, if any."""


def without_contradictions(trials: Sequence[WithFirst]) -> list[WithFirst]:
    """Add a finding for each contradiction among trials of one workload, and remove an impossible `hoisted`."""
    found: dict[str, list[Contradiction]] = {}
    for contradiction in contradictions([record_of(sampled, first) for sampled, first in trials]):
        found.setdefault(contradiction.trial, []).append(contradiction)
    return [(_with(sampled, found.get(sampled.trial.id, ())), first) for sampled, first in trials]


def _with(sampled: Sampled, found: Sequence[Contradiction]) -> Sampled:
    if not found:
        return sampled
    findings = (Finding(kind=FindingKind.ARTIFACT, detail=contradiction.detail) for contradiction in found)
    sampled = replace(sampled, findings=(*sampled.findings, *findings))
    loaded = sampled.checked.loaded
    if loaded is None or all(contradiction.claim is not Claim.HOISTED for contradiction in found):
        return sampled
    artifact = loaded.artifact.model_copy(update={"hoisted": None})
    return replace(sampled, checked=replace(sampled.checked, loaded=replace(loaded, artifact=artifact)))
