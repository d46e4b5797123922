"""What the suite measures on an NVIDIA GPU with programs of its own: its roof. And it empties the GPU's caches."""

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
"""Seconds of one timed piece: several hundred times what a launch costs."""
THREADS, BLOCKS = 512, 4
"""Threads of a block, and blocks of a multiprocessor: as many threads as all GPUs hold on one, or more than some do."""
LAUNCHES = 200
"""Launches of a program that does nothing, of which the median counts."""
LARGEST = 1 << 30
"""Bytes of the largest buffer. A larger working set is outside of every cache, too."""
REGISTER_BYTES = 4
RATED = "float32"
"""The dtype whose rate is measured. The others are computed by tensor cores too, which take another program by GPU."""


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

    A GPU's first-level caches, shared memory and registers are emptied by each kernel. So a call reads everything once
    from the second-level cache or memory. What it reads again it may have kept on the multiprocessors (`Roof.on_chip`).
    A small working set has the bandwidth of one with two vectors for each thread, or of half the cache.
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
        # Vectors that several threads of a multiprocessor ask for at once may come from L2 once, and count several
        # times. An H100 seemed to read 0.4 MB at 18 TB/s, and 4.7 MB at 8.
        least = min(2 * threads * VECTOR_BYTES, self._caches["L2"] // 2)
        read = {size: min(max(size, least), LARGEST) for size in working_sets}
        data = driver.allocate(max(VECTOR_BYTES, *read.values()))
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
    """A kernel with so many turns of its loop."""
    turns.value = count
    launch()


def empty_l2() -> Callable[[], object]:
    """What empties the GPU's caches. Raises UnmeasuredError."""
    return L2Evictor(CudaDriver())


def measure_roof(working_sets: Sequence[int], dtype: str, _threads: int) -> CudaRoof:
    """Raises UnmeasuredError. The threads of a trial are the host's, and say nothing of the GPU."""
    return CudaRoof(CudaDriver(), working_sets, dtype)
