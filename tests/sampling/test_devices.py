"""What a kind of device measures, in the records of real trials. The device is the processor, with fake instruments."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest
from harness_trials import make_trial, run_trials

from rnnbench.cases import Measure
from rnnbench.devices import KINDS, UnmeasuredError
from rnnbench.measure import DeviceConditions, Roof
from rnnbench.results import row
from rnnbench.results.store import read_run

pytestmark = pytest.mark.usefixtures("few_checks")
MEASURE = Measure(budget=0.4, processes=2, precision=0.5, settings={"cold": 1.0, "energy": 1.0})
FIGURES = {"latency_floor", "cold", "device_memory", "device_conditions", "energy"}
LAUNCH_S = 10.0
"""Of a fake device on which launching takes longer than anything else."""


class FakeCounter:
    """Counts two joules between two readings."""

    source, block_s = "a fake counter", 0.01

    def __init__(self) -> None:
        self._readings = count()

    def read(self) -> float:
        return 2.0 * next(self._readings)


class FakeRoof:
    def __init__(self, sizes, dtype, threads) -> None:
        self._roof = Roof(dict.fromkeys(sizes, 1e12), 1e12, LAUNCH_S, 1 << 30, {"L2": 1 << 20})

    def measure(self) -> Roof:
        return self._roof

    def close(self) -> None: ...


def fake_conditions():
    """A clock that is 10 % lower after each block than before it."""
    readings = count()

    def read() -> DeviceConditions:
        after = next(readings) % 2
        return DeviceConditions(2e9 * (0.9 if after else 1.0), (), 40.0 + after, 300.0, ("game (PID 7)",))

    return read


def with_kind(**functions):
    """The processor with other instruments, while the module's tests run."""
    patch = pytest.MonkeyPatch()
    patch.setitem(KINDS, "cpu", replace(KINDS["cpu"], **functions))
    return patch


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A trial on a device whose kind measures everything."""
    patch = with_kind(
        conditions=fake_conditions(),
        open_energy=FakeCounter,
        measure_roof=FakeRoof,
        caches=dict,
        roof_is_proven=False,
        process_memory=lambda pid: 12_345,
    )
    trial = make_trial("numpy:eager", measure=MEASURE)
    run, records = run_trials([trial], tmp_path_factory.mktemp("results"))
    patch.undo()
    return run, records[trial.id]


def refuse(*_):
    raise UnmeasuredError("The fake refuses.")


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """A trial on a device whose kind could measure everything, on a machine where nothing answers."""
    functions = ("conditions", "open_energy", "measure_roof", "process_memory", "make_evictor")
    patch = with_kind(**dict.fromkeys(functions, refuse))
    trial = make_trial("numpy:eager", measure=MEASURE)
    _, records = run_trials([trial], tmp_path_factory.mktemp("results"))
    patch.undo()
    return records[trial.id]


def test_a_trial_is_ok_with_all_and_with_none_of_them(measured, refused):
    for record in (measured[1], refused):
        assert (record.outcome, record.reason) == ("ok", "")
        assert {"bound", "public"} <= record.timing.latency.keys()


def test_what_cannot_be_measured_has_its_reason(measured, refused):
    assert measured[1].unmeasured == {}
    assert refused.unmeasured == dict.fromkeys(FIGURES - {"latency_floor"}, "The fake refuses.")
    assert refused.floor.unmeasured == "The fake refuses."
    assert "cold" not in refused.timing.latency
    assert not any(name.startswith("energy") for name in refused.metrics)
    assert refused.device_state is None
    assert refused.energy is None
    assert refused.memory.device is None


def test_the_energy_of_a_step_comes_from_a_block_of_its_own(measured):
    _, record = measured
    assert (record.energy.source, record.energy.blocks) == ("a fake counter", 2)
    assert record.energy.disturbed_blocks == 2, "the fake device's clock moves in each block"
    assert 0 < record.metrics["energy_per_step"] < 2.0
    assert record.metrics["energy_power"] > 0


def test_blocks_whose_clock_moved_or_that_were_shared_are_marked(measured):
    run, record = measured
    state, sampling = record.device_state, [latency.sampling for latency in record.timing.latency.values()]
    assert state.clock == (1.8e9, 2e9)
    assert (state.temperature, state.power) == ((40.0, 41.0), (300.0, 300.0))
    assert state.others == ("game (PID 7)",)
    blocks = sum(one.blocks for one in sampling)
    assert (state.moved_blocks, state.shared_blocks, state.throttled_blocks) == (blocks, blocks, 0)
    assert sum(one.disturbed_blocks for one in sampling) == blocks
    columns = row(record, read_run(run).info)
    assert (columns["device_clock_low"], columns["device_clock_high"]) == (1.8e9, 2e9)
    assert columns["device_others"] == "game (PID 7)"


def test_the_floor_is_the_launch_where_nothing_takes_longer(measured):
    _, record = measured
    assert (record.floor.seconds, record.floor.limited_by, record.floor.launch) == (LAUNCH_S, "launch", LAUNCH_S)
    assert record.floor.level == "L2"
    assert record.floor.ratio < 1


def test_a_roof_that_was_not_seen_to_be_one_accuses_nobody(measured):
    assert measured[1].not_believed == ""


def test_memory_on_the_device_is_in_record_and_row(measured):
    run, record = measured
    assert record.memory.device == 12_345
    assert row(record, read_run(run).info)["memory_device"] == 12_345
