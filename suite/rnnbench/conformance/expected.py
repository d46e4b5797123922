"""What was expected to fail of a trial, held against what did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rnnbench.cases.expectations import Expectation
from rnnbench.results.record import CheckResult, ExpectedFailureResult, Outcome


def judge(
    expectations: Sequence[Expectation], outcome: Outcome, verdicts: Mapping[str, CheckResult]
) -> tuple[ExpectedFailureResult, ...]:
    """One figure for each thing that was expected to fail and was put to the test.

    A check that was not run, or does not apply, says nothing; nor does a trial that never came to the stage at which
    it was to fail. What is listed under `also` is told where it failed.
    """
    figures: dict[str, ExpectedFailureResult] = {}
    for entry in expectations:
        for figure in _figures(entry, outcome, verdicts):
            known = figures.setdefault(figure.what, figure)
            if known.verdict == "passed":
                figures[figure.what] = figure
    return tuple(figures.values())


def _figures(
    entry: Expectation, outcome: Outcome, verdicts: Mapping[str, CheckResult]
) -> Iterator[ExpectedFailureResult]:
    if entry.outcome is not None and outcome in (entry.outcome, "ok", "nonconforming"):
        showed = outcome == entry.outcome
        yield ExpectedFailureResult(
            what=entry.outcome,
            verdict="failed" if showed else "passed",
            reason=entry.reason,
            upstream=entry.upstream,
        )
    for name in (*entry.check, *entry.also):
        verdict = verdicts[name].verdict if name in verdicts else "not-applicable"
        if verdict == "fail" or (verdict == "pass" and name in entry.check):
            yield ExpectedFailureResult(
                what=name,
                verdict="failed" if verdict == "fail" else "passed",
                reason=entry.reason,
                upstream=entry.upstream,
            )
