"""What a message says beside a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """`did you mean 'hidden'?`; empty where no name is near."""
    near = get_close_matches(word, list(names), n=1)
    return f"did you mean '{near[0]}'?" if near else ""


def hint(word: str, names: Iterable[str]) -> str:
    """`did you mean 'hidden'?`; all names where none is near."""
    known = list(names)
    return did_you_mean(word, known) or f"expected one of {', '.join(known)}"
