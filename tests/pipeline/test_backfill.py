"""A backfill measures what the history lacks, the newest release first, until its time is spent."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace

import fake_releases
import pytest
from fake_releases import NOT_INSTALLABLE, PACKAGE, YANKED, fake_index, fake_measurements
from harness_trials import SilentObserver, make_trial
from waiting import PATIENCE_S

pytest.importorskip("duckdb")

from rnnbench.backends import Probe
from rnnbench.devices import Device
from rnnbench.history import History, release_series
from rnnbench.pipeline import (
    Backfill,
    NotNowError,
    Release,
    SideError,
    backfill,
    list_releases,
    measure_releases,
    stored_reference,
)
from rnnbench.results import Store
from rnnbench.sampling import PairBudget

INDEX = {"1.9": "", "1.10": "", "1.11": NOT_INSTALLABLE, "1.12": YANKED, "1.13": "", "1.14": ""}
LATENCIES = {"1.9": 1.0, "1.10": 1.0, "1.12": 9.0, "1.13": 1.05, "1.14": 1.05}


@pytest.fixture
def measure(tmp_path, monkeypatch):
    """Backfills the fake package's releases; returns what became of each, and the versions that were measured."""
    fake_index(monkeypatch, INDEX)
    compared = fake_measurements(monkeypatch, LATENCIES)

    def run(trials=1, reference="1.14", **changes):
        compared.clear()
        chosen = tuple(make_trial(chunk=chunk) for chunk in (4, 2)[:trials])
        settings = {"within": 600.0, **changes}
        plan = Backfill(
            chosen,
            Release(PACKAGE, reference),
            PairBudget(60, 0.03, 6),
            Store(tmp_path / "results"),
            tmp_path / "history",
            tmp_path / "environments",
            **settings,
        )
        done = list(measure_releases(plan, list_releases(PACKAGE), SilentObserver(), lambda text: None))
        return {one.release.version: one.problem for one in done}, list(compared)

    return run


def series(tmp_path):
    (found,) = [each for each in release_series(History(tmp_path / "history")) if each.path == "bound"]
    return found


@pytest.mark.proof
def test_every_release_has_a_point_in_the_order_of_versions(measure, tmp_path):
    problems, compared = measure()
    assert compared == ["1.14", "1.13", "1.10", "1.9"], "also the reference, beside itself"
    assert "No matching distribution" in problems["1.11"]
    assert "withdrawn by its makers (yanked): it was wrong" in problems["1.12"]
    found = series(tmp_path)
    assert [point.version for point in found.points] == list(INDEX)
    assert [point.outcome for point in found.points] == ["ok", "ok", "unavailable", "unavailable", "ok", "ok"]
    steps = [(step.before, step.after, step.judged.verdict) for step in found.steps()]
    assert steps == [("1.9", "1.10", "SAME"), ("1.10", "1.13", "SLOWER"), ("1.13", "1.14", "SAME")]


@pytest.mark.proof
def test_what_is_there_is_not_measured_again(measure):
    measure()
    assert measure() == ({}, [])
    assert measure(retry=True)[0].keys() == {"1.11", "1.12"}
    assert measure(trials=2)[1] == ["1.14", "1.13", "1.10", "1.9"], "the new trial"
    assert measure(reference="1.13")[1], "beside another reference"


@pytest.mark.proof
def test_what_another_gpu_measured_is_measured_here_and_what_could_not_be_installed_is_not(measure, monkeypatch):
    def on(name):
        gpu = Device(name, "a driver", "9.0")
        monkeypatch.setattr(backfill, "probe_or_stand_in", lambda _: Probe(routes=("honest",), devices={"cpu": gpu}))
        monkeypatch.setattr(fake_releases, "DEVICE", gpu)
        return measure()

    measured = ["1.14", "1.13", "1.10", "1.9"]
    assert on("H100")[1] == measured
    assert on("H100") == ({}, [])
    problems, compared = on("A100")
    assert (compared, problems.keys()) == (measured, set(measured))
    assert on("H100") == on("A100") == ({}, [])


def test_no_release_is_begun_when_the_time_is_spent_and_the_next_call_goes_on(measure, tmp_path):
    assert measure(within=-1.0)[1] == []
    assert stored_reference(tmp_path / "history", PACKAGE) == "", "there is none yet"
    assert len(measure()[1]) == 4
    assert stored_reference(tmp_path / "history", PACKAGE) == "1.14"
    assert stored_reference(tmp_path / "history", "another-package") == ""


def test_no_release_is_begun_that_would_end_too_late_if_it_took_as_long_as_the_longest(measure, monkeypatch):
    """Of three releases that take 10, 100 and 100 s, the third one would end after 210 s."""
    clock, took = [0.0], iter([10.0, 100.0, 100.0])

    def pass_time(plan, release, *others):
        clock[0] += next(took)

    monkeypatch.setattr(backfill, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(backfill, "_measure", pass_time)
    problems, _ = measure(within=200.0)
    assert [version for version, problem in problems.items() if not problem] == ["1.14", "1.13"]


def test_a_release_that_does_not_conform_is_in_the_history_with_its_reason(measure, tmp_path, monkeypatch):
    fake_measurements(monkeypatch, {**LATENCIES, "1.10": "nonconforming"})
    problems, _ = measure()
    assert problems["1.10"] == "nonconforming: planted"
    point = series(tmp_path).points[1]
    assert (point.outcome, point.reason, point.ratios) == ("nonconforming", "planted", ())


def test_an_interrupt_stops_the_installers(measure, monkeypatch):
    """The first release is being installed when the command is interrupted."""
    stopped, begun = Event(), Event()

    def make(requirements, extras, cache, stop):
        if requirements.endswith("==1.14"):
            assert begun.wait(PATIENCE_S)
            raise KeyboardInterrupt
        begun.set()
        if stop.wait(PATIENCE_S):
            stopped.set()
        raise SideError("it was stopped")

    monkeypatch.setattr(backfill, "make_environment", make)
    with pytest.raises(KeyboardInterrupt):
        measure()
    assert stopped.is_set()


@pytest.mark.parametrize(("step", "measured"), [("make_environment", []), ("open_side", ["1.14"])])
def test_what_this_machine_cannot_install_now_is_no_result_of_a_release(measure, monkeypatch, tmp_path, step, measured):
    whole = getattr(backfill, step)

    def without_room(text, *others):
        if text.endswith("==1.13"):
            raise NotNowError("its disk is full")
        return whole(text, *others)

    monkeypatch.setattr(backfill, step, without_room)
    with pytest.raises(NotNowError, match="its disk is full"):
        measure()
    assert [entry.release.version for entry in History(tmp_path / "history").runs] == measured
