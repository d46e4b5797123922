"""States that are proposed by the order of inputs and outputs, where nothing says them for certain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from rnnbench.model_files.description import ArrayDescription, FileDescription, option

LAST_OF_BOTH = "If the states come last, in the same order"
"""What is said of the proposals of `last_of_both`."""


def with_proposals(description: FileDescription, ways: Iterable[Mapping[str, str]], why: str) -> FileDescription:
    """The description, whose first question of a state has these ways to answer it, ready for `--set`.

    Where some state was found, nothing is proposed: the order of the others is not known.
    """
    proposals = [" ".join(option(f"state.{before}={after}") for before, after in way.items()) for way in ways]
    first = next((place for place, question in enumerate(description.questions) if question.key == "state"), None)
    if first is None or not proposals or description.state:
        return description
    question = description.questions[first]
    mended = replace(question, text=f"{question.text} {why}: {', or '.join(proposals)}.")
    return replace(description, questions=(*description.questions[:first], mended, *description.questions[first + 1 :]))


def last_of_both(description: FileDescription) -> Iterator[dict[str, str]]:
    """The most of the last inputs that have the shapes and types of as many last outputs, as of `net(x, h, c)` that
    gives `(y, h, c)`."""
    inputs, outputs = description.of_role("input", "constant"), description.of_role("output")
    most = 0
    while most < min(len(inputs), len(outputs)) - 1 and _alike(inputs[-1 - most], outputs[-1 - most]):
        most += 1
    if most:
        yield {before.name: after.name for before, after in zip(inputs[-most:], outputs[-most:], strict=True)}


def _alike(before: ArrayDescription, after: ArrayDescription) -> bool:
    same = (before.shape, before.dtype) == (after.shape, after.dtype)
    return same and before.shape is not None and before.name != after.name
