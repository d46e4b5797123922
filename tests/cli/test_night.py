"""`rnnbench night` as a user meets it, with releases of the fake backend."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from fake_releases import NOT_INSTALLABLE, fake_index, fake_measurements, fake_runs
from harness_trials import make_trial

from rnnbench import site
from rnnbench.cli.night import _conformance_cases
from rnnbench.cli.selection import Selection
from rnnbench.night import collect

pytest.importorskip("duckdb")

ARGUMENTS = (
    "night",
    "tiny.yaml",
    "--backend=fake:honest",
    "--filter=chunk=4,state=stitched",
    "--same-trials=0",
    "--anchors=none",
)


@pytest.fixture
def index(monkeypatch):
    """Makes the index have these releases, with the latency that a comparison shows of each."""
    # The baseline would be another backend: these nights have the fake one only.
    monkeypatch.setattr("rnnbench.plan.named_targets.baselines", list)
    fake_runs(monkeypatch)
    monkeypatch.setattr(collect, "write_site", lambda *content: None)  # A second of each night; one test makes it.

    def make(**latencies):
        releases = {version.replace("_", ".")[1:]: latency for version, latency in latencies.items()}
        fake_index(monkeypatch, dict.fromkeys(releases, ""))
        fake_measurements(monkeypatch, releases)

    return make


def test_the_status_and_the_page_say_what_was_found(rnnbench, folder, index, monkeypatch):
    index(v1_0=1.0)
    first = rnnbench(*ARGUMENTS)
    assert "**Nothing to tell**" in first.stdout
    assert "summary  reports/night/night.md" in first.stdout
    index(v1_0=1.0, v1_1=1.2)
    monkeypatch.setattr(collect, "write_site", site.write_site)
    assert "**1 alert confirmed, 0 closed**" in rnnbench(*ARGUMENTS, status=1).stdout
    assert "evidence: compared" in (folder / "results" / "alerts.yaml").read_text()
    assert (folder / "reports" / "night" / "site" / "index.html").is_file()
    assert "state: confirmed" in (folder / "results" / "alerts.yaml").read_text()


@pytest.mark.proof
def test_what_cannot_be_installed_is_status_3(rnnbench, index, monkeypatch):
    index(v1_0=1.0)
    rnnbench(*ARGUMENTS)
    fake_index(monkeypatch, {"1.0": "", "1.1": NOT_INSTALLABLE})
    assert "No matching distribution" in rnnbench(*ARGUMENTS, status=3).stdout


@pytest.mark.parametrize("package", ["duckdb", "ruamel.yaml"])
def test_what_the_history_needs_is_missed_before_anything_is_measured(rnnbench, folder, index, monkeypatch, package):
    index(v1_0=1.0)
    monkeypatch.setitem(sys.modules, package, None)
    told = rnnbench(*ARGUMENTS, status=2)
    assert "pip install 'rnnbench[history]'" in told.stderr
    assert not (folder / "results").exists()
    assert "collect it with" in rnnbench(*ARGUMENTS, "--measure-only").stdout


def test_the_plan_names_a_job_for_each_changed_backend_and_one_for_the_others(rnnbench, folder, index):
    index(v1_0=1.0)
    plan = json.loads(rnnbench(*ARGUMENTS, "--plan").stdout)
    assert plan["jobs"] == [{"name": "unchanged", "backends": "fake"}]
    assert not (folder / "results").exists(), "nothing is measured"
    rnnbench(*ARGUMENTS)
    index(v1_0=1.0, v1_1=1.2)
    plan = json.loads(rnnbench(*ARGUMENTS, "--plan").stdout)
    assert plan["jobs"] == [{"name": "fake", "backends": "fake"}]
    assert plan["backends"]["fake"] == {"good": "1.0", "newest": "1.1", "problem": ""}


def test_what_one_job_measured_another_one_collects(rnnbench, folder, index):
    index(v1_0=1.0)
    rnnbench(*ARGUMENTS)
    index(v1_0=1.0, v1_1=1.2)
    (folder / "part").mkdir()
    (folder / "part" / "night.yaml").write_bytes((folder / "results" / "night.yaml").read_bytes())
    there = ("--state=part/night.yaml", "--results=part/results")
    rnnbench(*ARGUMENTS, *there, "--measure-only")
    done = rnnbench("night", "--collect", "part", status=1)
    assert "**1 alert confirmed, 0 closed**" in done.stdout
    state = yaml.safe_load((folder / "results" / "night.yaml").read_text())
    assert state["held"]["fake"]["version"] == "1.1"
    lost = rnnbench("night", "--collect", "part", "--lost-check=fake", status=1)
    assert "fake: its conformance was not checked: its check was lost" in lost.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("night",), "give at least one case file"),
        (("night", "tiny.yaml", "--budget=soon"), "'--budget': expected a duration"),
        (("night", "tiny.yaml", "--collect", "."), "--collect takes what was measured; do not give CASE…"),
        (("night", "tiny.yaml", "--pre=fakee"), "unknown backend 'fakee'; did you mean 'fake'?"),
        (("night", "tiny.yaml", "--checked", "."), "--checked names runs that are collected with --collect"),
        (("night", "tiny.yaml", "--lost-check=fake"), "--lost-check names checks that were to be collected with"),
        (("night", "--collect", ".", "--lost-check=fakee"), "unknown backend 'fakee'; did you mean 'fake'?"),
        (("night", "--collect", "."), "night.yaml: has no night to collect"),
        (("night", "--collect", "tiny.yml"), "'tiny.yml' does not exist; did you mean 'tiny.yaml'?"),
        (("publish", "."), "night.json: is no summary of a night"),
    ],
)
def test_a_wrong_argument_of_a_night_is_refused_with_what_is_wrong(rnnbench, index, arguments, message):
    index(v1_0=1.0)
    assert message in rnnbench(*arguments, status=2).stderr


@pytest.mark.parametrize("content", ["good: 3", "{", "schema_version: 9", "good: {fake: {version: '1'}}"])
def test_a_damaged_state_has_a_message_and_stays(rnnbench, folder, index, content):
    index(v1_0=1.0)
    (folder / "results").mkdir()
    file = folder / "results" / "night.yaml"
    file.write_text(content)
    assert "night.yaml" in rnnbench(*ARGUMENTS, status=2).stderr
    assert file.read_text() == content


def test_damaged_alerts_are_told_before_anything_is_measured(rnnbench, folder, index):
    index(v1_0=1.0)
    (folder / "results").mkdir()
    (folder / "results" / "alerts.yaml").touch()
    assert "alerts.yaml:1:1: expected one YAML document" in rnnbench(*ARGUMENTS, status=2).stderr
    assert not (folder / "results" / "night.yaml").exists()


@pytest.mark.parametrize("devices", [["cpu"], ["cuda"], ["cpu", "cuda"]])
def test_new_versions_are_checked_on_the_devices_of_the_night(devices):
    """On a GPU, a check of the programs for the processor would say nothing of those that are measured."""
    smoke = Path(__file__).parents[2] / "cases" / "smoke.yaml"
    trials = [replace(make_trial(), device=device) for device in devices]
    checked = _conformance_cases(Selection((), ()), (smoke,), None, trials).trials
    assert {trial.device for trial in checked} == set(devices)
    assert {trial.target.backend for trial in checked} == {"fake"}
