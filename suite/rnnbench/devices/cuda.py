"""CUDA: NVIDIA's GPUs."""

from __future__ import annotations

from rnnbench.devices.device import DeviceKind

KIND = DeviceKind(
    name="cuda",
    meaning="An NVIDIA GPU through CUDA.",
    install="pip install 'rnnbench[cuda]', on a machine with NVIDIA's driver",
    unmeasured={
        "latency_floor": "The suite measures the roof of the processor, and not that of a CUDA device.",
        "cold": "The suite can empty the caches of the processor, and not those of a CUDA device.",
        "device_memory": "The suite does not read CUDA's memory yet.",
    },
)
