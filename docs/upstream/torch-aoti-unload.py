# /// script
# dependencies = ["torch==2.13.0", "numpy"]
# [tool.rnnbench]
# tools = "g++: apt-get install g++"
# ///
"""PyTorch keeps a package of AOTInductor mapped after it is unloaded, until the thread ends that loaded it.

python torch-aoti-unload.py [LOADS]
Needs g++. Exits with 1 where libraries stay that were loaded by this thread.
"""

import gc
import sys
import tempfile
from pathlib import Path
from threading import Thread

import torch


class Small(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x) + x


def load_and_delete(package):
    model = torch._inductor.aoti_load_package(package)
    del model
    gc.collect()


def load_in_a_thread(package):
    thread = Thread(target=load_and_delete, args=(package,))
    thread.start()
    thread.join()


def mapped():
    return len({line.split()[5] for line in Path("/proc/self/maps").open() if "/aotinductor_" in line})


def resident_kib():
    return next(int(line.split()[1]) for line in Path("/proc/self/status").open() if line.startswith("VmRSS"))


loads = int(sys.argv[1]) if len(sys.argv) > 1 else 40
with tempfile.TemporaryDirectory() as folder:
    package = str(Path(folder, "small.pt2"))
    torch._inductor.aoti_compile_and_package(torch.export.export(Small(), (torch.randn(8),)), package_path=package)
    load_and_delete(package)
    for how in (load_in_a_thread, load_and_delete):
        libraries, resident = mapped(), resident_kib()
        for _ in range(loads):
            how(package)
        left = mapped() - libraries
        print(f"{how.__name__}: {left} more libraries, {resident_kib() - resident:,} KiB more")
sys.exit(int(left > 1))
