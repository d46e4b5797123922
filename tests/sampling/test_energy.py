"""Energy is read around one block in each process that the case asks for, by a counter that is a fake here."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from harness_trials import make_trial

from rnnbench.cases import Measure
from rnnbench.devices import KINDS, UnmeasuredError
from rnnbench.measure import ENERGY_SAMPLES, PATHS, Block
from rnnbench.plan import examine
from rnnbench.sampling.energy import EnergyMeter
from rnnbench.sampling.path_sampling import PathBlocks
from rnnbench.sampling.trial_sampling import TrialSampling

CALL_S = 1e-5


class Counter:
    """Two joules more at each reading."""

    source, block_s = "a fake counter", 5.0

    def __init__(self, readings: int = 100) -> None:
        self.left, self.joules = readings, 10.0

    def read(self) -> float:
        if not self.left:
            raise UnmeasuredError("The fake is broken.")
        self.left, self.joules = self.left - 1, self.joules + 2.0
        return self.joules


class Worker:
    """Makes the calls that it is asked for, four at once."""

    def __init__(self, stopped: bool = False) -> None:
        self.plans, self.stops, self._stopped = [], 0, stopped

    def sample(self, sampling, blocks, plan, figure):
        assert figure == "energy"
        self.stops += self._stopped
        self.plans.append(plan)
        return Block(0.0, 0, np.full(3, CALL_S), 4, elapsed=1.0)


@pytest.fixture
def meter(monkeypatch):
    """Of a counter with so many readings."""

    def of(readings: int = 100, device: str = "cpu") -> EnergyMeter:
        kind = replace(KINDS["cpu"], open_energy=lambda: Counter(readings))
        monkeypatch.setitem(KINDS, device, kind)
        return EnergyMeter(device)

    return of


def sampled(processes: int = 2, asked: bool = True) -> TrialSampling:
    measure = Measure(processes=processes, settings={"energy": 1.0} if asked else {})
    sampling = TrialSampling(examine(make_trial(measure=measure)))
    blocks = PathBlocks(PATHS["bound"])
    blocks.begin_process(None)
    blocks.add(Block(0.0, 0, np.full(3, CALL_S), elapsed=1.0))
    sampling.paths["bound"] = blocks
    return sampling


def test_a_block_of_each_process_has_the_joules_between_two_readings(meter) -> None:
    sampling, worker, metering, said = sampled(), Worker(), meter(), []
    for _ in range(3):
        metering.sample(worker, sampling, said.append)
    assert [(use.joules, use.calls, use.source) for use in sampling.energy] == [(2.0, 12, "a fake counter")] * 2
    assert said == ["energy"] * 2, "the case asks for no third process"


def test_its_block_is_as_long_as_the_counter_needs_and_has_few_samples(meter) -> None:
    worker = Worker()
    meter().sample(worker, sampled(), lambda said: None)
    (plan,) = worker.plans
    assert plan.seconds == Counter.block_s
    assert plan.seconds / (plan.calls_per_sample * CALL_S) == pytest.approx(ENERGY_SAMPLES, rel=0.01)


def test_a_block_in_which_the_suite_was_stopped_has_no_joules(meter) -> None:
    """The counter goes on."""
    sampling, worker = sampled(), Worker(stopped=True)
    meter().sample(worker, sampling, lambda said: None)
    assert (len(worker.plans), sampling.energy) == (1, [])


def test_a_case_that_asks_for_none_has_none(meter) -> None:
    sampling, worker = sampled(asked=False), Worker()
    meter().sample(worker, sampling, lambda said: None)
    assert (sampling.energy, worker.plans) == ([], [])


def test_a_counter_that_breaks_leaves_its_reason_and_no_half_of_a_figure(meter) -> None:
    sampling, worker, metering, said = sampled(processes=3), Worker(), meter(readings=3), []
    for _ in range(3):
        metering.sample(worker, sampling, said.append)
    assert sampling.energy == []
    assert sampling.unmeasured == {"energy": "The fake is broken."}
    assert len(worker.plans) == len(said) == 2, "it is not tried again"


def test_a_device_without_a_counter_is_not_asked(monkeypatch) -> None:
    monkeypatch.setitem(KINDS, "cpu", replace(KINDS["cpu"], open_energy=None))
    sampling = sampled()
    EnergyMeter("cpu").sample(SimpleNamespace(), sampling, lambda said: None)
    assert (sampling.energy, sampling.unmeasured) == ([], {})
