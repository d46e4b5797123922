"""`--fail-on`: each name counts what it says, and the default is what became slower, wrong or broken."""

from __future__ import annotations

import re
from pathlib import Path

import click
import fake_records as fake
import pytest

from rnnbench.cli.compare import compare
from rnnbench.results.compare import compare_runs
from rnnbench.results.fail_on import DEFAULT_FAIL_ON, FAIL_ON, parse_fail_on
from rnnbench.results.finding import Finding, FindingKind
from rnnbench.results.record import CheckResult, Outcome, Record

pytest.importorskip("scipy")
BASE = fake.record(bound=1e-3, spread=1e-3)
DOUBTFUL = Finding(kind=FindingKind.TIME, detail="fake", disbelieved=True)


def lost(outcome: Outcome) -> Record:
    return fake.record(outcome=outcome)


def artifact(**changes: object) -> Record:
    assert BASE.artifact is not None
    return BASE.model_copy(update={"artifact": BASE.artifact.model_copy(update=changes)})


CHANGES: dict[str, list[Record]] = {
    "nonconforming": [lost("nonconforming")],
    "failed": [lost("timed-out")],
    "unsupported": [lost("unavailable")],
    "slower": [fake.record(bound=1.2e-3, spread=1e-3)],
    "vanished": [],
    "checks": [BASE.model_copy(update={"conformance": {"values": CheckResult(verdict="fail")}})],
    "believed": [BASE.model_copy(update={"findings": (DOUBTFUL,)})],
    "support": [BASE.model_copy(update={"support": BASE.support.model_copy(update={"level": "emulated"})})],
    "lowered": [artifact(lowered="fused")],
    "build": [BASE.model_copy(update={"timing": BASE.timing.model_copy(update={"build_s": 9.0})})],
    "memory": [
        BASE.model_copy(update={"memory": BASE.memory.model_copy(update={"run_peak": 9 << 30, "build_peak": 9 << 30})})
    ],
    "artifact": [artifact(nbytes=9_000_000)],
    "operations": [artifact(operations={"compiled": {"dispatches": 5}})],
}


@pytest.mark.parametrize("name", FAIL_ON)
def test_a_name_finds_its_change_and_nothing_else(name: str) -> None:
    base, new = (fake.run(records) for records in ([BASE], CHANGES[name]))
    found = compare_runs(base, new).found
    assert found == {name: 2 if name == "slower" else 1}
    assert compare_runs(base, new).regressed is (name in DEFAULT_FAIL_ON)
    assert compare_runs(base, new, fail_on=(name,)).regressed
    assert not compare_runs(base, new, fail_on=set(FAIL_ON) - {name}).regressed
    assert compare_runs(base, base).found == {}


def test_names_stand_between_commas_and_all_and_none_are_names() -> None:
    assert parse_fail_on(["slower, vanished", "lowered"]) == ("slower", "vanished", "lowered")
    assert parse_fail_on(["all"]) == tuple(FAIL_ON)
    assert parse_fail_on(["none"]) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("slow", "unknown name 'slow'; did you mean 'slower'"),
        ("", "unknown name ''; expected one of"),
        ("none,slower", "stands alone"),
    ],
)
def test_an_unknown_name_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_fail_on([text])


def test_the_documentation_and_the_help_have_every_name_with_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reports.md").read_text()
    (table,) = re.findall(r"\| name \| counts \| by default \|\n(.*?)\n\n", page, re.DOTALL)
    rows = [row.strip("|").split(" | ") for row in table.splitlines()[1:]]
    documented = {name: cells[-1].strip(" |") for cells in rows for name in re.findall(r"`(\w+)`", cells[0])}
    assert list(documented) == list(FAIL_ON)
    assert {name for name, default in documented.items() if default.startswith("yes")} == set(DEFAULT_FAIL_ON)
    (option,) = [one for one in compare.params if one.name == "names"]
    assert isinstance(option, click.Option)
    assert f"{', '.join(FAIL_ON)}; all, none." in str(option.help)
    assert f"[default: {','.join(DEFAULT_FAIL_ON)}]" in str(option.help)


@pytest.mark.parametrize(
    ("before", "after"), [("crashed", "nonconforming"), ("nonconforming", "crashed"), ("unavailable", "unsupported")]
)
def test_what_was_not_ok_before_cannot_get_lost(before: Outcome, after: Outcome) -> None:
    base, new = (fake.run((lost(outcome),)) for outcome in (before, after))
    comparison = compare_runs(base, new)
    assert [change.fact for change in comparison.facts] == ["outcome"]
    assert comparison.found == {}


def test_none_may_be_said_twice() -> None:
    assert parse_fail_on(["none", "none"]) == ()


def test_what_is_found_is_counted_in_words() -> None:
    assert [FAIL_ON["slower"].words(count) for count in (0, 1, 2_000)] == [
        "0 latencies SLOWER",
        "1 latency SLOWER",
        "2,000 latencies SLOWER",
    ]
