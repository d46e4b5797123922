# /// script
# dependencies = ["iree-base-runtime==3.13.0", "numpy"]
# [tool.rnnbench]
# tools = "nvidia-smi: a GPU of NVIDIA and its driver"
# ///
"""IREE's driver for CUDA refuses to allocate in a thread other than the one that opened the device."""

import sys
import threading

import iree.runtime as rt
import numpy as np

device = rt.get_device("cuda")
x = np.ones(4, np.float32)


def allocate(where):
    try:
        device.allocator.allocate_buffer_copy(
            memory_type=rt.MemoryType.DEVICE_LOCAL,
            allowed_usage=int(rt.BufferUsage.DEFAULT),
            device=device,
            buffer=x,
            element_type=rt.HalElementType.FLOAT_32,
        )
        found[where] = "done"
    except Exception as error:
        found[where] = str(error).splitlines()[0]


found = {}
allocate("the thread that opened the device")
other = threading.Thread(target=allocate, args=("another thread",))
other.start()
other.join()
for where, what in found.items():
    print(f"allocation in {where}: {what}")
sys.exit(int(found["another thread"] != "done"))
