"""Errors of a file that people write: problems, each with its place, what was expected and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

SHOWN = 20
"""Most problems that the text of a FileError lists. Where there are more, it says how many there are."""


@dataclass(frozen=True)
class Place:
    """Where a problem is: a line and column of a file (from 1), a whole file, an option as it was typed, or a key."""

    source: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. Its text is `file:line:column: message`."""

    place: Place
    message: str

    def __str__(self) -> str:
        place = str(self.place)
        names_its_place = self.message.startswith((f"{place}:", f"{place}.", f"{place}["))
        text = self.message if names_its_place else f"{place}: {self.message}"
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


class FileError(ValueError):
    """A file cannot be used. Its text has a line for each problem, in the file's order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        in_order = sorted(problems, key=lambda problem: (problem.place.line or 0, problem.place.column or 0))
        self.problems = tuple(dict.fromkeys(in_order))
        super().__init__(self.problems)

    @classmethod
    def at(cls, place: Place, message: str) -> Self:
        return cls([Problem(place, message)])

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            lines.append(f"… and others: {SHOWN} of {len(self.problems)} problems are shown")
        return "\n".join(lines)
