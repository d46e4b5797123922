"""What a program offers to its caller, and the stages that it went through as text. `rnnbench explain` shows both.

A backend that can say so has a module `explanation` beside its adapter, here or in another distribution, with a
function `explain(program, request, folder) -> Explanation`. It may compile the program once more, and write what it
likes into `folder`, which is removed afterwards.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rnnbench.results import parse_lowered

LOOPS = frozenset(
    {
        *("scf.for", "scf.while", "stablehlo.while", "while", "WHILE", "tirx.For"),
        *("While", "StatelessWhile", "tf.While", "tf.WhileRegion", "Loop", "Scan", "TensorIterator", "prim::Loop"),
    }
)
"""Operations of all IRs here that are a loop."""
LONGEST_CONSTANT = 32
"""Characters of a constant's value in a shown text."""


@dataclass(frozen=True)
class IrStage:
    """The program at one stage, in a form that can be read."""

    name: str
    """One word for tables and names of files: `input`, `stream`."""
    meaning: str
    """What this stage is: a sentence."""
    text: str
    operations: Mapping[str, int] = field(default_factory=dict)
    """How often each operation stands in the text."""
    suffix: str = "txt"
    """The suffix of the file that gets the text."""
    begins_at: str = ""
    """Where to begin to read: a text of the first interesting line. Empty: at the beginning."""
    sources: Mapping[str, int] = field(default_factory=dict)
    """How many of the operations came from where: a kernel, a cell, a loop. Empty where this cannot be told."""
    other_loops: int = 0
    """Loops that are none of the operations: in Python, or as branches to earlier blocks."""

    @property
    def loops(self) -> int:
        return self.other_loops + sum(count for name, count in self.operations.items() if name in LOOPS)


@dataclass(frozen=True)
class Unreadable:
    """A stage without anything to read."""

    name: str
    reason: str
    """Who has no such text, and why: a sentence."""


@dataclass(frozen=True)
class Explanation:
    """What an adapter says of one of its programs."""

    functions: tuple[str, ...]
    """What the caller may call, with the shapes and types of what goes in and out: a line each."""
    state: str
    """Where the state is between calls, and what a reset does: a sentence or two. Empty for a program without one."""
    stages: Iterable[IrStage | Unreadable]
    """In the order in which the program goes through them. It may be a generator."""


def loops_in(lowered: str) -> int:
    """The loops that an artifact's `lowered` says."""
    form = parse_lowered(lowered)
    return form.loops if form else 0


def shortened(text: str) -> str:
    """MLIR or HLO text without the values of large constants."""
    text = text.partition("\n{-#")[0]
    return re.sub(rf'(dense(?:_resource)?<"?)([^>"]{{{LONGEST_CONSTANT},}})("?>)', r"\1…\3", text)


def counted(names: Iterable[str]) -> dict[str, int]:
    """How often each name is there, the most frequent first."""
    return dict(Counter(names).most_common())
