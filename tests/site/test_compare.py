"""The compare page and its data: which trials it compares with each other, and what it says of those it does not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fake_records as fake
import pytest
from waiting import PATIENCE_S

from rnnbench.history import History
from rnnbench.results import CommonTrial, Record, judge_apart, judge_once, read_run
from rnnbench.site import write_site

SHOWN = "() => document.getElementById('answer').textContent"


def changed(record: Record, name: str, **params: Any) -> Record:
    """The record of another trial, which differs in these parameters."""
    return record.model_copy(
        update={"trial": f"{record.trial}-{name}", "params": record.params.model_copy(update=params)}
    )


class Compared:
    """The compare page of a site, with what was chosen."""

    def __init__(self, page: Any, root: Path, choice: str) -> None:
        self.page = page
        self.page.goto("about:blank")  # Another address of the same page would not load it.
        self.page.goto(f"{(root / 'compare.html').as_uri()}#{choice}")
        self.page.wait_for_function(SHOWN)

    @property
    def rows(self) -> list[list[str]]:
        return self.page.evaluate(
            "Array.from(document.getElementById('compared').tBodies[0].rows, "
            "(row) => Array.from(row.cells, (cell) => cell.textContent))"
        )

    def text(self, name: str) -> str:
        return self.page.locator(name).inner_text()


@pytest.fixture(scope="module")
def only_page(chromium: Any) -> Any:
    page = chromium.new_page()
    page.set_default_timeout(1000 * PATIENCE_S)
    return page


@pytest.fixture
def page(only_page: Any) -> Iterator[Any]:
    yield only_page
    only_page.evaluate("localStorage.clear()")


def site_of(folder: Path, *runs: list[Record], **changes: Any) -> Path:
    """A site of runs of one day after the other."""
    read = [
        read_run(fake.write_run(folder / f"run{day}", records, started=f"2026-01-{day}T02:00:00Z", **changes))
        for day, records in enumerate(runs, start=10)
    ]
    write_site(read, None, folder / "site")
    return folder / "site"


@pytest.mark.first(1)
@pytest.mark.parametrize("stored", [False, True], ids=["runs", "history"])
def test_other_lengths_and_seeds_are_not_compared_as_one_workload(tmp_path, stored):
    one = fake.record(state="none")
    ragged, seeded = changed(one, "ragged", lengths="ragged"), changed(one, "seeded", seed=7)
    run = fake.write_run(tmp_path / "run", [one, ragged, seeded])
    history = History(tmp_path / "history")
    if stored:
        history.add(run)
    write_site([read_run(run)], history if stored else None, tmp_path / "site")
    (file,) = (tmp_path / "site" / "data").glob("trials-*.js")
    script = file.read_text()
    data = json.loads(script[script.index("{") : script.rindex("}") + 1])
    workloads = {trial: data["texts"][workload] for trial, workload, *_ in data["trials"]}
    assert workloads[ragged.trial] == workloads[one.trial].replace("steps,", "steps with ragged lengths,")
    assert workloads[seeded.trial] == f"{workloads[one.trial]}, seed 7"
    assert len(set(workloads.values())) == 3


def test_backends_are_compared_on_one_network_and_size_only(page, tmp_path):
    first, second = ("fakemlir", "linalg"), ("fakebase", "ops")
    records = [
        fake.record(*target, hidden=hidden, spread=0, bound=hidden * factor * 1e-6)
        for target, factor in ((first, 1), (second, 2))
        for hidden in (128, 512)
    ]
    records += [changed(fake.record(*first), "gru", model={"cell": "gru", "input": 64, "hidden": 128})]
    shown = Compared(page, site_of(tmp_path, records), "by=backends&a=fakemlir:linalg&b=fakebase:ops").rows
    assert [row[4] for row in shown] == ["2.000×", "2.000×"]
    assert sorted(re.findall(r"(\w+), input 64, hidden (\d+)", " ".join(row[1] for row in shown))) == [
        ("lstm", "128"),
        ("lstm", "512"),
    ]


def test_backends_of_two_origins_are_not_compared(page, tmp_path):
    records = [fake.record("fakelib", "ops"), fake.record("fakemlir", "linalg")]
    compared = Compared(page, site_of(tmp_path, records), "by=backends")
    (row,) = compared.rows
    assert row[0] == "not compared: origins of programs differ, library and authored"
    assert row[4:] == ["—", "none", "—", "—", "—"]
    told = "1 comparison: 0 SLOWER, 0 FASTER, 0 UNDECIDED, 0 SAME, 1 without a verdict"
    assert compared.text("#answer").startswith(told)


def test_the_backends_of_which_most_is_compared_are_chosen_first(page, tmp_path):
    records = [fake.record(*target) for target in (("a", "ops"), ("fakelib", "ops"), ("z", "ops"))]
    Compared(page, site_of(tmp_path, [*records, fake.record("z", "ops", chunk=1)]), "by=backends")
    assert [page.locator(f"[name={side}]").input_value() for side in "ab"] == ["a:ops", "z:ops"]


def test_activations_that_differ_stand_beside_the_verdict(page, tmp_path):
    records = [fake.record("fakemlir", "linalg"), fake.record("fakekernel", "tir", bound=3e-4)]
    (row,) = Compared(page, site_of(tmp_path, records), "by=backends&a=fakemlir:linalg&b=fakekernel:tir").rows
    assert row[0] == "SLOWER; kinds of arithmetic differ, exact and approximate"


def test_one_program_that_was_measured_once_has_no_ratio_to_itself(page, tmp_path):
    one = fake.record(time="unrolled", chunk=1)
    records = [one, fake.record(time="looped", chunk=1, bound=None, same_as=one.trial)]
    (row,) = Compared(page, site_of(tmp_path, records), "by=strategies").rows
    assert (row[0], row[4]) == ("one program, measured once", "—")


@pytest.mark.first(2)
@pytest.mark.parametrize("stored", [False, True], ids=["runs", "history"])
@pytest.mark.parametrize("groups", [(0, 0), (0, 1)])
def test_trials_that_were_not_sampled_in_turn_have_the_interval_of_two_runs(page, tmp_path, groups, stored):
    sides = [fake.record(time=time, spread=0.05, processes=5, seed=k) for k, time in enumerate(("looped", "unrolled"))]
    sampled = [
        record.model_copy(update={"common_trial": CommonTrial(trial=sides[0].trial, group=group, groups=2, bound=1e-4)})
        for record, group in zip(sides, groups, strict=True)
    ]
    run, history = fake.write_run(tmp_path / "run", sampled), History(tmp_path / "history")
    if stored:
        history.add(run)
    write_site([read_run(run)], history if stored else None, tmp_path / "site")
    (row,) = Compared(page, tmp_path / "site", "by=strategies").rows
    base, new = (record.latency("bound").process_medians for record in sides)
    pairs = judge_once([b / a for a, b in zip(base, new, strict=True)], confidence=0.95)
    judged = pairs if groups[0] == groups[1] else judge_apart(base, new)
    assert row[5] == "{:.3f} to {:.3f}".format(*judged.interval)


def test_devices_and_threads_of_one_program_are_compared(page, tmp_path):
    one = fake.record(spread=0)
    records = [one, changed(fake.record(bound=4.321e-5, spread=0), "more", threads=2)]
    (row,) = Compared(page, site_of(tmp_path, records), "by=devices").rows
    assert row[4] == "0.432×"
    assert "fakelib:ops, 16 steps a call; fake_case: lstm, input 64, hidden 128" in row[1]


def test_ratios_are_those_of_the_records_to_their_last_digit(page, tmp_path):
    old, new = fake.record(spread=0), fake.record(bound=1.3579e-4, spread=0)
    new = new.model_copy(
        update={
            "timing": new.timing.model_copy(update={"build_s": 4.321}),
            "artifact": new.artifact.model_copy(update={"nbytes": 543_210}),
            "memory": new.memory.model_copy(update={"run_peak": 123_456_789}),
        }
    )
    (row,) = Compared(page, site_of(tmp_path, [old], [new]), "by=nights").rows
    assert row[4] == "1.358×"
    ratios = (4.321 / old.timing.build_s, 543_210 / old.artifact.nbytes, 123_456_789 / old.memory.run_peak)
    assert row[6:] == [f"{ratio:.2f}×" for ratio in ratios]


def test_two_nodes_of_a_run_are_not_compared(page, tmp_path):
    records = [fake.record(time=time).model_copy(update={"node": time}) for time in ("looped", "unrolled")]
    (row,) = Compared(page, site_of(tmp_path, records), "by=strategies").rows
    assert (row[0], row[4]) == ("not compared: nodes differ, looped and unrolled", "—")


def test_what_differs_between_two_nights_beside_the_programs_is_told(page, tmp_path):
    record = fake.record()
    newer = record.model_copy(update={"version": {"fakelib-package": "2.0"}})
    first = read_run(fake.write_run(tmp_path / "a", [record], started="2026-01-10T02:00:00Z"))
    second = read_run(fake.write_run(tmp_path / "b", [newer], started="2026-01-11T02:00:00Z", rnnbench="0.2.0"))
    write_site([first, second], None, tmp_path / "site")
    compared = Compared(page, tmp_path / "site", "by=nights")
    assert compared.text("#caution") == (
        "rnnbench differs: 0.1.0 in A, 0.2.0 in B. "
        "Versions of fakelib differ: fakelib-package 1.2.3 in A, fakelib-package 2.0 in B."
    )


def test_nights_of_other_cases_do_not_come_between_two_of_one_case(page, tmp_path):
    """The newest run of each version has other cases: nothing of the two could be compared."""
    old = fake.record()
    new = old.model_copy(update={"version": {"fakelib-package": "2.0"}})
    runs = []
    for day, (record, case) in enumerate(((old, "one"), (new, "one"), (old, "other"), (new, "third")), start=10):
        mine = record.model_copy(update={"trial": f"{case}/{record.trial}", "case": case})
        folder = fake.write_run(tmp_path / f"run{day}", [mine], started=f"2026-01-{day}T02:00:00Z", cases=(case,))
        runs.append(read_run(folder))
    write_site(runs, None, tmp_path / "site")
    for kind in ("versions", "nights"):
        compared = Compared(page, tmp_path / "site", f"by={kind}")
        assert [row[1] for row in compared.rows] == [f"one/{old.trial}"], kind


def test_a_night_that_the_site_does_not_have_is_told(page, tmp_path):
    root = site_of(tmp_path, [fake.record()], [fake.record()])
    assert "A '0123456789abcdef'" in Compared(page, root, "a=0123456789abcdef&by=nights").text(".misses")
    page.locator("[name=by]").select_option("strategies")
    page.wait_for_function("() => !location.hash.includes('a=')")
    page.wait_for_function("() => !document.querySelector('.misses')")
    assert page.evaluate("location.hash") == "#by=strategies"


def test_a_latency_that_is_no_number_is_no_zero(page, tmp_path):
    root = site_of(tmp_path, [fake.record()], [fake.record()])
    for file in (root / "data").glob("night-*.js"):
        head, _, rows = file.read_text().partition(",")
        (row,) = json.loads(rows.rpartition(")")[0])
        row[5] = [[None] * len(medians) for medians in row[5]]
        file.write_text(f"{head},{json.dumps([row])});")
    (row,) = Compared(page, root, "by=nights").rows
    assert row[2:5] == ["—", "—", "—"]
