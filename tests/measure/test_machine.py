"""The machine is described with what can be read, and with nothing that cannot; what it did meanwhile is told."""

from __future__ import annotations

import json
import os
from collections import namedtuple

import psutil
import pytest

from rnnbench.measure import MachineConditions, MachineWatch, describe_machine
from rnnbench.measure.machine import temperature

Times = namedtuple("Times", "user system idle steal")
Sensor = namedtuple("Sensor", "current")


@pytest.fixture
def machine(monkeypatch):
    """Sets what psutil and the kernel tell from now on."""

    def tell(times, load=0.5, **sensors):
        monkeypatch.setattr(psutil, "cpu_times", lambda: times)
        monkeypatch.setattr(os, "getloadavg", lambda: (load, 9.0, 9.0))
        of_sensors = {name: [Sensor(value) for value in values] for name, values in sensors.items()}
        monkeypatch.setattr(psutil, "sensors_temperatures", lambda: of_sensors, raising=False)

    return tell


def test_the_description_goes_into_json_and_has_what_every_linux_tells():
    machine = json.loads(json.dumps(describe_machine()))
    assert machine["cores"] >= machine["usable_cores"] >= 1
    assert machine["memory"] > 1 << 28
    assert 0 < machine["clock_resolution_s"] < 1e-3
    assert None not in machine.values()
    assert machine["processor"]
    assert machine["vector_extensions"]


def test_conditions_are_what_was_stolen_meanwhile_and_load_and_heat_at_both_ends(machine):
    machine(Times(100.0, 20.0, 300.0, 5.0), load=0.5, coretemp=[40.0, 45.0])
    watch = MachineWatch()
    machine(Times(104.0, 21.0, 304.0, 6.0), load=1.5, coretemp=[60.0, 50.0])
    assert watch.conditions() == MachineConditions(steal=0.1, load=(0.5, 1.5), temperature=(45.0, 60.0))


def test_what_the_kernel_does_not_tell_is_none_and_no_time_has_no_steal(machine):
    machine(Times(1.0, 1.0, 1.0, 1.0))
    assert MachineWatch().conditions() == MachineConditions(steal=0.0, load=(0.5, 0.5), temperature=None)
    machine(namedtuple("Few", "user idle")(1.0, 1.0))
    assert MachineWatch().conditions().steal is None


def test_the_temperature_is_the_processor_s_and_not_that_of_a_disk(machine):
    machine(Times(1.0, 1.0, 1.0, 1.0), nvme=[70.0], k10temp=[50.0, 55.0], coretemp=[52.0])
    assert temperature() == 55.0
