"""Expanding a case's axes and patterns into candidate points. Every mistake is reported with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rnnbench.cases.errors import CaseError, Problem
from rnnbench.cases.matrix import (
    Axes,
    Candidate,
    Pattern,
    Value,
    identity,
    matches,
    product,
    size,
    unmatched,
    without,
)
from rnnbench.cases.schema import LEAVES, CaseFile
from rnnbench.yaml_files import KeyPath, Source


@dataclass(frozen=True)
class Expansion:
    """The candidates of a case. `stale` has the entries of `matrix` that do nothing, each with a sentence.

    A stale entry is a mistake, unless a `--set` made it stale.
    """

    axes: Axes
    candidates: list[Candidate] = field(default_factory=list)
    stale: dict[KeyPath, str] = field(default_factory=dict)


def expand(file: CaseFile, source: Source, max_trials: int) -> Expansion:
    """The product of the axes without the excluded points, and the included points.

    Raises CaseError for mistakes, and for more than `max_trials` points, before they are made.
    """
    axes = file.axes()
    excluded = [entry.model_dump(exclude_unset=True) for entry in file.matrix.exclude]  # type: ignore[attr-defined]
    included = [entry.model_dump(exclude_unset=True) for entry in file.matrix.include]  # type: ignore[attr-defined]
    if problems := list(_list_problems(axes, excluded, included, source)):
        raise CaseError(problems)
    _refuse_size(axes, included, max_trials, source)
    points = list(product(axes))
    expansion = Expansion(axes)
    for index, pattern in enumerate(excluded):
        expansion.stale.update(_stale_exclude(pattern, ("matrix", "exclude", index), axes, points, source))
    expansion.candidates.extend(without(points, excluded))
    _include(included, expansion)
    return expansion


def leaf_path(candidate: Candidate, leaf: str, source: Source) -> KeyPath:
    """The key path of the value that a candidate has for a leaf."""
    path: KeyPath = ("matrix", "include", candidate.added or 0, leaf)
    if candidate.added is None or path not in source.values:
        path = (LEAVES[leaf], leaf)
    written = source.at(path)
    return (*path, written.index(candidate.written[leaf])) if isinstance(written, list) else path


def flow(values: Mapping[str, Value]) -> str:
    """Values as a line of YAML: `{hidden: 512, bias: false}`."""
    return "{" + ", ".join(f"{leaf}: {scalar(value)}" for leaf, value in values.items()) + "}"


def scalar(value: Value) -> str:
    """A value as YAML writes it. A whole float loses its `.0`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _list_problems(
    axes: Axes, excluded: Sequence[Pattern], included: Sequence[Pattern], source: Source
) -> Iterator[Problem]:
    """The mistakes in lists of values, in axes and in patterns."""
    for leaf, values in axes.items():
        yield from _value_problems(values, (LEAVES[leaf], leaf), source)
    if "all" in axes["chunk"] and len(axes["chunk"]) > 1 and set(axes["steps"]) <= set(axes["chunk"]):
        path = ("workload", "chunk", axes["chunk"].index("all"))
        steps = ", ".join(scalar(value) for value in axes["steps"])
        yield source.problem(path, f"all is the workload's steps, and {steps} is in this axis already; remove one")
    several = [leaf for leaf, values in axes.items() if len(values) > 1]
    for name, patterns in (("exclude", excluded), ("include", included)):
        for index, pattern in enumerate(patterns):
            entry = ("matrix", name, index)
            if not pattern:
                yield source.problem(entry, "expected at least one key, as in {hidden: 512}")
            for leaf, values in pattern.items():
                yield from _value_problems(values, (*entry, leaf), source)
            missing = [leaf for leaf in several if leaf not in pattern]
            if name == "include" and pattern and missing:
                yield source.problem(entry, f"expected a value for every axis of the case; add {', '.join(missing)}")


def _value_problems(values: Sequence[Value], path: KeyPath, source: Source) -> Iterator[Problem]:
    if not values:
        yield source.problem(path, "expected at least one value, got an empty list")
    seen = set()
    for index, value in enumerate(values):
        if value in seen:
            yield source.problem((*path, index), f"{scalar(value)} is in this list twice; remove one")
        seen.add(value)


def _refuse_size(axes: Axes, included: Sequence[Pattern], max_trials: int, source: Source) -> None:
    added = sum(size(pattern) for pattern in included)
    total = size(axes) + added
    if total <= max_trials:
        return
    lengths = {leaf: len(values) for leaf, values in axes.items() if len(values) > 1}
    factors = " × ".join(f"{leaf} {count:,}" for leaf, count in lengths.items()) or "1"
    plus = f" + {added:,} included" if added else ""
    longest = max(lengths, key=lambda leaf: lengths[leaf], default=None)
    path: KeyPath = (LEAVES[longest], longest) if longest and size(axes) > added else ("matrix", "include")
    raise CaseError.at(
        source.place(path),
        f"the matrix has {total:,} points ({factors}{plus}), and at most {max_trials:,} are allowed; "
        "shorten an axis or raise --max-trials",
    )


def _stale_exclude(
    pattern: Pattern, path: KeyPath, axes: Axes, points: Sequence[Candidate], source: Source
) -> dict[KeyPath, str]:
    """The reasons why a pattern matches no point: an axis lacks a value, or no point has all of its values."""
    stale = {}
    for leaf, index in unmatched(pattern, axes):
        place = (*path, leaf, index) if isinstance(source.at((*path, leaf)), list) else (*path, leaf)
        existing, value = ", ".join(scalar(value) for value in axes[leaf]), scalar(pattern[leaf][index])
        stale[place] = f"{leaf} is never {value} in this case, only {existing}; correct it"
    if not stale and not any(matches(pattern, point.values) for point in points):
        stale[path] = "no point has all of these values; correct or remove it"
    return stale


def _include(patterns: Sequence[Pattern], expansion: Expansion) -> None:
    """Add the points of each entry. An existing point is not added again, and makes its entry stale."""
    present = {identity(candidate.values) for candidate in expansion.candidates}
    for index, pattern in enumerate(patterns):
        path: KeyPath = ("matrix", "include", index)
        for candidate in product({leaf: pattern.get(leaf, values) for leaf, values in expansion.axes.items()}):
            if (key := identity(candidate.values)) in present:
                repeated = flow({leaf: candidate.written[leaf] for leaf in pattern})
                expansion.stale[path] = f"the point {repeated} is there already; remove it"
            else:
                present.add(key)
                expansion.candidates.append(replace(candidate, added=index))
