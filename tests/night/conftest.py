"""Nights of the fake backend: its releases, latencies and verdicts are made up, and no process is started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import made_history
import pytest
from fake_releases import fake_checks, fake_index, fake_measurements, fake_runs
from harness_trials import SilentObserver, make_trial

from rnnbench.history import Alerts, History
from rnnbench.night import (
    ConformanceCases,
    MeasuredNight,
    NightFolders,
    NightPlan,
    VersionSearch,
    collect,
    collect_night,
    measure_night,
    read_state,
)
from rnnbench.results import Store, tables
from rnnbench.sampling import PairBudget


class Nights:
    """A folder in which one night follows another."""

    def __init__(self, folder, patch):
        self.folder, self.patch = folder, patch
        self.trials = tuple(make_trial(chunk=chunk) for chunk in (1, 4))
        self.folders = NightFolders(
            folder / "history", folder / "alerts.yaml", folder / "night.yaml", folder / "reports" / "night"
        )
        self.store = Store(folder / "results")
        self.said = []
        self.conformance = ConformanceCases()
        self.checked = []
        """Versions whose conformance was checked."""
        self.compared = []
        """Versions that were compared with another one, or with themselves, in the newest night."""

    def index(self, releases, latencies=None, scatter=0.001):
        """The releases of the index, the latency, or outcome, that a comparison shows of each, and how pairs differ."""
        fake_index(self.patch, releases)
        self.compared = fake_measurements(self.patch, latencies or dict.fromkeys(releases, 1.0), scatter)

    def conforming(self, outcomes):
        """The outcome that the conformance check of each version ends with; of others it is ok."""
        self.checked = fake_checks(self.patch, outcomes)
        self.conformance = ConformanceCases(
            tuple(replace(make_trial(chunk=chunk), case="conforming") for chunk in (2, 3)),
            {},
            (Path("cases/of models"),),
        )

    def plan(self, **changes):
        settings = {"search": VersionSearch(), "same_trials": 0, "anchors": (), **changes}
        return NightPlan(
            trials=self.trials,
            expected={},
            budget=PairBudget(60.0, 0.03),
            store=self.store,
            state=self.folders.state,
            reports=self.folder / "reports",
            environments=self.folder / "environments",
            conformance=self.conformance,
            **settings,
        )

    def measure(self, **changes):
        self.compared.clear()
        measure_night(self.plan(**changes), SilentObserver(), self.said.append)
        return self.state.night

    def night(self, **changes):
        """A whole night: what it found."""
        measured = MeasuredNight(self.measure(**changes), self.store)
        return collect_night([measured], self.folders)

    @property
    def state(self):
        return read_state(self.folders.state)

    @property
    def alerts(self):
        return {alert.id: alert for alert in Alerts.read(self.folders.alerts).all}

    @property
    def history(self):
        return History(self.folders.history)


@pytest.fixture
def nights(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.setattr(tables, "open_database", made_history.shared_database)
    fake_runs(monkeypatch)
    monkeypatch.setattr("sys.argv", ["rnnbench", "night"])  # A run keeps its command, and a check names its cases.
    monkeypatch.setattr(collect, "write_site", lambda *content: None)  # A second of each night; two tests make it.
    return Nights(tmp_path, monkeypatch)
