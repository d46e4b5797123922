"""The looped TensorIR kernel takes little longer than reading its weights (a minute; docs/backends/tvm_kernels.md).

Kernel and readers run in turn, in short blocks, pinned to one CPU, on the very buffer of the program's weights. A
figure is the median over the rounds of a block's median.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

bandwidth = pytest.importorskip("bandwidth")

ROUNDS = 20
BLOCK_S = 0.03
Key = tuple[str, str]
LIMITS = {1: 1.5, 16: 1.15}
"""By chunk, a step of the kernel as a multiple of the fastest reader's pass over the same buffer. With one step a call,
the call itself and the clock are part of it."""


@pytest.fixture(autouse=True)
def one_cpu() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.parametrize("hidden", [128, 512])
@pytest.mark.parametrize("chunk", LIMITS)
def test_a_step_costs_little_more_than_reading_its_weights(hidden: int, chunk: int, tmp_path: Path) -> None:
    kernel, every, each_step = bandwidth.kernel(hidden, chunk, tmp_path)
    calls = {("kernel", ""): kernel}
    calls |= {("weights", way): call for way, call in bandwidth.readers(every).items()}
    calls |= {("w_hh", way): call for way, call in bandwidth.readers(each_step).items()}
    passes = {"kernel": chunk, "weights": bandwidth.PASSES, "w_hh": bandwidth.PASSES}
    figures = {key: figure / passes[key[0]] for key, figure in _medians(calls).items()}
    step = figures["kernel", ""]
    print(f"\nH={hidden}, chunk {chunk}: a step takes {step * 1e6:.2f} µs")
    for what, array in (("weights", every), ("w_hh", each_step)):
        ways = {way: figure for (kind, way), figure in figures.items() if kind == what}
        for way in (min((w for w in ways if order in w), key=ways.__getitem__) for order in ("in order", "to and fro")):
            print(
                f"  reading {what}, {array.nbytes / 1e6:.2f} MB, {way}: {ways[way] * 1e6:.2f} µs,"
                f" {array.nbytes / ways[way] / 1e9:.0f} GB/s; the step takes {step / ways[way]:.2f} of it"
            )
    assert step <= LIMITS[chunk] * min(figure for (kind, _), figure in figures.items() if kind == "weights")


def _medians(calls: dict[Key, Callable[[], object]]) -> dict[Key, float]:
    """Seconds per call: the median over all rounds of the median of a block, the calls taking turns."""
    rounds: dict[Key, list[float]] = {key: [] for key in calls}
    for _ in range(ROUNDS):
        for key, call in calls.items():
            rounds[key].append(_block(call))
    return {key: statistics.median(medians) for key, medians in rounds.items()}


def _block(call: Callable[[], object]) -> float:
    for _ in range(3):
        call()
    seconds, end = [], time.perf_counter() + BLOCK_S
    while (start := time.perf_counter()) < end:
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
