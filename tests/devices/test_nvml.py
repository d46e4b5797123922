"""The first GPU, as NVML tells of it. NVML is played by a fake with recorded answers: tests need no NVIDIA driver."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from rnnbench.devices import Device, NoGpuError, first_gpu


class NVMLError(Exception):
    pass


def recorded(count: int = 2, broken: str = "") -> SimpleNamespace:
    """What NVML 580.159.04 answers on a machine with H100s; `broken` is the message of a driver that is not there."""

    def begin() -> None:
        if broken:
            raise NVMLError(broken)

    return SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=begin,
        nvmlShutdown=lambda: None,
        nvmlSystemGetDriverVersion=lambda: "580.159.04",
        nvmlDeviceGetCount=lambda: count,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetName=lambda handle: f"NVIDIA H100 80GB HBM3 ({handle})",
        nvmlDeviceGetCudaComputeCapability=lambda _handle: (9, 0),
        nvmlDeviceGetMemoryInfo=lambda _handle: SimpleNamespace(total=81559 * 2**20),
    )


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", recorded())


@pytest.mark.usefixtures("nvml")
def test_the_first_gpu_is_described() -> None:
    assert first_gpu() == Device(
        name="NVIDIA H100 80GB HBM3 (0)", driver="NVIDIA 580.159.04", capability="sm_90", memory=81559 * 2**20
    )


@pytest.mark.usefixtures("nvml")
@pytest.mark.parametrize(("visible", "handle"), [("1,0", "1"), ("GPU-5f2a", "GPU-5f2a")])
def test_it_is_the_first_one_that_is_visible(monkeypatch: pytest.MonkeyPatch, visible: str, handle: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert first_gpu().name == f"NVIDIA H100 80GB HBM3 ({handle})"


@pytest.mark.usefixtures("nvml")
@pytest.mark.parametrize(("visible", "why"), [("", "hides every GPU"), ("-1", "hides every GPU"), ("2", "no GPU 2")])
def test_a_gpu_that_is_hidden_is_not_there(monkeypatch: pytest.MonkeyPatch, visible: str, why: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(NoGpuError, match=why):
        first_gpu()


def test_a_driver_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", recorded(broken="Driver Not Loaded"))
    with pytest.raises(NoGpuError, match="Driver Not Loaded"):
        first_gpu()


def test_without_the_package_no_driver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NoGpuError, match="nvidia-ml-py is not installed"):
        first_gpu()
