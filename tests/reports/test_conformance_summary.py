"""What `rnnbench check` prints: for each program and strategy the worst error, and what became of its checks."""

from __future__ import annotations

from io import StringIO

import fake_records as fake
import pytest
from rich.console import Console

from rnnbench.reports import print_conformance
from rnnbench.results import CheckResult, CheckVerdict, ExpectedFailureResult, Record


def checked(*verdicts: CheckVerdict, chunk: int = 16, rounding: float | None = 0.5, expected: bool = False) -> Record:
    names = ("values", "state")
    results = {
        name: CheckResult(verdict=verdict, rounding=rounding, detail="so it is")
        for name, verdict in zip(names, verdicts, strict=False)
    }
    failures = (ExpectedFailureResult(what="state", verdict="failed", reason="a known fault", upstream="fake#1"),)
    record = fake.record(chunk=chunk)
    return record.model_copy(
        update={"conformance": results, "expected_failures": failures if expected else record.expected_failures}
    )


def printed(*records: Record) -> str:
    output = StringIO()
    print_conformance(fake.run(records), Console(file=output, width=160))
    return output.getvalue()


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ((checked("pass", "pass"),), "✓ all 2"),
        ((checked("pass", "not-applicable"),), "✓ all 1"),
        ((checked("not-applicable", "not-applicable"),), "none ran"),
        ((checked("too-short", "not-applicable"),), "none passed, 1 too short"),
        ((checked("pass", "too-short"),), "✓ 1, 1 too short"),
        ((checked("pass", "pass"), checked("pass", "too-short", chunk=4)), "✓ 1, 1 too short"),
        ((checked("chaotic", "too-short"),), "✓ 1, 1 too short, up to chaos: values"),
        ((checked("chaotic", "pass"),), "✓ all 2, up to chaos: values"),
        ((checked("pass", "fail"),), "✗ state 1 of 1"),
        ((checked("pass", "fail"), checked("fail", "fail", chunk=4)), "✗ values 1 of 2, state 2 of 2"),
        ((checked("pass", "fail", expected=True),), "xfail state 1 of 1"),
        ((checked("pass", "fail", expected=True), checked("pass", "fail", chunk=4)), "✗ state 2 of 2"),
    ],
)
def test_a_line_says_what_became_of_the_checks(records: tuple[Record, ...], told: str) -> None:
    (line,) = [line for line in printed(*records).splitlines() if "fakelib:ops" in line and "looped" in line][:1]
    assert line.rstrip().endswith(told)


def test_the_error_is_that_of_the_worst_check_of_all_trials() -> None:
    text = printed(checked("pass", rounding=0.5), checked("pass", rounding=3.0, chunk=4))
    assert " 3.0× " in text
    assert " — " in printed(checked("pass", rounding=None))
