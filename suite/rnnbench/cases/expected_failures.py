"""Expected failures: the entries of `expectations.yaml` beside the cases, with reasons and upstream issues.

An entry describes trials by backend, versions, route and any keys of a case, and names the checks or the outcome with
which they fail. A trial that it describes must fail in this way. If it passes, the entry is out of date, which is an
error.

An entry with `contains` describes trials of users' model files with certain traits (`Network.traits`). Such a trial may
pass, since the fault may depend on the numbers in the file.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, get_args

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import Field, StrictBool, TypeAdapter, ValidationError, WithJsonSchema, create_model

from rnnbench.cases.case import Case
from rnnbench.cases.errors import CASE, CaseError, Place, Problem
from rnnbench.cases.expand import scalar
from rnnbench.cases.schema import LEAVES, SECTIONS, Axis, Generator, Section, axis_of
from rnnbench.cases.selection import texts_of
from rnnbench.cases.trial import Trial
from rnnbench.measure import processor_features
from rnnbench.model_files import TRAITS
from rnnbench.outside_text import safe_text
from rnnbench.results import version_of
from rnnbench.spelling import did_you_mean, hint
from rnnbench.yaml_files import KeyPath, Source, problems_of, read_source

MAX_ENTRIES = 1_000

_COMPARISON = r"^(<=|>=|<|>) ?([0-9]{1,15}(\.[0-9]{1,15})?)$"
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Comparison = Annotated[
    str,
    Field(pattern=_COMPARISON),
    WithJsonSchema({"type": "string", "pattern": _COMPARISON, "title": "a comparison such as '> 1'"}),
]
_WORD = r"^[a-z0-9][a-z0-9_.-]{0,63}$"
Word = Annotated[
    str,
    Field(pattern=_WORD),
    WithJsonSchema({"type": "string", "pattern": _WORD, "title": "a name in lower-case letters, digits, '_' and '-'"}),
]
Outcome = Literal["build-failed", "run-failed", "crashed", "timed-out", "out-of-memory"]
"""The outcomes of an entry. Wrong numbers have no outcome here: the entry names the checks that find them."""
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
    """The section `where:`, with all keys of a case that make trials. Keys of numbers also take comparisons."""
    fields: dict[str, Any] = {}
    for leaf, section in LEAVES.items():
        field = SECTIONS[section].model_fields[leaf]
        (kind, *_) = get_args(field.annotation)
        kinds = axis_of(kind | Comparison) if _takes_numbers(kind) else axis_of(kind)
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
    """An expected failure."""

    backend: Word = Field(description="Name of the backend.")
    version: dict[str, Annotated[str, Field(max_length=200)]] = Field(
        default={}, description="Ranges of versions (PEP 440), by distribution, in which it fails; without it, all."
    )
    route: Axis[Word] = Field(default=(), description="Routes on which it fails; without it, all.")
    where: Where = Field(default=Where(), description="Keys of the trials that fail, with their values.")  # type: ignore[valid-type]
    contains: Axis[Word] = Field(
        default=(),
        description="What the model file has, all of it, by the names of docs/upstream/README.md. It may pass then.",
    )
    processor: dict[Word, StrictBool] = Field(
        default={}, description="Features of the processor, by the kernel's names: whether it has each."
    )
    check: Axis[Word] = Field(default=(), description="Checks that fail: each of them, on every trial described.")
    also: Axis[Word] = Field(
        default=(),
        description="Checks that may fail for the same reason, or pass. `numbers`: all that compare numbers.",
    )
    outcome: Outcome | None = Field(default=None, description="How the trials end, where they get no verdict.")
    stage: Axis[Word] = Field(default=(), description="With `contains` and `outcome`: the stages at which it ends.")
    says: Axis[Text] = Field(
        default=(), description="With `contains` and `outcome`: texts of which the reason of the failure has one."
    )
    reason: Text = Field(description="What is wrong, in a sentence.")
    upstream: Url = Field(
        description="The upstream issue, or the page that tells of the fault where there is none yet."
    )


class ExpectedFailuresFile(Section):
    """Expected failures of rnnbench's backends."""

    schema_: Annotated[int, Field(ge=1, le=1), WithJsonSchema({"const": 1})] = Field(
        alias="schema", description="Version of this format."
    )
    expectations: Annotated[list[EntrySection], Field(max_length=MAX_ENTRIES)] = Field(
        description="The expected failures."
    )


class KnownBackend(Protocol):
    """The parts of a backend's `Probe` that entries are compared with."""

    @property
    def available(self) -> bool:
        """Whether the backend is installed. If not, its versions may be incomplete."""
        ...

    @property
    def routes(self) -> Collection[str]: ...
    @property
    def versions(self) -> Mapping[str, str]:
        """Versions by distribution."""
        ...


@dataclass(frozen=True)
class ExpectedFailure:
    """One expected failure. The fields are the keys of an entry in `expectations.yaml`, and its place."""

    place: str
    """The place of the entry: `file:line:column`."""
    backend: str
    version: Mapping[str, str]
    route: tuple[str, ...]
    where: Mapping[str, tuple[str, ...]]
    """The values of each key, as texts. A comparison is kept as it was written."""
    check: tuple[str, ...]
    also: tuple[str, ...]
    outcome: str | None
    reason: str
    upstream: str
    contains: tuple[str, ...] = ()
    stage: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    processor: Mapping[str, bool] = field(default_factory=dict)

    def describes(self, trial: Trial, versions: Mapping[str, str]) -> bool:
        """Whether this trial is expected to fail on this machine, given the installed versions by distribution."""
        return (
            trial.target.backend == self.backend
            and (not self.route or trial.target.route in self.route)
            and all(
                (version := version_of(name, versions)) is not None
                and SpecifierSet(within).contains(version, prereleases=True)
                for name, within in self.version.items()
            )
            and all(any(_has(trial, leaf, text) for text in texts) for leaf, texts in self.where.items())
            and trial.model.traits.keys() >= {*self.contains}
            and all((name in processor_features()) is has for name, has in self.processor.items())
        )

    def unknown_names(self, backend: KnownBackend) -> Iterator[str]:
        """A sentence for each route and distribution that its backend does not have; none if it is not installed."""
        if not backend.available:
            return
        for route in self.route:
            if route not in backend.routes:
                yield f"{self.backend} has no route '{route}'; {hint(route, sorted(backend.routes))}"
        for name in self.version:
            if version_of(name, backend.versions) is None:
                yield f"{self.backend} tells no version of '{name}'; {hint(name, sorted(backend.versions))}"


def expected_failures_of(
    trial: Trial, versions: Mapping[str, str], expected_failures: Iterable[ExpectedFailure]
) -> tuple[ExpectedFailure, ...]:
    """The expected failures that describe a trial, given the versions of its backend's packages."""
    return tuple(failure for failure in expected_failures if failure.describes(trial, versions))


def expected_failures_for(
    cases: Iterable[Case],
    backends: Mapping[str, KnownBackend],
    check_names: Mapping[str, Sequence[str]],
    file: Path | None = None,
    *,
    names: Collection[str],
) -> dict[str, tuple[ExpectedFailure, ...]]:
    """The expected failures of some backends, by the name of the case. Each file is read once.

    - `backends`: the backends of the trials, by name. Entries of other backends are left out. A backend that is not
      installed here may be installed in a trial's own environment.
    - `check_names`: the checks that each name stands for.
    - `file`: the file of entries; None means each case's own `expected_failures_file`.
    - `names`: the backends that there are. An entry of another one is a mistake where its name is near one of these.
      Else it is of a package that other machines have.

    Raises CaseError if a file cannot be used, or if an entry names an unknown check, misspells a backend, or has a
    route or distribution that its installed backend does not have.
    """
    entries: dict[Path, tuple[ExpectedFailure, ...]] = {}
    by_case: dict[str, tuple[ExpectedFailure, ...]] = {}
    for case in cases:
        path = file or case.expected_failures_file
        if path is not None and path not in entries:
            entries[path] = _entries_of(path, backends, check_names, names)
        by_case[case.name] = entries[path] if path is not None else ()
    return by_case


def _entries_of(
    path: Path, backends: Mapping[str, KnownBackend], check_names: Mapping[str, Sequence[str]], names: Collection[str]
) -> tuple[ExpectedFailure, ...]:
    every_entry = read_expected_failures(Path(os.path.relpath(path)), check_names)
    entries = tuple(entry for entry in every_entry if entry.backend in backends)
    problems = [
        Problem(Place(entry.place), f"there is no backend '{entry.backend}'; {near}")
        for entry in every_entry
        if entry.backend not in names and (near := did_you_mean(entry.backend, sorted(names)))
    ]
    problems += [
        Problem(Place(entry.place), sentence)
        for entry in entries
        for sentence in entry.unknown_names(backends[entry.backend])
    ]
    if problems:
        raise CaseError(problems)
    return entries


def read_expected_failures(path: Path, check_names: Mapping[str, Sequence[str]]) -> tuple[ExpectedFailure, ...]:
    """The entries of a file. Raises CaseError with every problem and its place.

    `check_names` has all names that an entry may use, with the checks that each stands for. A name of several checks is
    allowed in `also` only: a program that is wrong in some calls passes some of these checks.
    """
    source = read_source(path, CASE)
    try:
        file = ExpectedFailuresFile.model_validate(source.data)
    except ValidationError as error:
        raise CaseError(problems_of(error, source, _schema())) from error
    problems = [
        problem
        for index, entry in enumerate(file.expectations)
        for problem in _problems(entry, ("expectations", index), source, check_names)
    ]
    if problems:
        raise CaseError(problems)
    return tuple(
        _expected_failure(entry, source.place(("expectations", index)), check_names)
        for index, entry in enumerate(file.expectations)
    )


def _problems(
    entry: EntrySection, path: KeyPath, source: Source, check_names: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    yield from _problems_of_keys(entry, path, source)
    yield from _problems_of_names(entry, path, source, check_names)
    for name, text in entry.version.items():
        try:
            SpecifierSet(text)
        except InvalidSpecifier:
            message = f"expected a range of versions such as '>=2026.4,<2027', got '{text}'"
            yield source.problem((*path, "version", name), message)


def _problems_of_keys(entry: EntrySection, path: KeyPath, source: Source) -> Iterator[Problem]:
    """Keys that do not go together."""
    fails = entry.also if entry.contains else entry.check
    if entry.contains and entry.check:
        yield source.problem((*path, "check"), "write also: such a file may pass")
    elif bool(fails) == (entry.outcome is not None):
        yield source.problem(path, "expected either check or outcome: what fails there")
    for key in ("stage", "says"):
        if getattr(entry, key) and (not entry.contains or entry.outcome is None):
            yield source.problem((*path, key), "goes with contains and outcome only")
    if entry.also and not entry.check and not entry.contains:
        yield source.problem((*path, "also"), "goes with check only")


def _problems_of_names(
    entry: EntrySection, path: KeyPath, source: Source, check_names: Mapping[str, Sequence[str]]
) -> Iterator[Problem]:
    """Names of traits and checks that do not exist."""
    for name in entry.contains:
        if name not in TRAITS:
            message = f"no file is known to have '{name}'; {hint(name, sorted(TRAITS))}"
            yield source.problem((*path, "contains"), message)
    single = [name for name, checks in check_names.items() if tuple(checks) == (name,)]
    for key, known in (("check", single), ("also", check_names)):
        for name in getattr(entry, key):
            if name not in known:
                yield source.problem((*path, key), f"there is no check '{name}'; {hint(name, sorted(known))}")


def _expected_failure(entry: EntrySection, place: Place, check_names: Mapping[str, Sequence[str]]) -> ExpectedFailure:
    written = entry.where.model_dump(exclude_unset=True)  # type: ignore[attr-defined]
    return ExpectedFailure(
        place=safe_text(str(place)),
        backend=entry.backend,
        version=dict(entry.version),
        route=tuple(entry.route),
        where={leaf: tuple(scalar(value) for value in values) for leaf, values in written.items()},
        check=tuple(entry.check),
        also=tuple(dict.fromkeys(check for name in entry.also for check in check_names[name])),
        outcome=entry.outcome,
        reason=entry.reason,
        upstream=entry.upstream,
        contains=tuple(entry.contains),
        stage=tuple(entry.stage),
        says=tuple(entry.says),
        processor=dict(entry.processor),
    )


def _has(trial: Trial, leaf: str, text: str) -> bool:
    """Whether a trial has this value, or a number for which this comparison is true. null has no comparison."""
    texts = texts_of(trial, leaf)
    if not (comparison := re.match(_COMPARISON, text)):
        return text in texts
    numbers = [float(text) for text in texts if text not in ("all", "null")]
    return any(_OPERATORS[comparison[1]](number, float(comparison[2])) for number in numbers)


@cache
def _schema() -> dict[str, Any]:
    return ExpectedFailuresFile.model_json_schema(schema_generator=Generator)
