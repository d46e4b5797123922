"""Nights have what was measured in them, whether they are read from runs or from the history."""

from __future__ import annotations

import hashlib
import json
import math
from statistics import geometric_mean

import fake_records as fake
import numpy as np
import pytest

from rnnbench.history import Alerts, History
from rnnbench.reports import seconds
from rnnbench.results import read_run
from rnnbench.site import newest_runs, write_site
from rnnbench.site.content import read_content
from rnnbench.site.nights import BUILD_FIGURES, FIGURES, AllSeries, nights_of
from rnnbench.site.numbers import scaled_each

MACHINE = {"cpu": "Fake CPU 9000", "python": "3.11.7", "kernel": "6.1.0"}


@pytest.mark.parametrize("stored", [False, True], ids=["runs", "history"])
@pytest.mark.parametrize("built", ["", "2026-11-01T00:00:00Z"])
def test_a_build_of_an_earlier_run_is_no_figure_of_a_night(tmp_path, stored, built):
    record = fake.record()
    record = record.model_copy(update={"timing": record.timing.model_copy(update={"built": built})})
    folder, history = fake.write_run(tmp_path / "run", [record]), History(tmp_path / "history")
    if stored:
        history.add(folder)
    (night,) = nights_of(history, []) if stored else nights_of(None, [read_run(folder)])
    figures = dict(zip(FIGURES, night.figures[0], strict=True))
    assert not math.isnan(figures["artifact_bytes"])
    assert [math.isnan(figures[name]) for name in BUILD_FIGURES] == [bool(built)] * len(BUILD_FIGURES)


def test_a_night_is_the_same_whether_it_is_read_from_its_run_or_from_the_history(tmp_path):
    measured = fake.record()
    bound = fake.with_interval(measured.timing.latency["bound"])
    records = [
        fake.with_latencies(measured, bound=bound),
        fake.record(chunk=1, outcome="nonconforming"),
        fake.record(chunk=2, bound=None, same_as=measured.trial),
        fake.record(chunk=4, launch="graph", device=fake.SOFTWARE_DEVICE),
    ]
    folder, history = fake.write_run(tmp_path / "run", records, machine=MACHINE), History(tmp_path / "history")
    history.add(folder)
    (from_run,), (from_history,) = nights_of(None, [read_run(folder)]), nights_of(history, [])
    assert from_history.trials == from_run.trials
    np.testing.assert_array_equal(from_history.figures, from_run.figures)
    np.testing.assert_array_equal(from_history.latencies, from_run.latencies)
    processes = [[list(map(list, paths)) for paths in night.processes] for night in (from_history, from_run)]
    assert processes[0] == processes[1]
    assert {trial.software for trial in from_run.trials} == {"Python 3.11.7, kernel 6.1.0"}
    assert {trial.same_as for trial in from_run.trials} == {"", measured.trial}


def test_the_mean_of_a_latency_has_the_digits_of_its_records(tmp_path):
    """A browser that computed it from medians of five digits gave another third digit now and then."""
    records = [fake.record(chunk=chunk, spread=0.4, processes=5, seed=chunk) for chunk in range(1, 30)]
    (night,) = nights_of(None, [read_run(fake.write_run(tmp_path / "run", records))])
    by_chunk = {record.params.chunk: record.latency("bound").process_medians for record in records}
    medians = [by_chunk[trial.identity.chunk] for trial in night.trials]
    assert [paths[0][0] for paths in night.processes] == pytest.approx(list(map(geometric_mean, medians)), rel=1e-14)
    power, ((mean, *_), *_) = scaled_each(night.processes)[0]
    assert seconds(float(f"{mean}e{power}")) == seconds(geometric_mean(medians[0]))


def test_what_nights_have_in_common_is_in_memory_once(tmp_path):
    """And each night has its own rows, in the order of their trials, whatever their order in the file."""
    history, records = History(tmp_path / "history"), [fake.record(chunk=chunk) for chunk in (4, 1, 2)]
    for night, kept in enumerate((records, records[:2], records)):
        run = fake.write_run(tmp_path / f"run{night}", kept, started=f"2026-01-0{night + 1}T02:00:00Z", seed=night)
        history.add(run)
    nights = nights_of(history, [])
    assert [len(night.trials) for night in nights] == [3, 2, 3]
    assert [trial.identity.chunk for trial in nights[0].trials] == [1, 2, 4]
    assert all(ours is theirs for ours, theirs in zip(nights[0].trials, nights[2].trials, strict=True))
    series = AllSeries(nights).of(nights[0].entry.machine, records[2].trial)
    assert series.nights == (0, 2)
    assert series.latencies[:, 0, 0].tolist() == [records[2].latency("bound").median] * 2
    assert AllSeries(nights).of("another", records[2].trial).timed.nights == ()


def test_a_run_of_the_future_hides_no_newer_one(tmp_path):
    """Given to the site, it is taken for the oldest. A night it is not: nobody knows which."""
    ahead = read_run(fake.write_run(tmp_path / "ahead", [fake.record()], started="8026-01-31T12:00:00Z", seed=1))
    now = read_run(fake.write_run(tmp_path / "now", [fake.record()]))
    content = read_content([ahead, now], None)
    assert [night.entry.run for night in content.nights] == ["now"]
    assert content.newest.run == "now"
    assert {shown.run.name for shown in content.machines[0].shown.values()} == {"now"}
    assert "ahead is dated 8026-01-31T12:00:00Z, in the future, and is taken for the oldest run" in content.warnings

    (only,) = read_content([ahead], None).nights
    assert only.entry.run == "ahead"


def test_a_run_without_a_record_is_a_night_without_trials(tmp_path):
    history = History(tmp_path / "history")
    history.add(fake.write_run(tmp_path / "run", []))
    (night,) = nights_of(history, [])
    assert night.trials == ()
    write_site(newest_runs(history, tmp_path / "none"), history, tmp_path / "site")
    assert "1 run" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


@pytest.mark.first(1)
@pytest.mark.parametrize("odd", ["chunk = NULL", "steps = NULL", "threads = NULL", "build_s = 'inf'"])
def test_a_damaged_row_with_a_digest_of_its_own_ends_no_site(tmp_path, odd):
    """As an earlier rnnbench or another tool may have written it."""
    duckdb = pytest.importorskip("duckdb")
    history = History(tmp_path / "history")
    run_id = history.add(fake.write_run(tmp_path / "run", [fake.record()])).entry.run_id
    rows, entry = (history.root / name for name in (f"rows/{run_id}.parquet", f"runs/{run_id}.json"))
    duckdb.sql(f"CREATE TABLE odd AS FROM '{rows}'")
    duckdb.sql(f"UPDATE odd SET {odd}")
    duckdb.sql(f"COPY odd TO '{rows}'")
    duckdb.sql("DROP TABLE odd")
    content = json.loads(entry.read_text())
    del content["content_digest"]
    entry.write_text(json.dumps({**content, "rows_sha256": hashlib.sha256(rows.read_bytes()).hexdigest()}))
    (night,) = nights_of(History(history.root), [])
    assert night.figures[:, 0].tolist() == pytest.approx([math.nan] if "build_s" in odd else [], nan_ok=True)
    runs = newest_runs(history, tmp_path / "none")
    write_site(runs, History(history.root), tmp_path / "site")
    told = [warning for warning in read_content(runs, History(history.root)).warnings if "its night" in warning]
    without = "run: 1 row of the history without chunk, steps, batch or threads, left out of its night; delete runs/"
    assert [warning.startswith(without) for warning in told] == ([] if "build_s" in odd else [True])


def test_a_site_without_a_file_of_alerts_says_that_no_change_has_a_state(tmp_path):
    history = History(tmp_path / "history")
    history.add(fake.write_run(tmp_path / "run", [fake.record()]))
    for alerts, is_told in ((None, True), (Alerts(tmp_path / "alerts.yaml", (), (), "alerts: []", frozenset()), False)):
        write_site(newest_runs(history, tmp_path / "none"), history, tmp_path / "site", alerts)
        assert ("without a file of alerts" in (tmp_path / "site" / "alerts.html").read_text()) is is_told
