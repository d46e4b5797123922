"""A comparison is told with its warnings first, its regressions next, and all of it in Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import fake_records as fake
import pytest
from rich.console import Console

from rnnbench.reports import comparison_markdown, print_comparison
from rnnbench.results import Finding, FindingKind
from rnnbench.results.compare import Comparison, compare_runs
from rnnbench.results.record import Record
from rnnbench.results.store import Run

pytest.importorskip("scipy")


def run(records: Iterable[Record], name: str, **changes: Any) -> Run:
    return Run(Path(name), fake.info(run=name, **changes), tuple(records))


@pytest.fixture
def comparison() -> Comparison:
    old = [fake.record(chunk=c, bound=1e-3, spread=1e-3) for c in (1, 16, 64)]
    new = [
        fake.record(chunk=1, bound=1.2e-3, spread=1e-3, seed=1),
        fake.record(chunk=16, bound=1e-3, spread=1e-3, seed=1),
        fake.record(chunk=64, outcome="crashed"),
        fake.record(chunk=128),
    ]
    return compare_runs(run(old, "old"), run(new, "new", machine={**fake.info().machine, "python": "3.12.1"}))


def test_the_page_goes_from_warnings_to_regressions_to_the_rest(comparison: Comparison) -> None:
    text = comparison_markdown(comparison)
    order = ["REGRESSED", "**Warning:** machines differ in python", "ok → crashed", "| SLOWER", "| SAME", "new only"]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert "**REGRESSED: of 4 comparisons 2 SLOWER, 0 FASTER, 0 UNDECIDED, 2 SAME; 1 trial no longer ok**" in text
    assert fake.REASONS["crashed"] in text


def test_the_terminal_leaves_out_what_stayed_the_same(
    comparison: Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    print_comparison(comparison, Console(width=100, no_color=True))
    text = capsys.readouterr().out
    assert text.count("SLOWER") == 3
    assert text.count("SAME") == 1
    assert "1.20" in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 100


def test_verdicts_on_two_machines_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    old = run([fake.record(bound=1e-3, spread=1e-3)], "old")
    new = run([fake.record(bound=2e-3, spread=1e-3)], "new", machine={"cpu": "Fake CPU 1"})
    unmarked = comparison_markdown(compare_runs(old, new))
    assert unmarked.index("two machines, so latencies have no verdicts") < unmarked.index("machines differ in cores")
    assert "SLOWER |" not in unmarked
    comparison = compare_runs(old, new, across_machines=True)
    assert "| SLOWER* |" in comparison_markdown(comparison)
    print_comparison(comparison, Console(width=100, no_color=True))
    assert "*: of two machines" in " ".join(capsys.readouterr().out.split())


def test_two_equal_runs_have_no_regression(capsys: pytest.CaptureFixture[str]) -> None:
    one = run([fake.record(spread=1e-3)], "one")
    print_comparison(compare_runs(one, one), Console(width=100, no_color=True))
    assert capsys.readouterr().out.startswith("no regression: of 2 comparisons")


def test_a_long_list_is_cut_in_the_terminal_and_whole_in_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    base = run([fake.record(chunk=c) for c in range(1, 61)], "base")
    comparison = compare_runs(base, run([], "empty"))
    print_comparison(comparison, Console(width=100, no_color=True))
    assert "… and 20 more" in capsys.readouterr().out
    assert comparison_markdown(comparison).count("base only") == 60


@pytest.mark.parametrize("side", [0, 1])
def test_a_trial_that_is_not_believed_on_a_side_has_no_verdict(side: int, capsys: pytest.CaptureFixture[str]) -> None:
    doubtful = Finding(kind=FindingKind.TIME, detail="work was done in a thread", disbelieved=True)
    records = [fake.record(), fake.record()]
    records[side] = fake.record(findings=(doubtful,))
    compared = compare_runs(run(records[:1], "old"), run(records[1:], "new"))
    assert compared.latencies == ()
    assert [(one.run, one.reason) for one in compared.not_believed] == [(("old", "new")[side], doubtful.detail)]
    assert "1 trial not believed, without verdict" in comparison_markdown(compared)
    assert doubtful.detail in comparison_markdown(compared)
    print_comparison(compared, Console(width=100, no_color=True))
    assert "not believed" in capsys.readouterr().out
