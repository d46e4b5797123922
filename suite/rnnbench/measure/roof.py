"""The machine's roofs, as in a roofline model: bytes read per second by working set, and operations per second.

They are measured by compiled code, because several runtimes read faster than NumPy does. The code is LLVM IR
(`measure/roof_code.py`), which llvmlite (the extra `floor`) compiles in a few milliseconds.
"""

from __future__ import annotations

import ctypes
import mmap
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any

import numpy as np

from rnnbench.measure.roof_code import DTYPES, MULTIPLIER, READER, VECTOR_BYTES, multiplier, reader
from rnnbench.optional import require

ACCUMULATORS = 8
"""Sums of a reader, so that no addition waits for another. More or fewer sums did not make a reader faster."""
CHAINS = 12
"""Independent chains of multiply-adds. Two units with a latency of four cycles need eight."""
GROUP_BYTES = ACCUMULATORS * VECTOR_BYTES
PIECE_S = 0.001
"""Seconds of one timed piece: a thousand times the cost of its call, and shorter than most interruptions."""
PIECES = 5
"""Timed pieces, of which the median counts."""
LARGEST = 1 << 30
"""Bytes of the largest buffer. A larger working set is outside of every cache, too."""
HUGE_PAGE = 2 << 20


@dataclass(frozen=True)
class Roof:
    """One measurement of the machine."""

    bandwidth: Mapping[int, float]
    """Bytes per second, by working set in bytes."""
    rate: float | None
    """Operations per second. None where they cannot be measured for the dtype."""


@dataclass(frozen=True)
class _Piece:
    """Compiled code with all of its arguments but the count, and the bytes or operations of a count of one."""

    run: Callable[[int], object]
    amount: int
    memory: tuple[np.ndarray, ...]
    """The arrays whose addresses the code has."""


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
        self._multiplying = self._multipliers(dtype) if dtype in DTYPES else None

    def measure(self) -> Roof:
        """Measure each roof: the fastest way to do it counts, with the median of PIECES pieces of a millisecond."""
        bandwidth = {size: max(map(self._speed, ways)) for size, ways in self._readings.items()}
        return Roof(bandwidth, None if self._multiplying is None else self._speed(self._multiplying))

    def close(self) -> None:
        self._pool.shutdown()

    def _multipliers(self, dtype: str) -> list[_Piece]:
        multiply = self._compiler.function(multiplier(dtype, CHAINS), MULTIPLIER, _MULTIPLIES)
        values = [_buffer(CHAINS * VECTOR_BYTES) for _ in range(self._threads)]
        lanes = VECTOR_BYTES // np.dtype(dtype).itemsize
        return [_multiplying(multiply, value, 2 * CHAINS * lanes) for value in values]

    def _speed(self, pieces: Sequence[_Piece]) -> float:
        """Bytes or operations per second of all threads together."""
        count = _count_for(pieces[0])
        barrier = Barrier(len(pieces))

        def timed(piece: _Piece) -> float:
            barrier.wait()
            return piece.amount * count / _seconds(piece, count)

        if len(pieces) == 1:
            return statistics.median(timed(pieces[0]) for _ in range(PIECES))
        return statistics.median(sum(self._pool.map(timed, pieces)) for _ in range(PIECES))


class _Compiler:
    """LLVM for this processor. It keeps the compiled code alive."""

    def __init__(self) -> None:
        self._llvm = llvm = require("llvmlite.binding", "floor", "measuring what the machine can do")
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._engines: list[Any] = []

    def function(self, code: str, name: str, arguments: Sequence[Any]) -> Callable[..., object]:
        """The function of that name. Calls release Python's lock."""
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


def _count_for(piece: _Piece) -> int:
    """The count for which a piece takes PIECE_S, found by doubling. This warms up the data, too."""
    count = 1
    while (seconds := _seconds(piece, count)) < PIECE_S / 2:
        count *= 2
    return max(1, round(count * PIECE_S / seconds))


def _seconds(piece: _Piece, count: int) -> float:
    start = time.perf_counter()
    piece.run(count)
    return time.perf_counter() - start


def _buffer(nbytes: int) -> np.ndarray:
    """Zeros in huge pages where the kernel gives them, so that address translation costs least."""
    memory = mmap.mmap(-1, (-(-nbytes // HUGE_PAGE) + 1) * HUGE_PAGE)
    memory.madvise(mmap.MADV_HUGEPAGE)
    array = np.frombuffer(memory, np.uint8)
    start = -array.ctypes.data % HUGE_PAGE
    array = array[start : start + nbytes]
    array[:] = 0
    return array
