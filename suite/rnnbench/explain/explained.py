"""What is found out about a program: its stages, and what its first calls did."""

from __future__ import annotations

from dataclasses import dataclass

from rnnbench.outside_text import OutsideText
from rnnbench.results import Artifact


@dataclass(frozen=True)
class StageFacts:
    """A stage of a program, without its text."""

    name: OutsideText
    meaning: OutsideText
    file: OutsideText = ""
    """The name of the file with the text; empty where there is none."""
    lines: int = 0
    operations: tuple[tuple[OutsideText, int], ...] = ()
    """Operations by name, the most frequent first."""
    sources: tuple[tuple[OutsideText, int], ...] = ()
    """Where operations came from, most of them first."""
    loops: int = 0
    """Operations that are a loop."""
    head: tuple[OutsideText, ...] = ()
    """The first interesting lines."""
    unreadable: OutsideText = ""
    """Why there is nothing to read."""

    @property
    def total(self) -> int:
        """Operations in all."""
        return sum(count for _, count in self.operations)


@dataclass(frozen=True)
class ArrayFacts:
    """An array that was passed or returned."""

    name: OutsideText
    dtype: OutsideText
    shape: tuple[int, ...]


@dataclass(frozen=True)
class CallFacts:
    """What the first calls of a stream were seen to take, to give, and to do to the state."""

    passed: tuple[ArrayFacts, ...]
    returned: tuple[ArrayFacts, ...]
    state: tuple[ArrayFacts, ...]
    """Empty where each call starts from zeros."""
    moved: bool
    """Whether the call changed the state, or its second call gave another output where there is no state."""
    cleared: bool
    """Whether the state was zero after a reset."""
    repeated: bool
    """Whether the first call after a reset gave the same bits as the first call of all."""


@dataclass(frozen=True)
class Explained:
    """All that is found out about one trial's program."""

    artifact: Artifact
    functions: tuple[OutsideText, ...]
    state: OutsideText
    stages: tuple[StageFacts, ...]
    calls: CallFacts

    @property
    def operations_by_stage(self) -> list[tuple[str, dict[str, int]]]:
        """The operations of each stage that has any."""
        return [(stage.name, dict(stage.operations)) for stage in self.stages if stage.operations]
