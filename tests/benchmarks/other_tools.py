"""What pytest-benchmark, pyperf and asv say of the same processes: each is fed what it sees in use, and judges itself.

Each function takes the blocks of some pairs of processes, [pairs, rounds, sides, STATS], and returns `SLOWER`, `FASTER`
or `` for no change.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyperf
from asv.commands.compare import _is_result_better
from asv_runner.statistics import compute_stats
from pyperf._compare import CompareResult
from pytest_benchmark.utils import parse_compare_fail
from verdict_pool import STATS

MEAN, LEAST, COUNT = (STATS.index(name) for name in ("mean", "min", "count"))


def pytest_benchmark(fail: str) -> Callable[[np.ndarray], str]:
    """`--benchmark-compare-fail=FAIL` on one process a side, with all of its calls; asked in both directions."""
    check = parse_compare_fail(fail)

    def judge(pairs: np.ndarray) -> str:
        old, new = (_all_calls(pairs[0, :, side]) for side in range(2))
        return "SLOWER" if check.fails(new, old) else "FASTER" if check.fails(old, new) else ""

    return judge


def pyperf_compare(pairs: np.ndarray) -> str:
    """`pyperf compare_to` on 20 processes a side, with 3 values each: as many as it takes by itself."""
    benches = [
        pyperf.Benchmark([_run(process) for process in np.moveaxis(pairs[:20], 2, 0)[side]]) for side in range(2)
    ]
    result = CompareResult(*(_Named(name, bench) for name, bench in zip("ab", benches, strict=True)))
    if not result.significant:
        return ""
    return "SLOWER" if result.norm_mean > 1 else "FASTER"


def asv_compare(factor: float) -> Callable[[np.ndarray], str]:
    """`asv compare --factor FACTOR` on 2 processes a side, each with one sample of some 10 ms from every block."""

    def judge(pairs: np.ndarray) -> str:
        (old, old_stats), (new, new_stats) = (_sampled(pairs[:2, :, side, MEAN].ravel()) for side in range(2))
        if _is_result_better(old, new, old_stats, new_stats, factor):
            return "SLOWER"
        return "FASTER" if _is_result_better(new, old, new_stats, old_stats, factor) else ""

    return judge


class _Named:
    def __init__(self, name: str, benchmark: pyperf.Benchmark) -> None:
        self.name, self.benchmark = name, benchmark


def _all_calls(blocks: np.ndarray) -> dict[str, float]:
    """The minimum and the mean of all calls of one process, [rounds, STATS]."""
    return {"min": float(blocks[:, LEAST].min()), "mean": float(np.average(blocks[:, MEAN], weights=blocks[:, COUNT]))}


def _run(blocks: np.ndarray) -> pyperf.Run:
    """One process: three values, each the mean of the calls of a third of its blocks."""
    thirds = np.array_split(blocks, 3)
    values = [float(np.average(third[:, MEAN], weights=third[:, COUNT])) for third in thirds]
    return pyperf.Run(values, metadata={"name": "planted"}, collect_metadata=False)


def _sampled(samples: np.ndarray) -> tuple[float, tuple[dict[str, float], list[float]]]:
    values = [float(value) for value in samples]
    value, stats = compute_stats(values, 1)
    return value, (stats, values)
