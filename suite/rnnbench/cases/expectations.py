"""Known failures: `expectations.yaml` beside the cases says what fails, where, why, and where upstream knows of it.

An entry describes trials by backend, versions, route and any keys of a case, and names what fails there: checks, or an
outcome. What stands in it must fail; an entry whose trials pass is out of date, and that is told.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import Field, TypeAdapter, ValidationError, WithJsonSchema, create_model

from rnnbench.cases import schema_errors
from rnnbench.cases.errors import CaseError, Place, Problem, hint
from rnnbench.cases.expand import scalar
from rnnbench.cases.schema import LEAVES, SECTIONS, Axis, Generator, Section, axis_of
from rnnbench.cases.select import texts_of
from rnnbench.cases.trial import Trial
from rnnbench.cases.yaml_source import KeyPath, Source, dotted, read_source

FILE = "expectations.yaml"
MAX_ENTRIES = 1_000

_COMPARED = r"^(<=|>=|<|>) ?([0-9]{1,15}(\.[0-9]{1,15})?)$"
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Compared = Annotated[
    str,
    Field(pattern=_COMPARED),
    WithJsonSchema({"type": "string", "pattern": _COMPARED, "title": "a comparison such as '> 1'"}),
]
_WORD = r"^[a-z0-9][a-z0-9_.-]{0,63}$"
Word = Annotated[
    str,
    Field(pattern=_WORD),
    WithJsonSchema({"type": "string", "pattern": _WORD, "title": "a name in lower-case letters, digits, '_' and '-'"}),
]
Outcome = Literal["build-failed", "run-failed", "crashed", "timed-out", "out-of-memory"]
"""A number that is wrong is named by the checks that find it."""
Text = Annotated[
    str,
    Field(min_length=1, max_length=1_000),
    WithJsonSchema({"type": "string", "title": "a text of 1 to 1,000 characters"}),
]
Url = Annotated[
    str,
    Field(pattern=r"^https://\S+$", max_length=300),
    WithJsonSchema({"type": "string", "pattern": r"^https://\S+$", "title": "an address that begins with https://"}),
]


def _where() -> type[Section]:
    """Any key of a case that makes trials, bare; where its values are numbers, a comparison too."""
    fields: dict[str, Any] = {}
    for leaf, section in LEAVES.items():
        field = SECTIONS[section].model_fields[leaf]
        (kind, *_) = get_args(field.annotation)
        kinds = axis_of(kind | Compared) if _takes_numbers(kind) else axis_of(kind)
        fields[leaf] = (kinds, Field(default=(), description=field.description))
    return create_model(
        "Where", __base__=Section, __doc__="Trials that have, for each key, one of its values.", **fields
    )


def _takes_numbers(kind: Any) -> bool:
    try:
        TypeAdapter(kind).validate_python(1, strict=True)
    except ValidationError:
        return False
    return True


Where = _where()


class EntrySection(Section):
    """A known failure."""

    backend: Word = Field(description="Name of the backend.")
    version: dict[str, Annotated[str, Field(max_length=200)]] = Field(
        default={}, description="Ranges of versions (PEP 440), by distribution, in which it fails; without it, all."
    )
    route: Axis[Word] = Field(default=(), description="Routes on which it fails; without it, all.")
    where: Where = Field(default=Where(), description="Keys of the trials that fail, with their values.")  # type: ignore[valid-type]
    check: Axis[Word] = Field(default=(), description="Checks that fail: each of them, on every trial described.")
    also: Axis[Word] = Field(default=(), description="Checks that may fail for the same reason, or pass.")
    outcome: Outcome | None = Field(default=None, description="How the trials end, where they get no verdict.")
    reason: Text = Field(description="What is wrong, in a sentence.")
    upstream: Url = Field(
        description="The upstream issue, or the page that tells of the fault where there is none yet."
    )


class ExpectationsFile(Section):
    """Known failures of rnnbench's backends."""

    schema_: Annotated[int, Field(ge=1, le=1), WithJsonSchema({"const": 1})] = Field(
        alias="schema", description="Version of this format."
    )
    expectations: Annotated[list[EntrySection], Field(max_length=MAX_ENTRIES)] = Field(
        description="The failures that are known."
    )


@dataclass(frozen=True)
class Expectation:
    """One known failure."""

    place: str
    """Where it is written: `file:line:column`."""
    backend: str
    version: Mapping[str, str]
    route: tuple[str, ...]
    where: Mapping[str, tuple[str, ...]]
    """Values by key, as texts; a comparison as it was written."""
    check: tuple[str, ...]
    also: tuple[str, ...]
    outcome: str | None
    reason: str
    upstream: str

    def describes(self, trial: Trial, versions: Mapping[str, str]) -> bool:
        """Whether this trial is one of those that fail, with what is installed: versions by distribution."""
        return (
            trial.target.backend == self.backend
            and (not self.route or trial.target.route in self.route)
            and all(
                name in versions and SpecifierSet(within).contains(versions[name], prereleases=True)
                for name, within in self.version.items()
            )
            and all(any(_has(trial, leaf, wanted) for wanted in values) for leaf, values in self.where.items())
        )

    def mistakes(self, routes: Collection[str], distributions: Collection[str]) -> Iterator[str]:
        """What it names that its backend, which is here, does not have."""
        for route in self.route:
            if route not in routes:
                yield f"{self.backend} has no route '{route}'; {hint(route, sorted(routes))}"
        for name in self.version:
            if name not in distributions:
                yield f"{self.backend} tells no version of '{name}'; {hint(name, sorted(distributions))}"


def expected(trial: Trial, versions: Mapping[str, str], expectations: Sequence[Expectation]) -> tuple[Expectation, ...]:
    """The known failures that describe a trial, given the versions that its backend's probe tells."""
    return tuple(entry for entry in expectations if entry.describes(trial, versions))


def nearest(case: Path) -> Path | None:
    """The expectations that hold for a case: the file beside it, or in the nearest folder above."""
    folders = case.resolve().parents
    return next((folder / FILE for folder in folders if (folder / FILE).is_file()), None)


def read_expectations(path: Path, checks: Collection[str]) -> tuple[Expectation, ...]:
    """The entries of a file; `checks` are the names there are. Raises CaseError with every problem and its place."""
    source = read_source(path)
    try:
        file = ExpectationsFile.model_validate(source.data)
    except ValidationError as error:
        raise CaseError(schema_errors.problems(error, source, _schema())) from error
    problems = [
        problem
        for index, entry in enumerate(file.expectations)
        for problem in _problems(entry, ("expectations", index), source, checks)
    ]
    if problems:
        raise CaseError(problems)
    return tuple(
        _expectation(entry, source.place(("expectations", index))) for index, entry in enumerate(file.expectations)
    )


def _problems(entry: EntrySection, path: KeyPath, source: Source, checks: Collection[str]) -> Iterator[Problem]:
    if bool(entry.check) == (entry.outcome is not None):
        yield Problem(source.place(path), f"{dotted(path)}: expected either check or outcome: what fails there")
    if entry.also and not entry.check:
        yield Problem(source.place((*path, "also")), f"{dotted((*path, 'also'))}: goes with check only")
    for key in ("check", "also"):
        for name in getattr(entry, key):
            if name not in checks:
                message = f"{dotted((*path, key))}: there is no check '{name}'; {hint(name, sorted(checks))}"
                yield Problem(source.place((*path, key)), message)
    for name, text in entry.version.items():
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            place = (*path, "version", name)
            yield Problem(
                source.place(place),
                f"{dotted(place)}: expected a range of versions such as '>=2026.4,<2027', got '{text}'",
            )


def _expectation(entry: EntrySection, place: Place) -> Expectation:
    written = entry.where.model_dump(exclude_unset=True)  # type: ignore[attr-defined]
    return Expectation(
        place=str(place),
        backend=entry.backend,
        version=dict(entry.version),
        route=tuple(entry.route),
        where={leaf: tuple(scalar(value) for value in values) for leaf, values in written.items()},
        check=tuple(entry.check),
        also=tuple(entry.also),
        outcome=entry.outcome,
        reason=entry.reason,
        upstream=entry.upstream,
    )


def _has(trial: Trial, leaf: str, wanted: str) -> bool:
    """Whether a trial has a value, or one that compares so; what is not set compares with nothing."""
    texts = texts_of(trial, leaf)
    if not (compared := re.match(_COMPARED, wanted)):
        return wanted in texts
    numbers = [float(text) for text in texts if text not in ("all", "null")]
    return any(_COMPARE[compared[1]](number, float(compared[2])) for number in numbers)


@cache
def _schema() -> dict[str, Any]:
    return ExpectationsFile.model_json_schema(schema_generator=Generator)
