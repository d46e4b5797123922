"""A case file, with what the command line sets in it, to a checked Case; all that is wrong is told at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from rnnbench.cases import schema_errors
from rnnbench.cases.case import Case, Point
from rnnbench.cases.errors import CaseError, Problem
from rnnbench.cases.expand import Expansion, expand, flow, leaf_path
from rnnbench.cases.matrix import MAX_TRIALS, Candidate, Value
from rnnbench.cases.overrides import override
from rnnbench.cases.points import Fault, faults, model_of
from rnnbench.cases.schema import LEAVES, CaseFile
from rnnbench.cases.trial import Limits, Measure, Strategy, paths
from rnnbench.cases.yaml_source import KeyPath, Source, dotted, read_source
from rnnbench.rnn.spec import Model

PACED_CALLS = 4
"""Fewest calls of a paced stream in each process for which there must be time in the budget."""


def load_case(path: str | Path, overrides: Sequence[str] = (), max_trials: int = MAX_TRIALS) -> Case:
    """The case in a file, with `section.key=value` overrides. Raises CaseError with every problem and its place."""
    written = read_source(Path(path))
    source = override(written, overrides) if overrides else written
    file = _validated(source)
    expansion = expand(file, source, max_trials)
    problems = list(_stale(expansion, source, written if overrides else None, max_trials))
    if not expansion.candidates:
        problems.append(
            Problem(source.key_place(("matrix", "exclude")), "matrix.exclude: no point is left; drop fewer")
        )
    points, faulty = _points(expansion, source)
    problems += [*_limit_problems(file, source), *faulty]
    if problems:
        raise CaseError(problems)
    return Case(
        path=str(path),
        name=file.name,
        description=file.description,
        points=tuple(points),
        limits=Limits(**file.limits.model_dump(exclude={"endurance"})),
        measure=Measure(**file.measure.model_dump()),
        endurance=file.limits.endurance,
    )


def _validated(source: Source) -> CaseFile:
    try:
        return CaseFile.model_validate(source.data)
    except ValidationError as error:
        raise CaseError(schema_errors.problems(error, source)) from error


def _stale(expansion: Expansion, source: Source, file: Source | None, max_trials: int) -> Iterator[Problem]:
    """Entries of `matrix` that do nothing. With overrides, only those that did nothing in the `file` as it stands."""
    if not expansion.stale:
        return
    before = set(expansion.stale) if file is None else _stale_as_written(file, max_trials)
    for path, message in expansion.stale.items():
        place = source.place(path)
        if place.line is None or path in before:
            yield Problem(place, message)


def _stale_as_written(file: Source, max_trials: int) -> set[KeyPath]:
    """None where the file is not even valid without its overrides."""
    try:
        return set(expand(_validated(file), file, max_trials).stale)
    except CaseError:
        return set()


def _limit_problems(file: CaseFile, source: Source) -> Iterator[Problem]:
    limits, budget, period = file.limits, file.measure.budget, file.measure.period
    if limits.build > limits.trial:
        place = source.place(("limits", "build"))
        yield Problem(place, f"limits.build: {limits.build:g} s is more than the {limits.trial:g} s of the whole trial")
    if budget >= limits.trial:
        place = source.place(("measure", "budget"))
        yield Problem(
            place, f"measure.budget: {budget:g} s of sampling do not fit in the {limits.trial:g} s of the whole trial"
        )
    if period is not None:
        processes, share = file.measure.processes, budget / len(paths(Measure(**file.measure.model_dump())))
        if (least := PACED_CALLS * period * processes) > share:
            yield Problem(
                source.place(("measure", "period")),
                f"measure.period: {PACED_CALLS} calls in each of {processes} processes take {least:g} s, more than "
                f"their {share:g} s of measure.budget",
            )


def _points(expansion: Expansion, source: Source) -> tuple[list[Point], list[Problem]]:
    """The points, and what is wrong with any. Each different model is checked once."""
    models: dict[tuple[Value, ...], Model | Fault] = {}
    leaves = [leaf for leaf, section in LEAVES.items() if section == "model"]
    points: list[Point] = []
    faulty: list[tuple[Fault, Candidate]] = []
    for candidate in expansion.candidates:
        values = candidate.values
        key = tuple(values[leaf] for leaf in leaves)
        if key not in models:
            models[key] = model_of(values)
        model = models[key]
        found = [model] if isinstance(model, Fault) else list(faults(values, model))
        faulty += [(fault, candidate) for fault in found]
        if isinstance(model, Model) and not found:
            points.append(_point(candidate, model))
    return points, [_problem(fault, candidate, expansion, source, others=bool(points)) for fault, candidate in faulty]


def _point(candidate: Candidate, model: Model) -> Point:
    values = candidate.values
    strategy = Strategy(values["time"], values["state"], values["chunk"])  # type: ignore[arg-type]
    rest = {leaf: values[leaf] for leaf in ("steps", "batch", "dtype", "device", "threads", "seed", "lengths")}
    return Point(model=model, strategy=strategy, **rest)  # type: ignore[arg-type]


def _problem(fault: Fault, candidate: Candidate, expansion: Expansion, source: Source, *, others: bool) -> Problem:
    """A fault where its first leaf is written; where there are sound `others`, with the entry that would exclude it."""
    paths = [leaf_path(candidate, leaf, source) for leaf in fault.leaves]
    path = next((path for path in paths if path in source.values), paths[0])
    axes = {leaf: candidate.written[leaf] for leaf in fault.leaves if len(expansion.axes[leaf]) > 1}
    message = f"{dotted(path)}: {fault.message}"
    if others and axes and candidate.added is None:
        message += f"; or exclude {flow(axes)}"
    return Problem(source.place(path), message)
