"""The vocabulary of `Artifact.lowered`: what form a compiled program has."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(
    r"(?P<whole>fused|given)|(?P<kind>looped|unrolled|parallel|chunked) (?P<count>\d{1,9})(?: of (?P<copies>\d{1,9}))?"
)
CUT = ("looped", "chunked")
"""Kinds that may have copies of the cell, or steps of a block, in each pass."""


@dataclass(frozen=True)
class LoweredPart:
    """A part of a form: `fused`, `given`, or so many of one kind."""

    kind: str
    count: int = 0
    copies: int = 0
    """Copies of the cell, or steps, in each pass; 0 where the form says none."""


@dataclass(frozen=True)
class LoweredForm:
    """`fused`, `looped n`, `looped n of k`, `unrolled n`, `parallel n`, `chunked n of k`, `chunked n`, or several of
    these; `given`, of a model file without any."""

    fused: bool
    loops: int
    """Number of loops."""
    copies: int
    """Copies of the cell outside of loops."""


def lowered_parts(text: str) -> tuple[LoweredPart, ...] | None:
    """The parts of the form that a text says; None where it is not of the vocabulary."""
    parts = []
    for part in text.split(" + "):
        match = _PART.fullmatch(part)
        if match is None or (match["copies"] and match["kind"] not in CUT):
            return None
        parts.append(LoweredPart(match["whole"] or match["kind"], int(match["count"] or 0), int(match["copies"] or 0)))
    return tuple(parts)


def parse_lowered(text: str) -> LoweredForm | None:
    """The form that a text says; None where it is not of the vocabulary."""
    parts = lowered_parts(text)
    if parts is None:
        return None
    return LoweredForm(
        fused=any(part.kind == "fused" for part in parts),
        loops=sum(part.count for part in parts if part.kind == "looped" or part.copies),
        copies=sum(part.count for part in parts if part.kind == "unrolled"),
    )


def is_lowered_form(text: str) -> bool:
    """Whether a text is of the vocabulary."""
    return lowered_parts(text) is not None
