"""Products of the reference by weights: as one product of matrices, and on several cores where it is large.

A trial's worker is bound to the cores that its program is timed on, and its BLAS has one thread. While the reference is
computed nothing is timed, so large products may use the cores that are idle then.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

LARGE = 1 << 22
"""Multiplications from which a product is shared by several cores. It takes a millisecond, far more than a thread's
start of work."""
MOST = 16
"""The most cores. Each thread of BLAS has a buffer of its own."""
_threads: list[tuple[ThreadPoolExecutor, int]] = []
"""The threads of the block `on_cores` that runs now, and their number."""


@contextmanager
def on_cores(cores: Collection[int]) -> Iterator[None]:
    """Inside, large products run on these cores, whatever cores the calling thread is bound to."""
    parts = min(len(cores), MOST)
    if _threads or parts == 1:
        yield
        return
    # A thread is bound as the thread that starts it is, which is to the trial's cores.
    with ThreadPoolExecutor(parts, initializer=os.sched_setaffinity, initargs=(0, cores)) as pool:
        _threads.append((pool, parts))
        try:
            yield
        finally:
            _threads.pop()


def times_transposed(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x [..., k] · weightᵀ for a weight [n, k], as one product of matrices.

    NumPy would call BLAS for each matrix of a stack. BLAS reads a transposed matrix as fast as any other. Copying large
    weights transposed takes as long as ten products.
    """
    rows = x.reshape(-1, x.shape[-1])
    shared = bool(_threads) and len(rows) * weight.size >= LARGE
    product: np.ndarray = _shared(rows, weight, *_threads[0]) if shared else rows @ weight.T
    return product.reshape(*x.shape[:-1], -1)


def _shared(rows: np.ndarray, weight: np.ndarray, pool: ThreadPoolExecutor, parts: int) -> np.ndarray:
    """The product in as many parts as there are threads. Each has some rows of the weight."""
    product = np.empty((len(rows), len(weight)), np.result_type(rows, weight))
    ends = np.linspace(0, len(weight), parts + 1).astype(int)

    def multiply(begin: int, end: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):  # Each thread has settings of its own.
            np.matmul(rows, weight[begin:end].T, out=product[:, begin:end])

    list(pool.map(multiply, ends[:-1], ends[1:]))
    return product
