"""Measuring an NVIDIA GPU's roof with the suite's own programs, and emptying its caches."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

from rnnbench.devices.cuda_driver import CudaDriver
from rnnbench.devices.cuda_kernels import (
    CHAINS,
    LINKS,
    MULTIPLIER,
    NOTHING,
    READER,
    READS,
    VECTOR_BYTES,
    ptx,
)
from rnnbench.measure import Roof, speed_of

EVICTED = 2
"""How many times the size of the second-level cache is written to empty it."""
PIECE_S = 0.005
"""Seconds of one timed piece: several hundred times a launch."""
THREADS, BLOCKS = 512, 4
"""Threads per block, and blocks per multiprocessor: at least as many threads as any GPU holds on one multiprocessor."""
LAUNCHES = 200
"""Launches of an empty program. Their median counts."""
LARGEST = 1 << 30
"""Bytes of the largest buffer. It stands for larger working sets too, since it fits in no cache."""
REGISTER_BYTES = 4
RATED = "float32"
"""The only dtype whose rate is measured. Tensor cores compute the others too, with another program for each GPU."""


class L2Evictor:
    """Called, it writes EVICTED times the size of the second-level cache. First-level caches end with each kernel."""

    def __init__(self, driver: CudaDriver) -> None:
        self._nbytes = EVICTED * driver.attribute("L2_CACHE_SIZE")
        self._address = driver.allocate(self._nbytes)
        self._driver = driver

    def __call__(self) -> None:
        self._driver.fill(self._address, self._nbytes)


class CudaRoof:
    """Measures a GPU's roof: reading past the first-level cache, multiply-adds of float32, and launching.

    Each kernel starts with empty first-level caches, shared memory and registers. So a call reads everything once from
    the second-level cache or memory. It may keep data on the multiprocessors to read it again (`Roof.on_chip`). A small
    working set gets the bandwidth of one with two vectors per thread, or of half the cache.
    """

    def __init__(self, driver: CudaDriver, working_sets: Sequence[int], dtype: str) -> None:
        self._driver = driver
        processors = driver.attribute("MULTIPROCESSOR_COUNT")
        self._caches = {"L2": driver.attribute("L2_CACHE_SIZE")}
        self._on_chip = processors * (
            driver.attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR")
            + REGISTER_BYTES * driver.attribute("MAX_REGISTERS_PER_MULTIPROCESSOR")
        )
        reader, multiplier, nothing = driver.kernels(ptx(), (READER, MULTIPLIER, NOTHING))
        blocks = BLOCKS * processors
        threads = blocks * THREADS
        self._launch = driver.launcher(nothing, 1, 1, ())
        sums = driver.allocate(threads * ctypes.sizeof(ctypes.c_uint32))
        # If several threads of a multiprocessor read a vector at once, it may come from L2 once and count several
        # times. Without this limit an H100 seemed to read 0.4 MB at 18 TB/s, and 4.7 MB at 8 TB/s.
        smallest = min(2 * threads * VECTOR_BYTES, self._caches["L2"] // 2)
        read = {size: min(max(size, smallest), LARGEST) for size in working_sets}
        data = driver.allocate(max([VECTOR_BYTES, *read.values()]))
        turns = ctypes.c_uint32()
        self._reading = {}
        for size in working_sets:
            count = max(1, read[size] // VECTOR_BYTES)
            arguments = (
                ctypes.c_uint64(data),
                ctypes.c_uint64(sums),
                ctypes.c_uint32(count),
                ctypes.c_uint32(threads % count),
                turns,
            )
            self._reading[size] = partial(_run, driver.launcher(reader, blocks, THREADS, arguments), turns)
        self._read_bytes = threads * READS * VECTOR_BYTES
        multiplying = (ctypes.c_uint64(sums), ctypes.c_float(0.5), turns)
        self._multiply = partial(_run, driver.launcher(multiplier, blocks, THREADS, multiplying), turns)
        self._operations = 2 * threads * CHAINS * LINKS if dtype == RATED else 0

    def measure(self) -> Roof:
        bandwidth = {size: speed_of(read, self._read_bytes, PIECE_S) for size, read in self._reading.items()}
        rate = speed_of(self._multiply, self._operations, PIECE_S) if self._operations else None
        return Roof(bandwidth, rate, self._launch_seconds(), self._on_chip, self._caches)

    def close(self) -> None:
        self._driver.close()

    def _launch_seconds(self) -> float:
        times = []
        for _ in range(LAUNCHES):
            start = time.perf_counter()
            self._launch()
            times.append(time.perf_counter() - start)
        return statistics.median(times)


def _run(launch: Callable[[], None], turns: ctypes.c_uint32, count: int) -> None:
    """Run a kernel with `count` turns of its loop."""
    turns.value = count
    launch()


def empty_l2() -> Callable[[], object]:
    """A function that empties the GPU's caches. Raises UnmeasuredError."""
    return L2Evictor(CudaDriver())


def measure_roof(working_sets: Sequence[int], dtype: str, _threads: int) -> CudaRoof:
    """The measurer of the GPU's roof. Raises UnmeasuredError. The trial's threads are the host's and do not matter."""
    return CudaRoof(CudaDriver(), working_sets, dtype)
