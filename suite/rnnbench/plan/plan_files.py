"""The files of a plan: `trials.json` and `expected_failures.json`, also those that an older rnnbench wrote."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from rnnbench.cases import ExpectedFailure, Trial
from rnnbench.content_digest import EditedError, intact, text_with_digest, without_digest
from rnnbench.disk import copy_of, is_json, read_or_copy, read_plain, write_bytes, write_with_copy
from rnnbench.results import INFO, TRIALS, StoreError, visible

T = TypeVar("T")

EXPECTED_FAILURES = "expected_failures.json"
DIGEST_DIGITS = 16
_START_A_NEW_ONE = "so the run cannot be resumed; start a new one"


def write_plan(folder: Path, trials: Sequence[Trial], expected: Mapping[str, tuple[ExpectedFailure, ...]]) -> str:
    """Write the files of a plan. Returns the digest of `trials.json`. Raises OSError."""
    content, of_failures = _trials_adapter().dump_json(list(trials)), _expected_adapter().dump_json(dict(expected))
    write_with_copy(folder / TRIALS, content)
    write_with_copy(folder / EXPECTED_FAILURES, text_with_digest(of_failures.decode()))
    return _digest(content)


def restore_damaged(folder: Path, digest: str | None) -> Iterator[str]:
    """Restore damaged files of a plan, and a torn `run.json`, from their copies. Yields a sentence for each.

    `digest` is that of `trials.json`. A file without a whole copy is left as it is. Raises OSError if a file cannot be
    written.
    """
    whole: Mapping[str, Callable[[bytes], bool]] = {
        INFO: is_json,
        TRIALS: lambda content: _digest(content) == digest if digest else is_json(content),
        EXPECTED_FAILURES: lambda content: is_json(content) and without_digest(content)[1],
    }
    for name, is_whole in whole.items():
        file = folder / name
        content, why_copy = b"", ""
        with suppress(OSError):
            content, why_copy = read_or_copy(file, is_whole)
        if why_copy:
            write_bytes(file, content, durable=True)
            yield f"{name} was damaged, edited or gone, and was written again from {copy_of(file).name}"


def read_trials(folder: Path, digest: str | None) -> list[Trial]:
    """The trials of a plan. Call `restore_damaged` before. `digest` is that of the file in `run.json`, if it has one.

    Raises StoreError, also if this rnnbench does not know a setting in the file.
    """
    trials = _read(folder / TRIALS, _trials_adapter())
    if digest and _digest(read_plain(folder / TRIALS)) != digest:
        raise StoreError(
            f"{folder / TRIALS}: has other trials than the run was begun with; restore it and run.json of this run "
            f"(see the files that end in .copy), or start a new run"
        )
    return trials


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGEST_DIGITS]


def read_expected_failures(folder: Path) -> dict[str, tuple[ExpectedFailure, ...]]:
    """The expected failures of each case. Raises StoreError."""
    return _read(folder / EXPECTED_FAILURES, _expected_adapter())


@cache
def _trials_adapter() -> TypeAdapter[list[Trial]]:
    return TypeAdapter(list[Trial])


@cache
def _expected_adapter() -> TypeAdapter[dict[str, tuple[ExpectedFailure, ...]]]:
    return TypeAdapter(dict[str, tuple[ExpectedFailure, ...]])


def _read(path: Path, adapter: TypeAdapter[T]) -> T:
    try:
        content = _upgraded(json.loads(intact(read_plain(path)), parse_float=_finite, parse_constant=_finite))
        value = adapter.validate_python(content)
    except EditedError as error:
        raise StoreError(f"{path}: {error}") from error
    except (OSError, ValueError, TypeError, OverflowError, RecursionError) as error:
        why = f": {error.errors(include_url=False)[0]['msg']}" if isinstance(error, ValidationError) else ""
        raise StoreError(f"{path}: cannot be read{visible(why)}, {_START_A_NEW_ONE}") from error
    unknown = sorted(set(_lost(content, adapter.dump_python(value, mode="json"))))
    if unknown:
        raise StoreError(f"{path}: this rnnbench does not know {', '.join(unknown)}, {_START_A_NEW_ONE}")
    return value


def _finite(text: str) -> float:
    """A number of a plan. Raises ValueError for NaN and infinities: a limit of one is none."""
    if not math.isfinite(value := float(text)):
        raise ValueError(f"'{text}' is no finite number")
    return value


def _upgraded(content: Any) -> Any:
    """The content with the settings of older versions renamed to the current names.

    Before settings were declared by latency paths, `measure` had a field for each: `cold` (bool) and `period` (seconds,
    or null).
    """
    for trial in content if isinstance(content, list) else ():
        measure = trial.get("measure") if isinstance(trial, dict) else None
        if isinstance(measure, dict):
            old = {name: measure.pop(name) for name in ("cold", "period") if name in measure}
            if set_before := {name: float(value) for name, value in old.items() if value}:
                measure["settings"] = {**set_before, **measure.get("settings", {})}
    return content


def _lost(before: Any, after: Any, name: str = "") -> Iterator[str]:
    """The names of the fields that a file has, and the value that was read from it does not have."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key not in after:
                yield f"'{name}{key}'"
            else:
                yield from _lost(value, after[key], f"{name}{key}.")
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"'{name.rstrip('.')}'"
        for one, other in zip(before, after, strict=False):
            yield from _lost(one, other, name)
