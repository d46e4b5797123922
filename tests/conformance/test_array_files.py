"""Files of arrays come back as they were written, or as damaged: those can be made again."""

from __future__ import annotations

import numpy as np

from rnnbench.conformance.array_files import load_arrays, save_arrays
from rnnbench.disk import read_cached


def test_one_flipped_bit_gives_the_arrays_or_a_damaged_file(tmp_path):
    file, y = tmp_path / "arrays.npz", np.arange(6.0)
    save_arrays(file, {"y": y})
    content = file.read_bytes()
    damaged = 0
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        arrays = read_cached(file, load_arrays)
        damaged += arrays is None
        assert arrays is None or (list(arrays) == ["y"] and np.array_equal(arrays["y"], y)), bit
    assert damaged > 4 * len(content)
