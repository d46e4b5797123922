"""The NVIDIA GPU that an adapter's probe declares: the one that is here, or what is missing for one."""

from __future__ import annotations

from collections.abc import Mapping

from rnnbench.backends.base import Lack, processor
from rnnbench.devices import KINDS, VARIABLES, Device, NoGpuError, first_gpu

CUDA = "cuda"
CUDA_VARIABLES = VARIABLES
"""What the environment of a worker that uses CUDA must have (`Support.environment`)."""


def with_cuda(lack: Lack | None) -> Mapping[str, Device | Lack]:
    """The devices of a backend that has the processor and CUDA (`Probe.devices`).

    `lack` is what the installed runtime lacks for CUDA, such as a build with CUDA inside; None where it has all.
    """
    return processor() | {CUDA: lack or _gpu()}


def _gpu() -> Device | Lack:
    try:
        return first_gpu()
    except NoGpuError as error:
        return Lack(str(error), KINDS[CUDA].install)
