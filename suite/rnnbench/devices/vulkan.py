"""Vulkan: GPUs of many makers, and Mesa's software device (lavapipe), which tests use if there is no GPU."""

from __future__ import annotations

from rnnbench.devices.device import DeviceKind

KIND = DeviceKind(
    name="vulkan",
    meaning="a GPU with a Vulkan driver, or Mesa's software device",
    driver_threads=2,  # Of the runtimes, only IREE has such threads, at most two.
    install="apt-get install --no-install-recommends libvulkan1 mesa-vulkan-drivers",
    unmeasured={
        "latency_floor": "The suite measures the roof of the processor, and not that of a Vulkan device.",
        "cold": "The suite can empty the caches of the processor, and not those of a Vulkan device.",
        "device_memory": "Vulkan does not tell what a process has on a device. The runtime's own count is `allocated`.",
        "device_conditions": "Vulkan tells nothing of a device's clock, power or other users.",
        "energy": "Vulkan has no counter of energy.",
        "device_time": "The suite times no call by a Vulkan device's own clock.",
    },
)
