"""What `rnnbench doctor` prints: a line for each fact, every warning, and that all is well only without one."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from rnnbench.devices import Device, ExaminedDevice
from rnnbench.measure import DeviceConditions, Fitness
from rnnbench.reports import print_fitness

FACTS = {
    "cpu": "Fake CPU 9000",
    "usable_cores": 2,
    "cores": 4,
    "available": 1 << 30,
    "memory": 4 << 30,
    "steal": 0.012,
    "load": 0.25,
    "clock_resolution_s": 1e-9,
    "clock_cost_s": 40e-9,
    "scatter": {"arithmetic": 0.004, "L2": 0.02},
    "temperature": 51.0,
}


def printed(fitness: Fitness, *devices: ExaminedDevice) -> list[str]:
    output = StringIO()
    print_fitness(fitness, devices, Console(file=output, width=200))
    return [line.rstrip() for line in output.getvalue().splitlines()]


def test_a_fit_machine_has_its_facts_and_is_called_fit() -> None:
    lines = printed(Fitness(FACTS, ()))
    assert lines[0] == "processor    Fake CPU 9000; 2 of 4 cores usable"
    assert "load         0.25 over a minute; time that the host took: 1.2 %" in lines
    assert "scatter      arithmetic ±0.4 %, L2 ±2.0 %" in lines
    assert "temperature  51 °C" in lines
    assert lines[-1] == "This machine is fit for benchmarking."


def test_every_warning_of_the_machine_and_of_its_devices_is_there() -> None:
    conditions = DeviceConditions(others=("game (PID 7)",), throttled=("heat",))
    gpu = ExaminedDevice("cuda", Device("fake GPU"), conditions=conditions)
    lines = printed(Fitness(FACTS, ("busy", "no pinned clock")), gpu)
    assert lines[-4:] == [f"warning: {text}" for text in ("busy", "no pinned clock", *gpu.warnings)]


def test_what_a_device_does_now_is_told_as_far_as_it_is_known() -> None:
    full = DeviceConditions(clock=1.98e9, temperature=34.0, power=71.2)
    known = ExaminedDevice("cuda", Device("fake GPU"), conditions=full, energy="NVML")
    unknown = ExaminedDevice("vulkan", Device("fake GPU"), conditions=DeviceConditions(), no_energy="no counter")
    lines = printed(Fitness(FACTS, ()), known, unknown)
    assert "cuda         fake GPU; clock 1,980 MHz; 34 °C; 71 W; energy by NVML" in lines
    assert "vulkan       fake GPU; no energy: no counter" in lines
