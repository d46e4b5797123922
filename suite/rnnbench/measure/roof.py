"""A device's roof, as in a roofline model: bytes read per second by working set, and operations per second.

The processor's roof is measured with compiled code, because several runtimes read faster than NumPy. The code is LLVM
IR (`measure/roof_code.py`), which llvmlite (the extra `floor`) compiles in a few milliseconds.
"""

from __future__ import annotations

import ctypes
import mmap
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any

import numpy as np

from rnnbench.measure.roof_code import DTYPES, MULTIPLIER, READER, VECTOR_BYTES, multiplier, reader
from rnnbench.optional import require

ACCUMULATORS = 8
"""Sums of a reader, so that no addition waits for another. More or fewer sums did not make a reader faster."""
CHAINS = (6, 12)
"""Numbers of independent chains of multiply-adds. The faster one counts. Two units with a latency of four cycles need
eight chains. A vector of the code takes two AVX registers: 6 vectors are 12 chains, and 12 vectors exceed the 16
registers of AVX."""
GROUP_BYTES = ACCUMULATORS * VECTOR_BYTES
PIECE_S = 0.001
"""Seconds of one timed piece: a thousand times the cost of its call, and shorter than most interruptions."""
PIECES = 5
"""Timed pieces. Their median counts."""
MOST_TURNS = 1 << 30
"""The largest count of a piece, so that the search ends if the time does not grow with the count."""
LARGEST = 1 << 30
"""Bytes of the largest buffer. It stands for larger working sets too, since it fits in no cache."""
HUGE_PAGE = 2 << 20


@dataclass(frozen=True)
class Roof:
    """One measurement of a device."""

    bandwidth: Mapping[int, float]
    """Bytes per second, by working set in bytes."""
    rate: float | None
    """Operations per second; None if they cannot be measured for the dtype."""
    launch: float = 0.0
    """Seconds from starting an empty program until the host knows that it is done; 0 for the processor."""
    on_chip: int = 0
    """Bytes that a program can keep in a GPU's registers and shared memory, where reading them again counts as free. 0
    for the processor, whose working sets are measured in every cache."""
    caches: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the caches by level, if only the probe can find them out."""


@dataclass(frozen=True)
class _Piece:
    """Compiled code that takes a count, and the bytes or operations of a count of one."""

    run: Callable[[int], object]
    amount: int
    memory: tuple[np.ndarray, ...]
    """The arrays whose addresses the code uses. They must live as long as the code."""


class RoofProbe:
    """Measures roofs for some working sets (bytes, shared by the threads) and one dtype. Raises MissingExtraError."""

    def __init__(self, working_sets: Sequence[int], dtype: str, threads: int) -> None:
        self._compiler = _Compiler()
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads)
        readers = [self._compiler.function(reader(ACCUMULATORS, turning), READER, _READS) for turning in (False, True)]
        shares = {size: _groups(size, threads) for size in working_sets}
        largest = max(shares.values(), default=1) * GROUP_BYTES
        memory = [(_buffer(largest), _buffer(GROUP_BYTES)) for _ in range(threads)]
        self._readings = {
            size: [[_reading(read, groups, data, sums) for data, sums in memory] for read in readers]
            for size, groups in shares.items()
        }
        self._multiplying = [self._multipliers(dtype, chains) for chains in CHAINS if dtype in DTYPES]

    def measure(self) -> Roof:
        """Measure bandwidths and rate. The fastest code counts, with the median of PIECES pieces of a millisecond."""
        bandwidth = {size: max(map(self._speed, ways)) for size, ways in self._readings.items()}
        return Roof(bandwidth, max(map(self._speed, self._multiplying), default=None))

    def close(self) -> None:
        self._pool.shutdown()

    def _multipliers(self, dtype: str, chains: int) -> list[_Piece]:
        multiply = self._compiler.function(multiplier(dtype, chains), MULTIPLIER, _MULTIPLIES)
        values = [_buffer(chains * VECTOR_BYTES) for _ in range(self._threads)]
        lanes = VECTOR_BYTES // np.dtype(dtype).itemsize
        return [_multiplying(multiply, value, 2 * chains * lanes) for value in values]

    def _speed(self, pieces: Sequence[_Piece]) -> float:
        """Bytes or operations per second of all threads together."""
        if len(pieces) == 1:
            return speed_of(pieces[0].run, pieces[0].amount, PIECE_S)
        count = _count_for(pieces[0].run, PIECE_S)
        barrier = Barrier(len(pieces))

        def timed(piece: _Piece) -> float:
            barrier.wait()
            return piece.amount * count / _seconds(piece.run, count)

        return statistics.median(sum(self._pool.map(timed, pieces)) for _ in range(PIECES))


class _Compiler:
    """LLVM for this processor. It keeps the compiled code alive."""

    def __init__(self) -> None:
        self._llvm = llvm = require("llvmlite.binding", "floor", "measuring what the machine can do")
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._engines: list[Any] = []

    def function(self, code: str, name: str, arguments: Sequence[Any]) -> Callable[..., object]:
        """Compile the function of this name. Calls of it release Python's global lock."""
        llvm = self._llvm
        module = llvm.parse_assembly(code)
        module.verify()
        # An engine owns its machine. If two engines shared one, it would be freed twice.
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
        )
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        self._engines.append(engine)
        return ctypes.CFUNCTYPE(None, *arguments)(engine.get_function_address(name))


_READS = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_MULTIPLIES = (ctypes.c_int64, ctypes.c_void_p)


def _reading(read: Callable[..., object], groups: int, data: np.ndarray, sums: np.ndarray) -> _Piece:
    source, target = data.ctypes.data, sums.ctypes.data
    # Passes in pairs: one forwards, one backwards.
    return _Piece(lambda pairs: read(source, groups, 2 * pairs, target), 2 * groups * GROUP_BYTES, (data, sums))


def _multiplying(multiply: Callable[..., object], values: np.ndarray, operations: int) -> _Piece:
    address = values.ctypes.data
    return _Piece(lambda turns: multiply(turns, address), operations, (values,))


def _groups(size: int, threads: int) -> int:
    return max(1, min(size, LARGEST) // threads // GROUP_BYTES)


def speed_of(run: Callable[[int], object], amount: int, piece_s: float) -> float:
    """Bytes or operations per second of `run`: the median of PIECES pieces of about `piece_s` seconds.

    A count of one does `amount` of them.
    """
    count = _count_for(run, piece_s)
    return statistics.median(amount * count / _seconds(run, count) for _ in range(PIECES))


def _count_for(run: Callable[[int], object], piece_s: float) -> int:
    """The count for which a piece takes `piece_s`, found by doubling. This warms up the data, too."""
    count = 1
    while (seconds := _seconds(run, count)) < piece_s / 2 and count < MOST_TURNS:
        count *= 2
    return max(1, min(MOST_TURNS, round(count * piece_s / seconds)))


def _seconds(run: Callable[[int], object], count: int) -> float:
    start = time.perf_counter()
    run(count)
    return time.perf_counter() - start


def _buffer(nbytes: int) -> np.ndarray:
    """Zeros, in huge pages if the kernel has them, so that address translation costs little."""
    memory = mmap.mmap(-1, (-(-nbytes // HUGE_PAGE) + 1) * HUGE_PAGE)
    memory.madvise(mmap.MADV_HUGEPAGE)
    array = np.frombuffer(memory, np.uint8)
    start = -array.ctypes.data % HUGE_PAGE
    array = array[start : start + nbytes]
    array[:] = 0
    return array
