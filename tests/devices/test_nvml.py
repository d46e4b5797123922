"""The first GPU, as NVML tells of it. NVML is played by a fake with recorded answers: tests need no NVIDIA driver.

The name, the driver, the capability and the memory were recorded on a machine with H100s. The other answers are made
for these tests, in the units of NVML's reference: MHz, °C, mW, mJ, and the bits of its header.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from rnnbench.devices import KINDS, Device, NoGpuError, UnmeasuredError, first_gpu, newest_cuda, nvml

CUDA = KINDS["cuda"]
IDLE, POWER_CAP, SET_BY_A_PERSON, HARDWARE_HEAT = 1, 4, 2, 64
"""Bits of nvmlClocksThrottleReasons in NVML's header."""


class NVMLError(Exception):
    """As in nvidia-ml-py: `value` is the number in NVML's header, and the text is its own of that number."""

    def __init__(self, value: int = 3, text: str = "Not Supported") -> None:
        super().__init__(text)
        self.value = value


class Answers(SimpleNamespace):
    """What the fake answers next."""

    clock, reasons, heat, power, energy = 1980, IDLE, 34, 71_250, 5_000
    processes: tuple[SimpleNamespace, ...] = ()
    refused: tuple[str, ...] = ()
    cuda, compute_mode, mig, instances = 13000, 0, (0, 0), ()
    memory = SimpleNamespace(total=81559 * 2**20)
    lost: tuple[int, ...] = ()
    """GPUs that fell off their bus."""
    uuids = ("GPU-5f2a0b1c-0000", "GPU-9e1d4c2b-0001")


def recorded(count: int = 2, broken: str | NVMLError = "", answers: Answers | None = None) -> SimpleNamespace:
    """What NVML 580.159.04 answers on a machine with H100s; `broken` is the error of a driver that is not there."""
    now = answers or Answers(shut=[])

    def whole(answer):
        """What NVML answers of a whole GPU, and of no instance of one."""

        def answer_of(handle: object, *more: object) -> object:
            if isinstance(handle, str):
                raise NVMLError
            return answer()

        return answer_of

    def tell(name: str):
        def answer(*_: object) -> object:
            if name in now.refused:
                raise NVMLError
            return getattr(now, name)

        return answer

    def begin() -> None:
        if broken:
            raise broken if isinstance(broken, NVMLError) else NVMLError(999, broken)

    def by_index(index: int) -> int:
        if index in now.lost:
            raise NVMLError(15, "GPU is lost")
        return index

    def newest_cuda() -> int:
        if isinstance(now.cuda, NVMLError):
            raise now.cuda
        return now.cuda

    def by_uuid(uuid: str) -> str:
        if uuid not in now.instances:
            raise NVMLError(6, "Not Found")
        return uuid

    def instance(_board: int, index: int) -> str:
        if index >= len(now.instances):
            raise NVMLError(6, "Not Found")
        return now.instances[index]

    return SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=begin,
        nvmlShutdown=lambda: now.shut.append(True),
        nvmlSystemGetDriverVersion=lambda: "580.159.04",
        nvmlDeviceGetCount=lambda: count,
        nvmlDeviceGetHandleByIndex=by_index,
        nvmlDeviceGetHandleByUUID=by_uuid,
        nvmlDeviceGetUUID=lambda handle: handle if isinstance(handle, str) else now.uuids[handle],
        nvmlSystemGetCudaDriverVersion_v2=newest_cuda,
        nvmlDeviceGetComputeMode=tell("compute_mode"),
        nvmlDeviceGetMigMode=tell("mig"),
        nvmlDeviceGetMaxMigDeviceCount=lambda _board: 7,
        nvmlDeviceGetMigDeviceHandleByIndex=instance,
        nvmlDeviceGetDeviceHandleFromMigDeviceHandle=lambda _instance: 0,
        nvmlDeviceGetName=lambda handle: f"NVIDIA H100 80GB HBM3 ({handle})",
        nvmlDeviceGetCudaComputeCapability=whole(lambda: (9, 0)),
        nvmlDeviceGetMemoryInfo=tell("memory"),
        NVML_CLOCK_SM=1,
        NVML_TEMPERATURE_GPU=0,
        nvmlDeviceGetClockInfo=whole(tell("clock")),
        nvmlDeviceGetCurrentClocksThrottleReasons=whole(tell("reasons")),
        nvmlDeviceGetTemperature=whole(tell("heat")),
        nvmlDeviceGetPowerUsage=whole(tell("power")),
        nvmlDeviceGetTotalEnergyConsumption=tell("energy"),
        nvmlDeviceGetComputeRunningProcesses=tell("processes"),
    )


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    now = Answers(shut=[])
    monkeypatch.setitem(sys.modules, "pynvml", recorded(answers=now))
    nvml.opened.cache_clear()
    yield now
    nvml.opened.cache_clear()


def test_the_first_gpu_is_described(answers: Answers) -> None:
    assert first_gpu() == Device(
        name="NVIDIA H100 80GB HBM3 (0)", driver="NVIDIA 580.159.04", capability="sm_90", memory=81559 * 2**20
    )
    assert answers.shut == [True], "the library is closed again"


@pytest.mark.usefixtures("answers")
@pytest.mark.parametrize(("visible", "handle"), [("1,0", "1"), ("GPU-5f2a", "0"), ("GPU-9e1d4c2b-0001", "1")])
def test_it_is_the_first_one_that_is_visible(monkeypatch: pytest.MonkeyPatch, visible: str, handle: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert first_gpu().name == f"NVIDIA H100 80GB HBM3 ({handle})"


@pytest.mark.usefixtures("answers")
@pytest.mark.parametrize(
    ("visible", "why"),
    [
        ("", "hides every GPU"),
        ("-1", "hides every GPU"),
        ("2", "no GPU 2"),
        ("GPU-77", "no GPU GPU-77"),
        ("MIG-77", "may name what is not there: nvidia-smi -L"),
    ],
)
def test_a_gpu_that_is_hidden_is_not_there(monkeypatch: pytest.MonkeyPatch, visible: str, why: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(NoGpuError, match=why):
        first_gpu()


def test_a_driver_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", recorded(broken="Driver Not Loaded"))
    with pytest.raises(NoGpuError, match="Driver Not Loaded"):
        first_gpu()


INSTANCE = "MIG-c7384736-0"


def test_a_gpu_in_mig_mode_wants_one_of_its_instances(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    answers.mig, answers.instances = (1, 1), (INSTANCE, "MIG-c7384736-1")
    with pytest.raises(NoGpuError, match=f"MIG mode.*CUDA_VISIBLE_DEVICES={INSTANCE}"):
        first_gpu()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", INSTANCE)
    gpu = first_gpu()
    assert (gpu.name, gpu.capability) == (f"NVIDIA H100 80GB HBM3 ({INSTANCE})", "sm_90")
    now = CUDA.conditions()
    assert (now.clock, now.temperature, now.power) == (1.98e9, 34.0, None)
    with pytest.raises(UnmeasuredError, match="an instance of one"):
        CUDA.open_energy()


def test_the_only_instance_of_a_gpu_is_the_one_that_cuda_uses(answers: Answers) -> None:
    """As in a container, which has one instance of a GPU."""
    answers.mig, answers.instances = (1, 1), (INSTANCE,)
    assert first_gpu().name == f"NVIDIA H100 80GB HBM3 ({INSTANCE})"
    assert CUDA.conditions().power is None


def test_a_gpu_in_mig_mode_without_an_instance_says_how_to_leave_it(answers: Answers) -> None:
    answers.mig = (1, 1)
    with pytest.raises(NoGpuError, match="nvidia-smi -mig 0"):
        first_gpu()


@pytest.mark.parametrize("mode", [2, 3])
def test_a_gpu_that_lets_in_one_process_or_none_says_how_to_open_it(answers: Answers, mode: int) -> None:
    """NVML_COMPUTEMODE_PROHIBITED and NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: the suite has several processes."""
    answers.compute_mode = mode
    with pytest.raises(NoGpuError, match="nvidia-smi -c DEFAULT"):
        first_gpu()


def test_a_gpu_that_has_no_such_modes_is_described(answers: Answers) -> None:
    answers.refused = ("mig", "compute_mode")
    assert first_gpu().capability == "sm_90"


@pytest.mark.parametrize(
    ("value", "text", "remedy"),
    [
        (4, "Insufficient Permissions", "may not open /dev/nvidia"),
        (9, "Driver Not Loaded", "modprobe nvidia"),
        (12, "NVML Shared Library Not Found", "--gpus all"),
        (15, "GPU is lost", "Restart the machine"),
        (18, "RM has detected an NVML/RM version mismatch.", "Restart the machine"),
    ],
)
def test_an_error_of_the_driver_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, value: int, text: str, remedy: str
) -> None:
    """The numbers and texts of nvidia-ml-py 13.615."""
    monkeypatch.setitem(sys.modules, "pynvml", recorded(broken=NVMLError(value, text)))
    with pytest.raises(NoGpuError, match=remedy) as raised:
        first_gpu()
    assert text in str(raised.value)
    assert raised.value.says_remedy


@pytest.mark.parametrize(("cuda", "major"), [(12040, 12), (13000, 13)])
def test_the_driver_says_its_newest_cuda(answers: Answers, cuda: int, major: int) -> None:
    answers.cuda = cuda
    assert newest_cuda() == major


def test_a_driver_without_its_library_for_programs_says_how_to_get_it(answers: Answers) -> None:
    """As in a container that was started with NVIDIA_DRIVER_CAPABILITIES=utility: nvidia-smi runs, programs do not."""
    answers.cuda = NVMLError(12, "NVML Shared Library Not Found")
    assert first_gpu().capability == "sm_90"
    with pytest.raises(NoGpuError, match=r"libcuda\.so\.1.*NVIDIA_DRIVER_CAPABILITIES=compute,utility") as raised:
        newest_cuda()
    assert raised.value.says_remedy
    answers.cuda = NVMLError(999, "Unknown Error")
    with pytest.raises(NoGpuError, match="Unknown Error"):
        newest_cuda()


def test_a_gpu_that_shares_the_hosts_memory_has_none_of_its_own(answers: Answers) -> None:
    """As GB10 and Thor, of which NVML tells no memory (Not Supported)."""
    answers.refused = ("memory",)
    assert first_gpu().memory is None


def test_another_gpu_that_is_lost_does_not_hide_the_named_one(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers.lost = (0,)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-9e1d")
    assert first_gpu().name == "NVIDIA H100 80GB HBM3 (1)"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(NoGpuError, match=r"GPU is lost\. Restart the machine"):
        first_gpu()


def test_without_the_package_no_driver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NoGpuError, match="nvidia-ml-py is not installed") as raised:
        first_gpu()
    assert not raised.value.says_remedy, "an adapter then adds how to install it"


def process(pid: int, nbytes: int | None = 600 << 20) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=nbytes)


def test_conditions_are_in_base_units(answers: Answers) -> None:
    now = CUDA.conditions()
    assert (now.clock, now.temperature, now.power) == (1.98e9, 34.0, 71.25)
    assert (now.throttled, now.others, now.hidden) == ((), (), 0)


@pytest.mark.parametrize(
    ("reasons", "throttled"),
    [
        (IDLE, ()),
        (SET_BY_A_PERSON, ()),
        (POWER_CAP, ("power cap",)),
        (POWER_CAP | HARDWARE_HEAT | IDLE, ("power cap", "hardware thermal slowdown")),
        (8 | 32 | 128, ("hardware slowdown", "software thermal slowdown", "power brake")),
        (512 | 1024, ("board limit", "reliability limit")),
    ],
)
def test_what_holds_the_clock_down_is_told_in_words(answers: Answers, reasons: int, throttled: tuple[str, ...]) -> None:
    answers.reasons = reasons
    assert CUDA.conditions().throttled == throttled


def test_what_the_driver_does_not_tell_is_left_out(answers: Answers) -> None:
    answers.refused = ("clock", "reasons", "heat", "power", "processes")
    now = CUDA.conditions()
    assert (now.clock, now.throttled, now.temperature, now.power, now.others) == (None, (), None, None, ())


def test_processes_of_others_are_named_and_the_suites_own_are_not(answers: Answers) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        answers.processes = (process(os.getpid()), process(child.pid), process(1), process(2**30))
        now = CUDA.conditions()
        child.kill()
    assert len(now.others) == 1
    assert now.others[0].endswith("(PID 1)")
    assert now.hidden == 1


def test_energy_is_counted_from_the_opening_of_the_counter(answers: Answers) -> None:
    counter = CUDA.open_energy()
    assert counter.read() == 0.0
    answers.energy = 7_500
    assert counter.read() == pytest.approx(2.5)
    assert counter.block_s >= 1.0


def test_a_gpu_without_a_counter_of_energy_says_so(answers: Answers) -> None:
    answers.refused = ("energy",)
    with pytest.raises(UnmeasuredError, match="tells no total energy"):
        CUDA.open_energy()


def test_the_memory_of_a_process_is_the_drivers_figure(answers: Answers) -> None:
    answers.processes = (process(10, 100), process(11, 200))
    assert nvml.process_bytes(11) == 200


@pytest.mark.parametrize(
    ("processes", "why"), [((), "lists no process with the PID"), ((process(11, None),), "does not tell how much")]
)
def test_memory_that_the_driver_does_not_tell_is_unmeasured(
    answers: Answers, processes: tuple[SimpleNamespace, ...], why: str
) -> None:
    answers.processes = processes
    with pytest.raises(UnmeasuredError, match=why):
        nvml.process_bytes(11)


@pytest.mark.parametrize("ask", [CUDA.describe, CUDA.conditions, CUDA.open_energy])
def test_without_a_driver_every_figure_has_its_reason(monkeypatch: pytest.MonkeyPatch, ask) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", recorded(broken="Driver Not Loaded"))
    nvml.opened.cache_clear()
    with pytest.raises(UnmeasuredError, match="Driver Not Loaded"):
        ask()
