"""A finding: what the suite saw of a trial that its program, or its adapter, did not say."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from rnnbench.outside_text import OutsideText
from rnnbench.results.frozen_model import FrozenModel


class FindingKind(StrEnum):
    """What a finding is about."""

    ARTIFACT = "artifact"
    """What the adapter says of the artifact contradicts what the suite counted, hashed or timed itself."""
    TIME = "time"
    """A time cannot be what it says: work was done outside the timed call, or a clock contradicts another one."""
    PROCESS = "process"
    """A command left something changed in its process."""


class Finding(FrozenModel):
    """One finding. Equal findings of several commands or processes count once."""

    kind: FindingKind
    detail: OutsideText
    """What was seen and what was expected, in a sentence."""
    disbelieved: bool = False
    """Whether the trial's figures are not believed because of it. Such a trial is in no ranking."""


def not_believed(findings: Iterable[Finding]) -> str:
    """Why figures with these findings are not believed; empty where they are."""
    return "; ".join(finding.detail for finding in findings if finding.disbelieved)
