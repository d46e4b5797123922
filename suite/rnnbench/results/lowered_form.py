"""The vocabulary of `Artifact.lowered`: what form a compiled program has."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(
    r"fused|given|(?P<kind>looped|unrolled|parallel|chunked) (?P<count>\d{1,9})(?: of (?P<copies>\d{1,9}))?"
)


@dataclass(frozen=True)
class LoweredForm:
    """`fused`, `looped n`, `looped n of k`, `unrolled n`, `parallel n`, `chunked n of k`, `chunked n`, or several of
    these; `given`, of a model file without any."""

    fused: bool
    loops: int
    """Number of loops."""
    copies: int
    """Copies of the cell outside of loops."""
    looped_copies: int
    """Copies of the cell in all loops."""
    at_once: int = 0
    """Scans, and blocks, that run many steps at once, in loops and outside of them."""


def parse_lowered(text: str) -> LoweredForm | None:
    """The form that a text says; None where it is not of the vocabulary."""
    fused, loops, copies, looped_copies, at_once = False, 0, 0, 0, 0
    for part in text.split(" + "):
        match = _PART.fullmatch(part)
        if match is None or (match["copies"] and match["kind"] not in ("looped", "chunked")):
            return None
        count = int(match["count"] or 0)
        if match["kind"] == "unrolled":
            copies += count
        elif match["kind"] == "looped":
            loops += count
            looped_copies += count * int(match["copies"] or 1)
        elif match["kind"]:
            at_once += count
            loops += count if match["copies"] else 0
        elif part == "fused":
            fused = True
    return LoweredForm(fused, loops, copies, looped_copies, at_once)


def is_lowered_form(text: str) -> bool:
    """Whether a text is of the vocabulary."""
    return parse_lowered(text) is not None
