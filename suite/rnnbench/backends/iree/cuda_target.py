"""What iree-compile is told to compile for on CUDA: the nearest target that it has, and not above the GPU's."""

from __future__ import annotations

from rnnbench.backends.base import BuildError
from rnnbench.backends.shared import gpu_to_compile_for

TARGETS = (60, 61, 70, 72, 75, 80, 86, 87, 89)
"""Compute capabilities, without the dot, for which iree-compile 3.13 compiles a program without a GPU. It has none from
sm_90 on ("missing GPU target"). Kernels are PTX, which NVIDIA's driver compiles on for any later GPU."""


def target_flag() -> str:
    """The compiler's flag for this machine's GPU. Raises BuildError."""
    return f"--iree-cuda-target={nearest_target(gpu_to_compile_for().capability)}"


def target_note() -> str:
    """What a record says of the target. Raises BuildError."""
    gpu = gpu_to_compile_for()
    nearest = nearest_target(gpu.capability)
    exact = nearest == gpu.capability
    which = "the GPU's own" if exact else f"the nearest that the compiler has to the GPU's {gpu.capability}"
    return f"Kernels are PTX for {nearest}, {which}. NVIDIA's driver compiles it when a session is opened."


def nearest_target(capability: str) -> str:
    """The target nearest to a GPU's capability, such as `sm_90`. Raises BuildError if each target is above it."""
    gpu_capability = int(capability.removeprefix("sm_"))
    below = [target for target in TARGETS if target <= gpu_capability]
    if not below:
        raise BuildError(f"iree-compile has no target for {capability}: its first is sm_{min(TARGETS)}")
    return f"sm_{max(below)}"
