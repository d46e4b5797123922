"""The floor of a step, as `make bench-tvm_floor` measures it: the kernel's own weights, and what reads them."""

from __future__ import annotations

from pathlib import Path

import bandwidth
import numpy as np
import pytest


@pytest.mark.parametrize("chunk", [1, 16])
def test_the_weights_of_each_step_are_a_part_of_the_kernel_s(chunk: int, tmp_path: Path) -> None:
    kernel, every, each_step = bandwidth.kernel(16, chunk, tmp_path)
    kernel()
    assert 4 * 16 * 16 <= each_step.size < every.size
    assert each_step.base is every or each_step.base is every.base


def test_a_reader_adds_up_all_that_it_reads() -> None:
    array = bandwidth.Buffer(1_040)
    array.array[:] = 1
    ways = bandwidth.readers(array.array)
    assert len(ways) == 2 * len(bandwidth.ACCUMULATORS)
    for call in ways.values():
        total = np.from_dlpack(call.args[1])
        before = total.sum()
        call()
        assert total.sum() - before == bandwidth.PASSES * 1_040
