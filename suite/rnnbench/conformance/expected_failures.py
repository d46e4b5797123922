"""Comparing the expected failures of a trial with what happened."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rnnbench.cases import ExpectedFailure
from rnnbench.conformance.definition import RAISED
from rnnbench.conformance.tolerance import WRONG
from rnnbench.results import CheckResult, ExpectedFailureResult, Outcome
from rnnbench.rnn import Network

_COLUMN = re.compile(r": off by \S+ at \[(?:\d+, )*(\d+)\]")
_COLUMNS = re.compile(r", in columns (\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*)")
"""As `columns_told` has them."""


@dataclass(frozen=True)
class TrialEnd:
    """How a trial ended, and its model."""

    outcome: Outcome
    stage: str = ""
    reason: str = ""
    model: Network | None = None


def expected_failure_results(
    expected_failures: Sequence[ExpectedFailure], ended: TrialEnd, checked: Mapping[str, CheckResult]
) -> tuple[ExpectedFailureResult, ...]:
    """One result for each check or outcome that was expected to fail and was tested. `checked` has results by check.

    - A check that did not run, or does not apply, has no result.
    - A trial that ended before the stage at which it was expected to fail has no result.
    - A check under `also` has a result only if it failed.
    - An entry with `contains` has a result only if the failure matches the fault: by its `says`, or by wrong arrays
      that the fault affects.
    """
    results: dict[str, ExpectedFailureResult] = {}
    for failure in expected_failures:
        happened = _of_file(failure, ended, checked) if failure.contains else _results(failure, ended.outcome, checked)
        for result in happened:
            first = results.setdefault(result.what, result)
            if first.verdict == "passed":
                results[result.what] = result
    return tuple(results.values())


def _results(
    failure: ExpectedFailure, outcome: Outcome, checked: Mapping[str, CheckResult]
) -> Iterator[ExpectedFailureResult]:
    if failure.outcome is not None and outcome in (failure.outcome, "ok", "nonconforming"):
        yield _result(failure, failure.outcome, failed=outcome == failure.outcome)
    for name in (*failure.check, *failure.also):
        verdict = checked[name].verdict if name in checked else "not-applicable"
        if verdict == "fail" or (verdict == "pass" and name in failure.check):
            yield _result(failure, name, failed=verdict == "fail")


def _of_file(
    failure: ExpectedFailure, ended: TrialEnd, checked: Mapping[str, CheckResult]
) -> Iterator[ExpectedFailureResult]:
    if ended.model is None:
        return
    if failure.outcome is not None and failure.outcome == ended.outcome:
        is_there = not failure.stage or ended.stage in failure.stage
        if is_there and (not failure.says or any(text in ended.reason for text in failure.says)):
            yield _result(failure, ended.outcome, failed=True)
    spoiled = frozenset[str].intersection(*(ended.model.traits[name] for name in failure.contains))
    for name in failure.also:
        if name in checked and checked[name].verdict == "fail":
            wrong = _wrong_arrays(checked[name].detail, ended.model)
            if wrong and wrong <= spoiled:
                yield _result(failure, name, failed=True)


def _wrong_arrays(detail: str, model: Network) -> set[str]:
    """The names of the arrays that a check found wrong, from its detail; none if the detail is about something else."""
    what, _, listed = detail.partition(WRONG)
    if listed:
        return {*listed.split(", ")}
    for name in sorted(model.state_shapes(1), key=len, reverse=True):
        if what.startswith((f"{name} after ", f"{name}: ")) or f"state {name} " in what:
            return {name}
    if what.startswith(RAISED) or not re.search(r"\by\b", what):
        return set()
    outputs = model.parts_of_y
    if len(outputs) == 1:
        return {*outputs}
    wrong = {column for first, last in _wrong_columns(what) for column in range(first, last + 1)}
    return {name for name, part in outputs.items() if not wrong.isdisjoint(range(part.start, part.stop))}


def _wrong_columns(what: str) -> Iterator[tuple[int, int]]:
    """The first and the last of each range of columns of y that a detail names."""
    for pattern in (_COLUMN, _COLUMNS):
        if match := pattern.search(what):
            for steps in match[1].split(", "):
                first, _, last = steps.partition("-")
                yield int(first), int(last or first)


def _result(failure: ExpectedFailure, what: str, *, failed: bool) -> ExpectedFailureResult:
    return ExpectedFailureResult(
        what=what, verdict="failed" if failed else "passed", reason=failure.reason, upstream=failure.upstream
    )
