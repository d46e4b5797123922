"""Verdicts of comparisons are kept; those of one environment with itself count this machine's false alarms."""

from __future__ import annotations

import json
from types import SimpleNamespace

import fake_records as fake
import pytest

pytest.importorskip("duckdb")

from rnnbench.content_digest import text_with_digest
from rnnbench.history import History, false_alarm_lines, false_alarms, side_of, slow_calls
from rnnbench.results import StoreError


def verdict(name, ratio=1.0, path="bound"):
    interval = None if name == "UNDECIDED" else [ratio * 0.99, ratio * 1.01]
    return {
        "trial": "case/trial",
        "path": path,
        "ratio": ratio,
        "interval": interval,
        "verdict": name,
        "observations": 5,
        "ratios": [ratio],
        "seconds": 1.0,
    }


@pytest.fixture
def compare(tmp_path):
    """Makes the run of side b of a comparison, and adds it to the history."""
    made = []

    def add(*verdicts, a="x==1", b="x==1", differences=(), cpu="Fake CPU"):
        number = len(made)
        started = f"2026-01-{1 + number:02d}T02:00:00+00:00"
        machine = {"cpu": cpu, "cores": 2}
        run = fake.write_run(tmp_path / f"b{number}", [], started=started, seed=number, machine=machine)
        sides = {"a": {"environment": a}, "b": {"environment": b}}
        (run / "verdicts.json").write_text(
            json.dumps({**sides, "differences": list(differences), "verdicts": list(verdicts)})
        )
        made.append(History(tmp_path / "history").add_comparison(run))
        return made[-1]

    return add


def of_mean(name, ratio):
    mean = {"ratio": ratio, "interval": [ratio * 0.99, ratio * 1.01], "verdict": name, "observations": 5}
    return {"mean": mean}


@pytest.mark.parametrize(
    ("median", "mean", "side"),
    [
        ("SAME", ("SLOWER", 1.3), "B"),
        ("SAME", ("FASTER", 0.7), "A"),
        ("SAME", ("SAME", 1.0), ""),
        ("SLOWER", ("SLOWER", 1.3), ""),
        ("SLOWER", ("FASTER", 0.7), "A"),
        ("UNDECIDED", ("SLOWER", 1.3), ""),
    ],
)
def test_a_comparison_tells_of_slow_calls_that_its_verdict_does_not_count(compare, median, mean, side):
    sentences = list(slow_calls(compare({**verdict(median), **of_mean(*mean)}).verdicts))
    assert [sentence.partition(" are slow")[0] for sentence in sentences] == ([f"some calls of {side}"] if side else [])
    ratio = mean[1]
    means = f"the mean of B is {ratio:.3f} times that of A ({ratio * 0.99:.3f} to {ratio * 1.01:.3f})"
    assert all(means in sentence for sentence in sentences)


def test_of_several_latencies_with_slow_calls_the_slowest_is_named(compare):
    one, most = (
        {**verdict("SAME", path=path), **of_mean("SLOWER", ratio)} for path, ratio in (("bound", 1.2), ("public", 1.4))
    )
    (sentence,) = slow_calls(compare(one, most, verdict("SAME")).verdicts, ("the old one", "the new one"))
    assert sentence.startswith("some calls of the new one are slow in 2 latencies,")
    assert "in case/trial, public, the mean of the new one is 1.400 times that of the old one" in sentence


def test_the_judgement_of_the_mean_is_in_the_table_and_absent_in_comparisons_of_before(compare, tmp_path):
    compare({**verdict("SAME"), **of_mean("SLOWER", 1.5)}, verdict("SAME", path="public"))
    table = History(tmp_path / "history").sql("SELECT mean_ratio, mean_low, mean_verdict FROM verdicts ORDER BY path")
    assert list(table.rows) == [(1.5, pytest.approx(1.485), "SLOWER"), (None, None, None)]


def test_verdicts_are_a_table_of_their_own_and_no_night(compare, tmp_path):
    compare(verdict("SLOWER", 1.1), verdict("SAME", path="public"), b="x==2", differences=["x 1 → 2"])
    history = History(tmp_path / "history")
    assert history.nights == ()
    table = history.sql("SELECT a, b, same, trial, path, ratio, verdict, pairs FROM verdicts ORDER BY path")
    assert table.rows[0] == ("x==1", "x==2", False, "case/trial", "bound", 1.1, "SLOWER", 5)
    assert len(table.rows) == 2


def test_the_verdicts_of_another_comparison_are_refused(tmp_path):
    run = fake.write_run(tmp_path / "b", [])
    own = json.loads((run / "run.json").read_text())["run"]
    history = History(tmp_path / "history")
    for name in (own, "another"):
        sides = {"a": {"environment": "x", "run": "a"}, "b": {"environment": "y", "run": name}}
        (run / "verdicts.json").write_text(json.dumps({**sides, "differences": [], "verdicts": [verdict("SAME")]}))
        if name == own:
            history.add_comparison(run)
        else:
            with pytest.raises(StoreError, match=rf"verdicts.json: is of the run another, and not of {own}"):
                history.add_comparison(run)


def test_only_one_environment_with_itself_is_a_and_a(compare):
    assert compare(verdict("SAME")).same
    assert not compare(verdict("SAME"), b="x==2").same
    assert not compare(verdict("SAME"), differences=["numpy 1 → 2"]).same


def test_false_alarms_are_counted_by_machine_with_an_exact_interval(compare, tmp_path):
    for _ in range(9):
        compare(verdict("SAME"), verdict("UNDECIDED", path="public"))
    compare(verdict("SLOWER", 1.1), verdict("FASTER", 0.9, "public"))
    compare(verdict("SLOWER", 1.1), b="x==2")
    compare(verdict("SAME"), cpu="Other CPU")
    compare(verdict("SLOWER", 1.1), verdict("SAME", path="public"), cpu="Third CPU")
    alarms = {each.cpu: each for each in false_alarms(History(tmp_path / "history"))}
    first = alarms["Fake CPU"]
    assert (first.verdicts.count, first.verdicts.of, first.same, first.undecided) == (2, 20, 9, 9)
    assert (first.comparisons.count, first.comparisons.of) == (1, 10)
    # Clopper and Pearson for 2 of 20 and 1 of 10 (any table of binomial limits).
    assert first.verdicts.interval == pytest.approx((0.0123, 0.3170), abs=1e-4)
    assert first.comparisons.interval == pytest.approx((0.0025, 0.4450), abs=1e-4)
    assert alarms["Other CPU"].verdicts.count == 0
    third = alarms["Third CPU"]
    assert (third.verdicts.count, third.comparisons.count) == (1, 1), "one wrong verdict of two spoils a comparison"
    assert "wrong verdicts: 2 of 20, 10.0 % (1.2 % to 31.7 %)" in "\n".join(false_alarm_lines(list(alarms.values())))


def test_false_alarms_are_from_the_first_comparison_to_the_last():
    entries = [
        SimpleNamespace(
            same=True, verdicts=[SimpleNamespace(verdict="SAME")], machine="m", machine_cpu="a CPU", started=started
        )
        for started in ("2026-01-02T02:00:00", "2026-01-03T02:00:00", "2026-02-01T02:00:00")
    ]
    (alarms,) = false_alarms(SimpleNamespace(comparisons=entries))
    assert (alarms.first, alarms.last) == ("2026-01-02", "2026-02-01")


def test_without_a_measurement_no_number_is_shown(tmp_path):
    (line,) = false_alarm_lines(false_alarms(History(tmp_path)))
    assert line.startswith("False alarms: not measured.")
    assert not any(character.isdigit() for character in line)


def test_a_damaged_comparison_is_named_and_skipped(compare, tmp_path):
    entry = compare(verdict("SAME"))
    (tmp_path / "history" / "comparisons" / f"{entry.run_id}.json").write_text("{")
    history = History(tmp_path / "history")
    assert history.comparisons == ()
    assert "damaged, and skipped" in history.warnings[0]


def test_a_run_that_is_no_side_of_a_comparison_has_a_message(tmp_path):
    run = fake.write_run(tmp_path / "run", [])
    with pytest.raises(StoreError, match="is no side b of a comparison"):
        History(tmp_path / "history").add_comparison(run)
    edited = text_with_digest('{"differences": "none"}').replace(b"none", b"nine")
    (run / "verdicts.json").write_bytes(edited)
    with pytest.raises(StoreError, match=r"verdicts\.json: not as it was written: damaged, or edited"):
        History(tmp_path / "history").add_comparison(run)
    for damaged in ('{"a": 3}', "[" * 100_000):
        (run / "verdicts.json").write_text(damaged)
        with pytest.raises(StoreError, match="is damaged; compare again"):
            History(tmp_path / "history").add_comparison(run)


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_side_of_a_comparison_that_was_interrupted_is_no_night(tmp_path, side):
    run = fake.write_run(tmp_path / f"run-{side}", [fake.record()], side=side)
    assert side_of(run) == side
    with pytest.raises(StoreError, match="is no side b of a comparison: it has no verdicts") as error:
        History(tmp_path / "history").add_comparison(run)
    assert ("did not come to its verdicts; compare again" in str(error.value)) == (side == "b")
    (run / "release.json").touch()
    assert side_of(run) is None, "a backfill gave it its release"
