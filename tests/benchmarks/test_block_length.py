"""How long the blocks of a run are: what shorter ones do to the interval of a latency, on pools of real processes.

The first half of each block shows what a block of half its length would have shown. A process stops once four blocks or
more give its median to 1 %, as in `sampling.path_sampling`; three processes that followed each other have an interval.
"""

from __future__ import annotations

import numpy as np
import pytest
import verdict_pool

from rnnbench.measure import half_width, interval_of
from rnnbench.sampling.path_sampling import LEAST_ROUNDS, PROCESS_SHARE

PRECISION, PROCESSES = 0.02, 3


def sampled(pool: verdict_pool.Pool, of: str) -> tuple[np.ndarray, float]:
    """Half of the interval of each three processes in a row, and the mean seconds of a process."""
    share = verdict_pool.PARTS.get(of, 1.0)
    processes = pool.medians(0, of).transpose(0, 2, 1).reshape(-1, pool.blocks.shape[2])
    rounds = [needed(blocks) for blocks in processes]
    medians = [float(np.median(blocks[:count])) for blocks, count in zip(processes, rounds, strict=True)]
    halves = [half_width(interval_of(medians[n : n + PROCESSES])) for n in range(len(medians) - PROCESSES + 1)]
    return np.array(halves), float(np.mean(rounds)) * share * pool.paced


def needed(blocks: np.ndarray) -> int:
    """The blocks after which this process is done; all of them where its median is never precise enough."""
    for count in range(LEAST_ROUNDS, len(blocks)):
        if half_width(interval_of(blocks[:count].tolist())) <= PRECISION * PROCESS_SHARE:
            return count
    return len(blocks)


@pytest.mark.parametrize("name", ["xeon", "epyc"])
def test_blocks_of_half_the_length_take_half_the_time_and_leave_the_interval_as_wide(name):
    pool = verdict_pool.read(verdict_pool.DATA / f"{name}.npz")
    (whole, whole_s), (half, half_s) = (sampled(pool, of) for of in ("median", "half"))
    for of, halves, seconds in (("whole", whole, whole_s), ("half", half, half_s)):
        precise = float(np.mean(halves <= PRECISION))
        print(f"{name} {of}: {1e3 * seconds:.0f} ms a process, ±{np.median(halves):.2%}, {precise:.0%} within 2 %")
    assert half_s < 0.55 * whole_s
    assert np.median(half) < 1.1 * np.median(whole)
    assert np.mean(half <= PRECISION) > np.mean(whole <= PRECISION) - 0.03
