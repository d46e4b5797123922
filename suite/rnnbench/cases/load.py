"""Cases from files and from Python. Everything is validated, and all problems are reported at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote

from pydantic import ValidationError

from rnnbench.cases.case import Case, Point
from rnnbench.cases.errors import CASE, CaseError, Place, Problem
from rnnbench.cases.expand import Expansion, expand, flow, leaf_path
from rnnbench.cases.feasibility import Fault, faults, missing_keys, model_of
from rnnbench.cases.files import SUFFIX, expected_failures_file
from rnnbench.cases.matrix import MAX_TRIALS, Candidate, Value
from rnnbench.cases.model_file import ReadModel, model_file_of
from rnnbench.cases.overrides import override
from rnnbench.cases.schema import LEAVES, SETTINGS, CaseFile, json_schema
from rnnbench.cases.trial import Limits, Measure, Strategy
from rnnbench.measure import FRAMES, REQUESTS, SERVER, STREAMS, longest_serving, requested
from rnnbench.model_files import describe
from rnnbench.rnn import Network
from rnnbench.spelling import count
from rnnbench.yaml_files import KeyPath, Source, dotted, missing_key, problems_of, read_source

IN_PYTHON = "the case"
"""The name, in errors, of a case that has no file."""


def load_case(
    path: str | Path,
    overrides: Sequence[str] = (),
    max_trials: int = MAX_TRIALS,
    read_model: ReadModel = describe,
) -> Case:
    """The case in a file, with `section.key=value` overrides. Raises CaseError with every problem and its place.

    `read_model` reads the model file that a case names. A command passes one that reads in a process of its own.
    """
    _refuse_model_file(Path(path))
    written = read_source(Path(path), CASE)
    source = override(written, overrides) if overrides else written
    network, source = model_file_of(source, Path(path).parent, read_model)
    return _case(source, max_trials, Path(path), as_written=written if overrides else None, network=network)


def _refuse_model_file(path: Path) -> None:
    """Raises CaseError for a file whose name says that it is a network's."""
    if path.suffix != SUFFIX:
        from rnnbench.model_files import is_named_as_model  # The formats take long to import.

        if is_named_as_model(path):
            command = f"rnnbench new {quote(str(path))} -o my.yaml"
            raise CaseError.at(Place(str(path)), f"this is a model file; write a case that runs it: {command}")


def make_case(
    name: str,
    *,
    model: Mapping[str, object],
    workload: Mapping[str, object],
    strategy: Mapping[str, object],
    max_trials: int = MAX_TRIALS,
    **sections: object,
) -> Case:
    """A case written in Python: the sections of a case file as mappings, in which a list or tuple is an axis.

    `sections` are the optional ones: `description`, `target`, `matrix`, `limits`, `measure`, `compare` and `pinned`.
    Raises CaseError, as `load_case` does: the place of a problem is its key, as in `model.hidden[1]`.
    """
    data = {"schema": 1, "name": name, "model": model, "workload": workload, "strategy": strategy, **sections}
    network, source = model_file_of(_python_source(data), Path(), describe)
    return _case(source, max_trials, path=None, network=network)


def _case(
    source: Source,
    max_trials: int,
    path: Path | None,
    as_written: Source | None = None,
    network: Network | None = None,
) -> Case:
    """Validate a case. `as_written` is the file without overrides, if there are any; `network` is its model file's."""
    file = _validated(source)
    expansion = expand(file, source, max_trials)
    problems = list(_stale(expansion, source, as_written, max_trials))
    if not expansion.candidates:
        problems.append(
            Problem(source.key_place(("matrix", "exclude")), "matrix.exclude: no point is left; drop fewer")
        )
    points, point_problems = _points(expansion, source, network)
    measure = _measure(file)
    problems += [*_limit_problems(file, measure, source), *_scenario_problems(measure, points, file, source)]
    problems += point_problems
    if problems:
        raise CaseError(problems)
    return Case(
        name=file.name,
        description=file.description,
        points=tuple(points),
        limits=Limits(**file.limits.model_dump(exclude={"endurance"})),
        measure=measure,
        endurance=file.limits.endurance,
        thresholds=file.compare.model_dump(exclude_none=True),  # type: ignore[attr-defined]
        pinned=file.pinned,
        path=None if path is None else str(path),
        expected_failures_file=None if path is None else expected_failures_file(path),
    )


def _python_source(data: Mapping[str, object]) -> Source:
    """A source from plain data. The place of a value is its key path."""
    places: dict[KeyPath, Place] = {}

    def plain(value: object, path: KeyPath) -> object:
        places[path] = Place(dotted(path) if path else IN_PYTHON)
        if isinstance(value, Mapping):
            return {str(key): plain(inner, (*path, str(key))) for key, inner in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, str | bytes):
            return [plain(inner, (*path, index)) for index, inner in enumerate(value)]
        return value

    return Source(IN_PYTHON, plain(data, ()), places, places)


def _validated(source: Source) -> CaseFile:
    missing = [missing_key(("model", key), source, json_schema()) for key in missing_keys(source.at(("model",)))]
    try:
        file = CaseFile.model_validate(source.data)
    except ValidationError as error:
        raise CaseError([*missing, *problems_of(error, source, json_schema())]) from error
    if missing:
        raise CaseError(missing)
    return file


def _stale(expansion: Expansion, source: Source, file: Source | None, max_trials: int) -> Iterator[Problem]:
    """Problems of `matrix` entries that do nothing. With overrides, only if they do nothing in the unchanged `file`."""
    if not expansion.stale:
        return
    before = set(expansion.stale) if file is None else _stale_as_written(file, max_trials)
    for path, message in expansion.stale.items():
        if source.place(path).line is None or path in before:
            yield source.problem(path, message)


def _stale_as_written(file: Source, max_trials: int) -> set[KeyPath]:
    """The stale entries of the file without its overrides. Empty if the file is not valid without them."""
    try:
        return set(expand(_validated(file), file, max_trials).stale)
    except CaseError:
        return set()


def _measure(file: CaseFile) -> Measure:
    values = file.measure.model_dump()  # type: ignore[attr-defined]
    settings = {key: float(value) for key in SETTINGS if (value := values.pop(key))}
    return Measure(**values, settings=settings)


def _limit_problems(file: CaseFile, measure: Measure, source: Source) -> Iterator[Problem]:
    limits, budget = file.limits, measure.budget
    if limits.build > limits.trial:
        yield source.problem(
            ("limits", "build"), f"{limits.build:g} s is more than the {limits.trial:g} s of limits.trial"
        )
    if limits.enough is not None and limits.enough > limits.endurance:
        yield source.problem(
            ("limits", "enough"), f"{limits.enough:g} s is more than the {limits.endurance:g} s of limits.endurance"
        )
    if budget >= limits.trial:
        yield source.problem(
            ("measure", "budget"), f"{budget:g} s of sampling do not fit in the {limits.trial:g} s of limits.trial"
        )
    latency_paths = requested(measure.settings)
    share = budget / len(latency_paths)
    for path in latency_paths:
        process_s = path.least_process_s(path.value(measure.settings))
        if path.setting is not None and process_s * measure.processes > share:
            yield source.problem(
                ("measure", path.setting.key),
                f"{count(measure.processes, 'process', 'processes')} of at least {process_s:g} s take "
                f"{process_s * measure.processes:g} s, more than their {share:g} s of measure.budget; give a budget of "
                f"{process_s * measure.processes * len(latency_paths):g}s or more",
            )


def _scenario_problems(measure: Measure, points: Sequence[Point], file: CaseFile, source: Source) -> Iterator[Problem]:
    """Problems of scenarios that no trial could finish within its limit."""
    rate = SERVER.value(measure.settings)
    if rate and longest_serving(rate) >= file.limits.trial:
        yield source.problem(
            ("measure", SERVER.setting.key),
            f"{REQUESTS} requests may take {longest_serving(rate):g} s, which do not fit "
            f"in the {file.limits.trial:g} s of limits.trial",
        )
    chunk = max((point.strategy.chunk for point in points), default=1)
    period = STREAMS.value(measure.settings)
    test_s = FRAMES * chunk * period
    if test_s >= file.limits.trial:
        yield source.problem(
            ("measure", STREAMS.setting.key),
            f"one test has {FRAMES} frames of {count(chunk, 'step')}, a step every {period:g} s, and takes "
            f"{test_s:g} s, which do not fit in the {file.limits.trial:g} s of limits.trial; milliseconds are "
            "written as 16ms",
        )


def _points(expansion: Expansion, source: Source, network: Network | None) -> tuple[list[Point], list[Problem]]:
    """The valid points, and the problems of the others. Each different model is checked once."""
    models: dict[tuple[Value, ...], Network | Fault] = {}
    leaves = [leaf for leaf, section in LEAVES.items() if section == "model"]
    points: list[Point] = []
    faulty: list[tuple[Fault, Candidate]] = []
    for candidate in expansion.candidates:
        values = candidate.values
        key = tuple(values[leaf] for leaf in leaves)
        if key not in models:
            models[key] = network or model_of(values)
        model = models[key]
        point_faults = [model] if isinstance(model, Fault) else list(faults(values, model))
        faulty += [(fault, candidate) for fault in point_faults]
        if isinstance(model, Network) and not point_faults:
            points.append(_point(candidate, model))
    return points, [_problem(fault, candidate, expansion, source, others=bool(points)) for fault, candidate in faulty]


def _point(candidate: Candidate, model: Network) -> Point:
    values = candidate.values
    strategy = Strategy(values["time"], values["state"], values["chunk"], values["launch"])  # type: ignore[arg-type]
    rest = {leaf: values[leaf] for leaf in ("steps", "batch", "dtype", "device", "threads", "seed", "lengths")}
    return Point(model=model, strategy=strategy, **rest)  # type: ignore[arg-type]


def _problem(fault: Fault, candidate: Candidate, expansion: Expansion, source: Source, *, others: bool) -> Problem:
    """A faulty point as a problem, at the place of its first leaf. If `others` are valid, it says how to exclude it."""
    paths = [leaf_path(candidate, leaf, source) for leaf in fault.leaves]
    path = next((path for path in paths if path in source.values), paths[0])
    axes = {leaf: candidate.written[leaf] for leaf in fault.leaves if len(expansion.axes[leaf]) > 1}
    instead = f"; or exclude {flow(axes)}" if others and axes and candidate.added is None else ""
    return source.problem(path, f"{fault.message}{instead}")
