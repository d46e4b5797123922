"""The probe's process beside the processes of several trials: its readings are in the log of each of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from harness_trials import context_in, make_trial

from rnnbench.devices import KINDS
from rnnbench.measure import Roof
from rnnbench.plan import examine
from rnnbench.sampling import roof
from rnnbench.sampling.roof import READINGS, RoofLog, RoofReading, RoofWorker, cost_of
from rnnbench.stages import Built, Checked
from rnnbench.worker import WorkerError


def test_every_trial_has_the_readings_beside_its_processes_or_why_there_are_none(monkeypatch, tmp_path):
    monkeypatch.setitem(KINDS, "cpu", replace(KINDS["cpu"], unmeasured={"latency_floor": "no probe"}))
    trials = [SimpleNamespace(trial=make_trial(chunk=chunk)) for chunk in (2, 4)]
    logs = [RoofLog() for _ in trials]
    for number in range(2):
        RoofWorker(trials, logs, context_in(tmp_path), f"roof-{number}.log").close()
    assert [log.processes for log in logs] == [[[], []]] * 2
    assert logs[0].processes[0] is logs[1].processes[0], "one reading is of all trials that were sampled beside it"
    assert [log.unmeasured for log in logs] == ["no probe"] * 2


class Process:
    """A probe's process that answers so often, and then fails."""

    def __init__(self, answers: int, outcome: str = "unavailable") -> None:
        self.answers, self.outcome, self.asked = answers, outcome, 0
        self.is_closed = False

    def ready(self, timeout):
        self.ask(None, timeout)

    def ask(self, command, timeout):
        self.asked += 1
        if self.asked > self.answers:
            raise WorkerError(self.outcome, "The fake has no probe.", alive=False)
        return RoofReading(((1024, 2e9),), 3e9, 4e-6, 512, (("L2", 2048),))

    def close(self):
        self.is_closed = True


@pytest.fixture
def probe(monkeypatch, tmp_path):
    """A roof's worker whose process is this one."""

    def of(process):
        monkeypatch.setattr(roof, "WorkerProcess", lambda *_: process)
        checked = Checked(Built(examine(make_trial())))
        log = RoofLog()
        return RoofWorker([checked], [log], context_in(tmp_path), "roof.log"), log

    return of


def test_a_process_of_the_trials_has_so_many_readings(probe):
    worker, log = probe(Process(100))
    for _ in range(READINGS + 3):
        worker.read()
    ((reading, *_),) = log.processes
    assert [len(readings) for readings in log.processes] == [READINGS]
    assert reading == Roof({1024: 2e9}, 3e9, 4e-6, 512, {"L2": 2048})
    assert RoofReading.of(reading).roof == reading, "nothing is lost on the line"


@pytest.mark.parametrize(("outcome", "told"), [("unavailable", "The fake has no probe."), ("crashed", roof.ENDED)])
def test_a_probe_that_fails_is_asked_no_more_and_its_reason_is_told(probe, outcome, told):
    process = Process(2, outcome)
    worker, log = probe(process)
    for _ in range(5):
        worker.read()
    assert (len(log.processes[0]), process.asked) == (2, 3)
    assert log.unmeasured == told


def test_the_probe_s_process_ends_with_its_worker(probe):
    process = Process(1)
    worker, _ = probe(process)
    assert not process.is_closed
    worker.close()
    assert process.is_closed


def test_the_working_sets_of_all_trials_are_measured(monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(roof, "WorkerProcess", lambda module, start, host: started.append(start) or Process(0))
    trials = [Checked(Built(examine(make_trial(chunk=chunk)))) for chunk in (1, 4)]
    sizes = {reading.working_set for one in trials for reading in cost_of(one).readings}
    RoofWorker(trials, [RoofLog(), RoofLog()], context_in(tmp_path), "roof.log")
    assert len(sizes) > len({reading.working_set for reading in cost_of(trials[0]).readings})
    assert set(started[0].working_sets) == sizes


def test_quantised_weights_are_read_at_their_own_size():
    def bytes_of(dtype):
        trial = replace(make_trial(), dtype=dtype)
        return sum(reading.nbytes * reading.times for reading in cost_of(Checked(Built(examine(trial)))).readings)

    assert bytes_of("int8_weights") < bytes_of("float16") < bytes_of("float32") == bytes_of("float64") / 2
