"""The probe's process beside the processes of several trials: its readings are in the log of each of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from harness_trials import context_in, make_trial

from rnnbench.devices import KINDS
from rnnbench.sampling.roof import RoofLog, RoofWorker


def test_every_trial_has_the_readings_beside_its_processes_or_why_there_are_none(monkeypatch, tmp_path):
    monkeypatch.setitem(KINDS, "cpu", replace(KINDS["cpu"], unmeasured={"latency_floor": "no probe"}))
    trials = [SimpleNamespace(trial=make_trial(chunk=chunk)) for chunk in (2, 4)]
    logs = [RoofLog() for _ in trials]
    for number in range(2):
        RoofWorker(trials, logs, context_in(tmp_path), f"roof-{number}.log").close()
    assert [log.processes for log in logs] == [[[], []]] * 2
    assert logs[0].processes[0] is logs[1].processes[0], "one reading is of all trials that were sampled beside it"
    assert [log.unmeasured for log in logs] == ["no probe"] * 2
