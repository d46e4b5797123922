"""`rnnbench doctor`: the machine's fitness, and its devices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rnnbench.devices import KINDS, Device
from rnnbench.measure import DeviceConditions, Fitness

FACTS = {
    "usable_cores": 2,
    "cores": 2,
    "available": 1 << 30,
    "memory": 1 << 30,
    "scatter": None,
    "steal": 0.0,
    "load": 0.1,
    "clock_resolution_s": 1e-9,
    "clock_cost_s": 1e-9,
}


@pytest.fixture
def idle_machine(monkeypatch):
    """A machine on which nothing else runs, without waiting for a second to see that."""
    monkeypatch.setattr("rnnbench.measure.examine_machine", lambda: Fitness(FACTS, ()))


@pytest.mark.usefixtures("idle_machine")
def test_doctor_has_a_line_for_each_kind_of_device(rnnbench):
    done = rnnbench("doctor")
    for kind in KINDS:
        assert f"\n{kind:<12} " in done.stdout
    assert f"{KINDS['cpu'].describe().name}" in " ".join(done.stdout.split())


@pytest.mark.usefixtures("idle_machine")
@pytest.mark.parametrize(("others", "status"), [((), 0), (("game (PID 7)",), 1)])
def test_what_disturbs_a_device_is_a_warning_of_the_machine(rnnbench, monkeypatch, others, status):
    gpu = replace(
        KINDS["cuda"],
        describe=lambda: Device("fake GPU"),
        conditions=lambda: DeviceConditions(others=others),
        open_energy=None,
    )
    monkeypatch.setitem(KINDS, "cuda", gpu)
    done = rnnbench("doctor", status=status)
    assert ("game (PID 7)" in done.stdout) == bool(others)


@pytest.mark.parametrize(("holds", "status"), [(True, 0), (False, 1)])
def test_a_difference_from_a_runtimes_own_tool_that_is_too_large_ends_with_1(rnnbench, monkeypatch, holds, status):
    monkeypatch.setattr("rnnbench.fidelity.measure_fidelity", lambda targets: targets)
    monkeypatch.setattr("rnnbench.fidelity.print_fidelity", lambda figures, console: holds)
    rnnbench("doctor", "--fidelity", "--backend=numpy", status=status)
