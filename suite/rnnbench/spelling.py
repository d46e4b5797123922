"""Words of messages: numbers with their noun, and what is said beside a name that is not known."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

MOST_NAMES = 40
"""Most names that a message lists; of more, it has the nearest ones."""
NEAREST_NAMES = 5
FEW = 5
"""Sentences of one kind that are told one by one."""
_SHORT = 3
"""Letters of a word of which one in three makes another word."""


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 trial`, `2 trials`, `20,000 trials`. `plural` is that of a noun which does not only take an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def percents(share: float, sign: str = "") -> str:
    """`3.1 %` of 0.031, `339 %` of 3.394: a decimal below 100 %. With the sign `+`, `+3.1 %`. No zero has a minus."""
    figure = 100 * share
    return f"{figure:{sign}z.{0 if abs(figure) >= 99.95 else 1}f} %"


def listed(names: Sequence[str], most: int) -> str:
    """`a, b and 3 more`: the first names, `most` of them at most, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def first_few(sentences: Sequence[str], others: Callable[[int], str]) -> tuple[str, ...]:
    """The first FEW sentences, and one about all `others`, which is given their number."""
    more = len(sentences) - FEW
    return (*sentences[:FEW], *((others(more),) if more > 0 else ()))


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """`did you mean 'hidden'?`; empty where no name is near.

    A short word with another first letter is another word: gpu is not cpu.
    """
    begins = word[:1].lower() if len(word) <= _SHORT else ""
    near = get_close_matches(word, [name for name in names if name.lower().startswith(begins)], n=1)
    return f"did you mean '{near[0]}'?" if near else ""


def hint(word: str, names: Iterable[str]) -> str:
    """`did you mean 'hidden'?`; all names where none is near, or the nearest ones of many."""
    known = list(names)
    if near := did_you_mean(word, known):
        return near
    if len(known) <= MOST_NAMES:
        return f"expected one of {', '.join(known)}"
    with_word = (name for name in known if word and word.lower() in name.lower())
    nearest = dict.fromkeys([*with_word, *get_close_matches(word.lower(), known, n=NEAREST_NAMES, cutoff=0)])
    return f"the nearest of {len(known)} names are {', '.join(list(nearest)[:NEAREST_NAMES])}"


def absent(path: Path) -> str:
    """What is said of a path at which there is no file: where a link leads, or the name beside it that may be meant."""
    if os.path.islink(path):
        return f"is a link to {os.readlink(path)}, which does not exist; correct the link"
    return f"does not exist; {near_path(path) or 'correct its path'}"


def near_path(path: Path) -> str:
    """`did you mean 'model.onnx'?`, of what lies beside an absent file or folder; empty where no name is near.

    The part before the suffix has to be near too: all files with one suffix have that much in common.
    """
    try:
        names = os.listdir(path.parent)
    except (OSError, ValueError):
        names = []
    return did_you_mean(path.name, (name for name in names if get_close_matches(path.stem, [Path(name).stem])))
