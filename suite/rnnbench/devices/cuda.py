"""CUDA: NVIDIA's GPUs. NVML describes them (`devices/nvml.py`), and the suite's own programs measure them
(`devices/cuda_measuring.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rnnbench.devices.device import DeviceKind, RoofMeasurer
from rnnbench.devices.nvml import VARIABLES, GpuEnergy, first_gpu, gpu_conditions


def _evictor() -> Callable[[], object]:
    from rnnbench.devices.cuda_measuring import empty_l2

    return empty_l2()


def _clock(stream: int) -> Callable[[Callable[[], object]], float]:
    from rnnbench.devices.cuda_driver import CudaDriver

    return CudaDriver().clock(stream)


def _stream() -> int:
    from rnnbench.devices.cuda_driver import CudaDriver

    return CudaDriver().stream()


def _roof(working_sets: Sequence[int], dtype: str, threads: int) -> RoofMeasurer:
    from rnnbench.devices.cuda_measuring import measure_roof

    return measure_roof(working_sets, dtype, threads)


def _process_memory(pid: int) -> int:
    from rnnbench.devices.cuda_session import program_bytes

    return program_bytes(pid)


KIND = DeviceKind(
    name="cuda",
    meaning="an NVIDIA GPU",
    driver_threads=2,  # Of the runtimes, only IREE has such threads, at most two.
    worker_memory=512 << 20,
    install="pip install 'rnnbench[cuda]', on a machine with NVIDIA's driver",
    variables=VARIABLES,
    describe=first_gpu,
    conditions=gpu_conditions,
    open_energy=GpuEnergy,
    make_evictor=_evictor,
    measure_roof=_roof,
    open_clock=_clock,
    open_stream=_stream,
    roof_is_proven=False,
    process_memory=_process_memory,
)
