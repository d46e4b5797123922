"""Comparing the expected failures of a trial with what happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rnnbench.cases import ExpectedFailure
from rnnbench.results import CheckResult, ExpectedFailureResult, Outcome


def expected_failure_results(
    expected_failures: Sequence[ExpectedFailure], outcome: Outcome, checked: Mapping[str, CheckResult]
) -> tuple[ExpectedFailureResult, ...]:
    """One result for each check or outcome that was expected to fail and was tested. `checked` is by name of the check.

    A check that did not run, or does not apply, has no result. Neither has a trial that ended before the stage at which
    it was expected to fail. A check under `also` has a result only where it failed.
    """
    results: dict[str, ExpectedFailureResult] = {}
    for failure in expected_failures:
        for result in _results(failure, outcome, checked):
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


def _result(failure: ExpectedFailure, what: str, *, failed: bool) -> ExpectedFailureResult:
    return ExpectedFailureResult(
        what=what, verdict="failed" if failed else "passed", reason=failure.reason, upstream=failure.upstream
    )
