"""`--set section.key=value` replaces parts of a case. Errors quote the option."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from rnnbench.cases.errors import CASE, CaseError, Place, Problem
from rnnbench.yaml_files import KeyPath, Source, parse


def override(source: Source, settings: Sequence[str]) -> Source:
    """`source` with each `section.key=value` in place; a value is YAML. Raises CaseError."""
    data = copy.deepcopy(source.data)
    values, keys = dict(source.values), dict(source.keys)
    problems: list[Problem] = []
    given: set[KeyPath] = set()
    for setting in settings:
        place = Place(f"--set {setting}")
        try:
            path, part = _read(setting, place)
            if path in given:
                raise CaseError.at(place, f"{'.'.join(map(str, path))} is set twice; give it once")
            given.add(path)
            _put(data, path, part.data, place)
        except CaseError as error:
            problems += error.problems
            continue
        for marks in (values, keys):
            for old in [marked for marked in marks if marked[: len(path)] == path]:
                del marks[old]
        values.update({path + inner: place for inner in part.values})
        keys.update({path + inner: place for inner in part.keys})
        keys[path] = place
        for length in range(1, len(path)):
            values.setdefault(path[:length], place)
            keys.setdefault(path[:length], place)
    if problems:
        raise CaseError(problems)
    return Source(source.name, data, values, keys)


def _read(setting: str, place: Place) -> tuple[KeyPath, Source]:
    name, _, text = setting.partition("=")
    path = tuple(name.strip().split("."))
    if not text.strip() or not all(path):
        raise CaseError.at(place, "expected section.key=value, as in --set model.hidden=256")
    return path, parse(text, place.source, lambda line, column: place, CASE)


def _put(data: object, path: KeyPath, value: object, place: Place) -> None:
    node = data
    for part in path[:-1]:
        if isinstance(node, dict):
            node = node.setdefault(part, {})
    if not isinstance(node, dict):
        raise CaseError.at(
            place, f"there are no keys under {'.'.join(map(str, path[:-1]))}; expected section.key=value"
        )
    node[path[-1]] = value
