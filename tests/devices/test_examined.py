"""The devices of a machine are listed with what disturbs each. The devices are fakes."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from rnnbench.devices import KINDS, Device, ExaminedDevice, NoGpuError, UnmeasuredError, examine_devices
from rnnbench.measure import DeviceConditions, Fitness
from rnnbench.reports import print_fitness

GPU = Device("fake GPU", "fake driver 1", "sm_90")
QUIET = DeviceConditions(1.98e9, (), 34.0, 71.25)
SOFTWARE = Device("fakepipe", "a fake driver", "Fake 1.0", software=True)


def refuse() -> Device:
    raise UnmeasuredError("no driver answers")


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch):
    """Those of a machine whose GPU is in these conditions."""

    def examined(now: DeviceConditions, describe=lambda: GPU) -> dict[str, ExaminedDevice]:
        counter = lambda: type("FakeCounter", (), {"source": "a fake counter"})  # noqa: E731
        gpu = replace(KINDS["cuda"], describe=describe, conditions=lambda: now, open_energy=counter)
        monkeypatch.setitem(KINDS, "cuda", gpu)
        return {one.kind: one for one in examine_devices(lambda kind: SOFTWARE)}

    return examined


def shown(found: dict[str, ExaminedDevice]) -> str:
    stream = io.StringIO()
    fitness = Fitness(
        {"usable_cores": 2, "cores": 2, "available": 1, "memory": 1, "steal": None, "scatter": None, "load": 0.0}
        | {"clock_resolution_s": 1e-9, "clock_cost_s": 1e-9},
        (),
    )
    print_fitness(fitness, list(found.values()), Console(file=stream, width=200))
    return stream.getvalue()


def test_each_device_has_a_line(devices) -> None:
    text = shown(devices(QUIET))
    assert "cuda         fake GPU, fake driver 1, sm_90; clock 1,980 MHz; 34 °C; 71 W; energy by a fake counter" in text
    assert (
        "vulkan       fakepipe, a fake driver, Fake 1.0; a software device: the processor emulates it; no energy: "
        f"{KINDS['vulkan'].unmeasured['energy'][:40]}" in text
    )
    assert "cpu          " in text
    assert "fit for benchmarking" in text


def test_a_device_that_is_not_here_says_what_is_missing(devices) -> None:
    found = devices(QUIET, refuse)
    assert found["cuda"].device is None
    assert "cuda         none: no driver answers" in shown(found)
    assert [*found["cuda"].warnings] == []


@pytest.mark.parametrize("says_remedy", [True, False])
def test_a_driver_that_cannot_be_asked_says_what_to_install(devices, says_remedy: bool) -> None:
    def no_gpu() -> Device:
        raise NoGpuError("nobody can be asked", says_remedy)

    (line,) = [line for line in shown(devices(QUIET, no_gpu)).splitlines() if line.startswith("cuda")]
    remedy = "" if says_remedy else "; install it with: pip install 'rnnbench[cuda]', on a machine with NVIDIA's driver"
    assert line == f"cuda         none: nobody can be asked{remedy}"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"others": ("game (PID 7)", "miner (PID 9)")}, "game (PID 7), miner (PID 9)"),
        ({"hidden": 1}, "1 process that cannot be seen from here"),
        ({"hidden": 2}, "2 processes that cannot be seen from here"),
        ({"throttled": ("power cap",)}, "held down: power cap"),
        ({"temperature": 91.0}, "91 °C"),
    ],
)
def test_what_disturbs_a_device_is_a_warning(devices, changes: dict[str, object], said: str) -> None:
    found = devices(replace(QUIET, **changes))
    assert [said in warning for warning in found["cuda"].warnings] == [True]
    (warning,) = found["cuda"].warnings
    assert f"warning: {warning}" in shown(found)


def test_a_quiet_device_has_no_warning(devices) -> None:
    assert [warning for one in devices(QUIET).values() for warning in one.warnings] == []
