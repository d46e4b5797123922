# /// script
# dependencies = ["iree-base-compiler==3.13.0", "iree-base-runtime==3.13.0", "numpy"]
# [tool.rnnbench]
# tools = "a Vulkan driver: apt-get install --no-install-recommends libvulkan1 mesa-vulkan-drivers"
# ///
"""IREE on Vulkan: a looped program is wrong from the second or third call on. Compares each call with the processor's.

python iree-vulkan-replay.py [compiler flag …]
It needs a Vulkan device: Mesa's software device is enough. Prints the largest error of each of 5 calls. Exits with 1
where one is above 1e-5.
"""

import sys
from pathlib import Path

import iree.compiler as compiler
import iree.runtime as rt
import numpy as np

CALLS = 5
TARGETS = {
    "local-sync": (
        "--iree-hal-target-device=local",
        "--iree-hal-local-target-device-backends=llvm-cpu",
        "--iree-llvmcpu-target-cpu=host",
    ),
    "vulkan": ("--iree-hal-target-device=vulkan",),
}


def download(device, view):
    """A copy through a staging buffer: memory of a device cannot be mapped."""
    memory = rt.MemoryType.HOST_LOCAL | rt.MemoryType.DEVICE_VISIBLE
    usage = int(rt.BufferUsage.TRANSFER) | int(rt.BufferUsage.MAPPING)
    staging = device.allocator.allocate_buffer(memory, usage, view.byte_length)
    done = device.create_semaphore(0)
    device.queue_copy(view.get_buffer(), staging, wait_semaphores=[], signal_semaphores=[(done, 1)])
    done.wait(1)
    return np.array(staging.map().asarray(view.shape, np.dtype("float32")))


def upload(device, array):
    return device.allocator.allocate_buffer_copy(
        memory_type=rt.MemoryType.DEVICE_LOCAL,
        allowed_usage=int(rt.BufferUsage.DEFAULT),
        device=device,
        buffer=array,
        element_type=rt.HalElementType.FLOAT_32,
    )


def outputs(driver, flags):
    """y of each call. The state that a call returns is the state of the next one, and never leaves the device."""
    program = compiler.compile_file(str(Path(__file__).with_suffix(".mlir")), extra_args=[*TARGETS[driver], *flags])
    device, instance = rt.get_device(driver), rt.VmInstance()
    module = rt.VmModule.copy_buffer(instance, program)
    context = rt.VmContext(instance, [rt.create_hal_module(instance, device), module])
    step, drawn = module.lookup_function("step"), np.random.default_rng(0)
    state = upload(device, np.zeros(4, np.float32))
    for _ in range(CALLS):
        arguments, results = rt.VmVariantList(2), rt.VmVariantList(2)
        arguments.push_ref(upload(device, drawn.standard_normal((4, 1, 2)).astype(np.float32)))
        arguments.push_ref(state)
        context.invoke(step, arguments, results)
        y, state = (results.get_as_object(index, rt.HalBufferView) for index in range(2))
        yield download(device, y)


errors = [
    float(np.abs(found - expected).max())
    for found, expected in zip(outputs("vulkan", sys.argv[1:]), outputs("local-sync", ()), strict=True)
]
print("largest error of each call:", " ".join(f"{error:.0e}" for error in errors))
sys.exit(max(errors) > 1e-5)
