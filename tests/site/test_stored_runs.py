"""A site of a history alone: rows become records again, and pages say what rows do not have."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

import fake_records as fake
import pytest

pytest.importorskip("duckdb")

from rnnbench.devices import Device
from rnnbench.history import History
from rnnbench.results import (
    CheckResult,
    CommonTrial,
    ExpectedFailureResult,
    LatencyFloor,
    MemoryUse,
    Run,
    read_run,
    words_of,
)
from rnnbench.site import newest_runs, write_site
from rnnbench.site.content import read_content
from rnnbench.site.stored_records import record_of
from rnnbench.site.stored_runs import StoredRun

NOT_IN_ROWS = {"checks", "worst_rounding", "machine", "affinity"}
"""Columns that a record of a row has not: passed checks, the whole description of the machine, and cores."""


def full_records():
    """Every outcome, and a record with what a row can have."""
    yield from fake.whole_run()
    record = fake.record("fakelib", "ops", chunk=32)
    yield record.model_copy(
        update={
            "floor": LatencyFloor(nbytes=9, operations=8, weights=7, hoisted=None, level="L2", seconds=1e-6, ratio=3.0),
            "device": Device("synthetic GPU", "synthetic driver", "sm_00", 1 << 30, software=True),
            "memory": MemoryUse(run_peak=5, growth=0.5, growth_calls=1000),
            "conformance": {"values": CheckResult(verdict="fail"), "reset": CheckResult(verdict="fail")},
            "expected_failures": (
                ExpectedFailureResult(what="values", verdict="failed", reason="known", upstream="a/b#1"),
            ),
            "outcome": "nonconforming",
            "common_trial": CommonTrial(trial=record.trial, group=1, groups=2, bound=1e-6),
        }
    )


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> tuple[History, Run]:
    folder = fake.write_run(tmp_path_factory.mktemp("run") / "fake_run", full_records())
    root = tmp_path_factory.mktemp("history")
    History(root).add(folder)
    run = read_run(folder)
    shutil.rmtree(folder)
    return History(root), run


def test_a_record_of_a_row_has_the_figures_of_the_record(stored):
    history, run = stored
    (made,) = newest_runs(history, Path("nowhere"))
    assert isinstance(made, StoredRun)
    assert made.warnings == ()
    before = {row["trial"]: row for row in run.rows()}
    for row in made.rows():
        wanted = before[row["trial"]]
        differing = {name for name in row if row[name] != wanted[name] and name not in NOT_IN_ROWS | {"started"}}
        assert not differing, row["trial"]
    assert made.fingerprint == next(iter(before.values()))["machine"]


def test_failed_checks_and_expected_failures_keep_their_names(stored):
    history, run = stored
    (made,) = newest_runs(history, Path("nowhere"))
    record = made.by_trial[run.records[-1].trial]
    assert {name: check.verdict for name, check in record.conformance.items()} == {"values": "fail", "reset": "fail"}
    assert [failure.what for failure in record.expected_failures] == ["values"]
    assert record.fails_as_expected == run.records[-1].fails_as_expected


def test_a_device_that_the_processor_played_is_still_known_as_one(stored):
    history, run = stored
    (made,) = newest_runs(history, Path("nowhere"))
    assert made.by_trial[run.records[-1].trial].device == run.records[-1].device
    assert made.by_trial[run.records[-1].trial].on_software_device


def test_a_site_of_a_history_alone_has_all_pages_and_says_what_it_lacks(stored, tmp_path):
    history, _ = stored
    (made,) = newest_runs(history, Path("nowhere"))
    few = replace(made, records=(*made.records[:3], made.records[-1]))
    write_site([few], history, tmp_path)
    pages = [file.read_text(encoding="utf-8") for file in (tmp_path / "trials").iterdir()]
    assert len(pages) == len(few.records)
    assert all("The folder of this run is not here" in page for page in pages)
    assert "it has the names of failed checks only" in (tmp_path / "conformance.html").read_text(encoding="utf-8")
    rows = [file.read_text() for file in (tmp_path / "records").iterdir()]
    assert all('"run_id":' in row for row in rows)


def test_a_row_without_a_count_of_checks_has_a_page(stored, tmp_path):
    history, _ = stored
    (made,) = newest_runs(history, Path("nowhere"))
    record = next(record for record in made.records if not record.conformance)
    row = {name: value for name, value in made.stored[record.trial].items() if not name.startswith("checks")}
    write_site([replace(made, records=(record,), stored={record.trial: row})], history, tmp_path)
    assert len(list((tmp_path / "trials").iterdir())) == 1


def test_a_run_whose_folder_is_there_is_read_from_it(stored, tmp_path):
    history, run = stored
    fake.write_run(tmp_path / run.info.run, run.records)
    (found,) = newest_runs(history, tmp_path)
    assert not isinstance(found, StoredRun)
    assert found.records == run.records


def test_runs_with_and_without_a_folder_stand_beside_each_other(stored, tmp_path):
    """The history has less of the machine's description than a run's folder."""
    history, _ = stored
    other = fake.write_run(tmp_path / "other", [fake.record("fakelib", "ops", chunk=2)], cases=("other",))
    (machine,) = read_content([*newest_runs(history, Path("nowhere")), read_run(other)], history).machines
    assert machine.is_stored
    assert len(machine.view.runs) == 2


@pytest.mark.parametrize("odd", [{"chunk": "x"}, {"memory_steady": math.inf}, {"model": "[" * 100_000}])
def test_a_row_that_is_no_record_is_named_and_left_out(stored, monkeypatch, odd):
    history, run = stored

    def some_fail(row):
        return record_of({**row, **odd} if row["trial"] == run.records[0].trial else row)

    monkeypatch.setattr("rnnbench.site.stored_runs.record_of", some_fail)
    (made,) = newest_runs(history, Path("nowhere"))
    assert len(made.records) == len(run.records) - 1
    (warning,) = made.warnings
    assert warning.startswith("fake_run: a row of the history is no record and was left out: ")


@pytest.mark.parametrize(
    ("name", "value"), [("model", "[1, 2"), ("support", "maybe"), ("chunk", "x"), ("outcome", None)]
)
def test_a_damaged_row_is_a_value_error(stored, name, value):
    history, _ = stored
    (made,) = newest_runs(history, Path("nowhere"))
    row = dict(next(iter(made.stored.values())))
    with pytest.raises(ValueError, match=r"."):
        record_of({**row, name: value})


def test_a_command_with_spaces_in_a_path_is_stored_as_a_shell_takes_it(tmp_path):
    command = ("rnnbench", "run", "my cases/fake case.yaml", "--set", "model.hidden=[1, 2]")
    history = History(tmp_path / "history")
    history.add(fake.write_run(tmp_path / "run", [fake.record()], command=command))
    (entry,) = history.runs
    assert entry.command == "rnnbench run 'my cases/fake case.yaml' --set 'model.hidden=[1, 2]'"
    (run,) = newest_runs(history, tmp_path / "none")
    assert run.info.command == command


def test_a_command_that_an_earlier_version_stored_is_read():
    assert words_of("rnnbench run it's.yaml") == ("rnnbench", "run", "it's.yaml")
