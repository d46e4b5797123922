"""A comparison in the terminal: warnings, what changed, and the answer at the end."""

from __future__ import annotations

import dataclasses

import fake_records as fake
import pytest
from rich.console import Console

from rnnbench.reports import print_comparison
from rnnbench.reports.comparison_tables import by_target, comparison_tables, headline
from rnnbench.results import Finding, FindingKind
from rnnbench.results.compare import Comparison, compare_runs
from rnnbench.results.store import Run

pytest.importorskip("scipy")


@pytest.fixture
def comparison() -> Comparison:
    old = [fake.record(chunk=c, bound=1e-3, spread=1e-3) for c in (1, 16, 64)]
    new = [
        fake.record(chunk=1, bound=1.2e-3, spread=1e-3, seed=1),
        fake.record(chunk=16, bound=1e-3, spread=1e-3, seed=1),
        fake.record(chunk=64, outcome="crashed"),
        fake.record(chunk=128),
    ]
    return compare_runs(fake.run(old, "old"), fake.run(new, "new", machine={**fake.info().machine, "python": "3.12.1"}))


def printed(comparison: Comparison, capsys: pytest.CaptureFixture[str]) -> str:
    print_comparison(comparison, Console(width=100, no_color=True))
    return capsys.readouterr().out


def test_what_changed_comes_before_the_answer_and_what_stayed_the_same_is_left_out(
    comparison: Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(comparison, capsys)
    order = ["warning: machines differ in python", "ends as crashed (it was ok)", "is new", "1.20", "REGRESSED"]
    assert [text.index(part) for part in order] == sorted(text.index(part) for part in order)
    assert "REGRESSED: 1 trial failing, 2 latencies SLOWER." in text
    assert "3 trials in both runs, 1 new. 4 latency verdicts: 2 SLOWER, 0 FASTER, 0 UNDECIDED, 2 SAME." in text
    assert text.count("SAME") == 1
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 100


def test_results_of_two_machines_are_marked_and_called_no_regression(capsys: pytest.CaptureFixture[str]) -> None:
    old = fake.run([fake.record(bound=1e-3, spread=1e-3)], "old")
    new = fake.run([fake.record(bound=2e-3, spread=1e-3)], "new", machine={"cpu": "Fake CPU 1"})
    text = " ".join(printed(compare_runs(old, new, across_machines=True), capsys).split())
    assert "SLOWER* " in text
    assert "*: of two machines" in text
    assert "TWO MACHINES, nothing that counts differs. Found too, and not counted (--fail-on): 2 latencies" in text
    assert "REGRESSED" not in text


def test_two_equal_runs_have_no_regression(capsys: pytest.CaptureFixture[str]) -> None:
    one = fake.run([fake.record(spread=1e-3)], "one")
    assert printed(compare_runs(one, one), capsys).startswith("No regression.\n1 trial in both runs.")


def test_latencies_without_a_verdict_are_told_beside_no_regression(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is known of them: two processes that differ say neither that it is slower nor that it is not."""
    old, new = (fake.run([fake.record(processes=2, spread=0.2, seed=seed)], name) for seed, name in enumerate("ab"))
    comparison = compare_runs(old, new)
    shown = " ".join(printed(comparison, capsys).split())
    assert "No regression was found, and 2 of 2 latency verdicts are UNDECIDED: `rnnbench ab`," in shown
    in_turn = headline(dataclasses.replace(comparison, paired=True))
    assert in_turn.endswith("are UNDECIDED: a larger --budget of `rnnbench ab` may decide.")


def test_a_long_list_is_cut_in_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    base = fake.run([fake.record(chunk=c) for c in range(1, 61)], "base")
    assert "… and 20 more" in printed(compare_runs(base, fake.run([], "empty")), capsys)


@pytest.mark.parametrize("side", [0, 1])
def test_a_trial_that_is_not_believed_on_a_side_has_no_verdict(side: int, capsys: pytest.CaptureFixture[str]) -> None:
    doubtful = Finding(kind=FindingKind.TIME, detail="work was done in a thread", disbelieved=True)
    records = [fake.record(), fake.record()]
    records[side] = fake.record(findings=(doubtful,))
    compared = compare_runs(fake.run(records[:1], "old"), fake.run(records[1:], "new"))
    assert (compared.latencies, compared.costs) == ((), ())
    assert [(one.run, one.reason) for one in compared.not_believed] == [(("old", "new")[side], doubtful.detail)]
    text = " ".join(printed(compared, capsys).split())
    assert "Without verdict: 1 trial not believed." in text
    assert doubtful.detail in text


def test_the_largest_change_of_a_verdict_comes_first_with_the_base_before_the_new_run() -> None:
    def of(factors: dict[int, float], name: str) -> Run:
        records = [fake.record(chunk=c, bound=f * 1e-3, spread=1e-4, processes=5) for c, f in factors.items()]
        return fake.run([fake.with_latencies(record, public=None) for record in records], name)

    comparison = compare_runs(of({1: 1, 16: 1, 64: 1}, "old"), of({1: 1.2, 16: 2, 64: 0.5}, "new"))
    (latencies,) = [table for table in comparison_tables(comparison) if table.title.startswith("Latency")]
    assert latencies.columns[3:6] == ("base", "new", "ratio")
    assert [(row[0], *row[3:6]) for row in latencies.rows] == [
        ("SLOWER", "1.00 ms", "2.00 ms", "2.000"),
        ("SLOWER", "1.00 ms", "1.20 ms", "1.200"),
        ("FASTER", "1.00 ms", "500 µs", "0.500"),
    ]


def test_the_target_with_the_most_slower_latencies_comes_first() -> None:
    def of(slower: float, name: str) -> Run:
        lib = [fake.record(chunk=c, bound=1e-3, spread=1e-3) for c in (1, 16)]
        mlir = [fake.record("fakemlir", "linalg", chunk=c, bound=slower * 1e-3, spread=1e-3) for c in (1, 16)]
        return fake.run([*lib, *mlir], name)

    summaries = by_target(compare_runs(of(1.0, "old"), of(1.5, "new")))
    assert [(one.target, one.counts[0]) for one in summaries] == [("fakemlir:linalg", 4), ("fakelib:ops", 0)]


def test_the_sides_of_an_ab_have_the_same_names_in_every_table() -> None:
    old, new = (fake.record(spread=1e-3), fake.record(spread=1e-3, seed=1))
    built = new.model_copy(update={"timing": new.timing.model_copy(update={"build_s": 60.0})})
    paired = dataclasses.replace(compare_runs(fake.run([old], "old"), fake.run([built], "new")), paired=True)
    tables = {table.title: table.columns for table in comparison_tables(paired)}
    assert len(tables) == 2
    assert all({"A", "B"} <= set(columns) and not {"base", "new"} & set(columns) for columns in tables.values())


def test_a_comparison_says_which_latency_it_has_since_a_report_has_another() -> None:
    """Of a run whose processes differ the two have other digits."""
    apart = compare_runs(
        fake.run([fake.record(spread=1e-3)], "old"), fake.run([fake.record(spread=1e-3, seed=1)], "new")
    )
    note, of_pairs = (
        next(table.note for table in comparison_tables(one) if table.title.startswith("Latency"))
        for one in (apart, dataclasses.replace(apart, paired=True))
    )
    assert "Ratio: new over base, of the two latencies, each the geometric mean of its processes' medians." in note
    assert "Ratio: B over A, the mean of pairs" in of_pairs
    assert "It may differ from the quotient of the two latencies" in of_pairs
