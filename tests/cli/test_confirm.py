"""`rnnbench history confirm`, with measurements of a fake backend's versions that are made up."""

from __future__ import annotations

import pytest
from fake_releases import fake_measurements

pytest.importorskip("ruamel.yaml")

from rnnbench.pipeline import confirmation

ALERTS = """\
schema: 1
alerts:
- id: slow
  state: new
  note: seen on both machines  # by hand
  found: {{machine: m, backend: fake, what: {what}, evidence: candidate, night: '2026-01-02T02:00:00', run: new,
    versions: [rnnbench-fake 1.0, rnnbench-fake 1.1], ratio: 1.06, interval: [1.05, 1.07], members: [{trial}]}}
"""


@pytest.fixture
def alerts(folder, rnnbench):
    (trial,) = rnnbench("list", "tiny.yaml", "--backend=fake:honest", "--filter=chunk=2,state=stitched").stdout.split()[
        :1
    ]
    (folder / "results").mkdir()
    file = folder / "results" / "alerts.yaml"

    def write(what="bound"):
        file.write_text(ALERTS.format(what=what, trial=trial))
        return file

    return write


@pytest.mark.parametrize(
    ("named", "latency", "state", "status"),
    [((), 1.05, "confirmed", 1), ((), 1.0, "refuted", 0), (("--alert=slow",), 1.0, "refuted", 0)],
)
def test_a_comparison_decides_and_is_written_beside_what_people_wrote(
    rnnbench, alerts, monkeypatch, named, latency, state, status
):
    file = alerts()
    fake_measurements(monkeypatch, {"1.0": 1.0, "1.1": latency})
    done = rnnbench("history", "confirm", "tiny.yaml", *named, status=status)
    assert f"slow: {state}: ratio {latency:.3f}" in done.stdout
    text = file.read_text()
    assert f"state: {state}" in text
    assert "# by hand" in text
    again = rnnbench("history", "confirm", "tiny.yaml")
    assert "0 alerts to compare" in again.stdout, "it is decided"


def test_one_confirmed_alert_of_several_is_told_by_the_status(rnnbench, alerts, monkeypatch):
    file = alerts()
    second = (
        file.read_text().partition("alerts:\n")[2].replace("id: slow", "id: later").replace("fake 1.1]", "fake 1.2]")
    )
    file.write_text(file.read_text() + second)
    fake_measurements(monkeypatch, {"1.0": 1.0, "1.1": 1.0, "1.2": 1.05})
    done = rnnbench("history", "confirm", "tiny.yaml", status=1)
    assert "slow: refuted" in done.stdout
    assert "later: confirmed" in done.stdout


def test_what_cannot_be_compared_is_left_and_said_where_it_was_named(rnnbench, alerts):
    file = alerts(what="build")
    before = file.read_text()
    assert "0 alerts to compare" in rnnbench("history", "confirm", "tiny.yaml").stdout
    done = rnnbench("history", "confirm", "tiny.yaml", "--alert=slow", status=2)
    assert "slow: not compared: it is about build; only latencies are compared" in done.stderr
    assert (
        "no alert 'slov'; did you mean 'slow'?"
        in rnnbench("history", "confirm", "tiny.yaml", "--alert=slov", status=2).stderr
    )
    assert file.read_text() == before


def test_a_missing_case_is_told_also_where_no_alert_is_new(rnnbench):
    assert "absent.yaml: does not exist" in rnnbench("history", "confirm", "absent.yaml", status=2).stderr
    assert "give at least one case file" in rnnbench("history", "confirm", status=2).stderr


@pytest.mark.parametrize(
    ("edit", "told", "state"),
    [
        (lambda text: text.replace("seen on both machines", "a person has looked"), "", "refuted"),
        (
            lambda text: text.replace("state: new", "state: mended\n  mended: 2026-01-03"),
            "was mended or removed",
            "mended",
        ),
        (lambda text: "schema: 1\nalerts: []\n", "slow: was mended or removed meanwhile", "alerts: []"),
    ],
    ids=["a note", "mended", "removed"],
)
def test_what_is_written_into_the_file_during_a_comparison_stays_and_no_result_is_lost(
    rnnbench, alerts, monkeypatch, edit, told, state
):
    file = alerts()
    fake_measurements(monkeypatch, {"1.0": 1.0, "1.1": 1.0})
    compare = confirmation.compare_sides

    def edited_meanwhile(*arguments, **named):
        file.write_text(edit(file.read_text()))
        return compare(*arguments, **named)

    monkeypatch.setattr(confirmation, "compare_sides", edited_meanwhile)
    done = rnnbench("history", "confirm", "tiny.yaml")
    assert "slow: refuted: ratio 1.000" in done.stdout
    assert told in done.stderr
    assert state in file.read_text()
    assert ("a person has looked" in file.read_text()) == (not told)
