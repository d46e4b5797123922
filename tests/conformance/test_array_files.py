"""Files of arrays come back as they were written, or as damaged: those can be made again."""

from __future__ import annotations

import os
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from quick_tests import runs_all

from rnnbench.conformance import array_files
from rnnbench.conformance.array_files import ArrayStore, key_digest, load_arrays, save_arrays
from rnnbench.disk import read_cached
from rnnbench.locks import locked
from rnnbench.rnn import products


def bits_to_flip(file: Path) -> list[int]:
    """One bit of each byte, and for the proof every bit of what no checksum covers: headers and directory."""
    content = file.read_bytes()
    checked = set[int]()
    with ZipFile(file) as archive:
        for member in archive.infolist():
            begin = content.index(b"\x93NUMPY", member.header_offset)
            checked |= set(range(begin, begin + member.compress_size))
    one = checked if runs_all() else range(len(content))
    return [8 * at + bit for at in range(len(content)) for bit in ([at % 8] if at in one else range(8))]


def test_one_flipped_bit_gives_the_arrays_or_a_damaged_file(tmp_path):
    file, y = tmp_path / "arrays.npz", np.arange(6.0)
    save_arrays(file, {"y": y})
    content, bits = file.read_bytes(), bits_to_flip(file)
    damaged = 0
    for bit in bits:
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        arrays = read_cached(file, load_arrays)
        damaged += arrays is None
        assert arrays is None or (list(arrays) == ["y"] and np.array_equal(arrays["y"], y)), bit
    assert damaged > len(bits) / 2


def test_arrays_are_computed_on_all_cores(tmp_path, monkeypatch):
    """A trial's worker is bound to the cores of its program, and nothing is timed while the reference is computed."""
    monkeypatch.setattr(array_files, "STARTED_ON", os.sched_getaffinity(0) | {0, 1})
    monkeypatch.setattr(products, "LARGE", 1)
    seen = []

    def compute():
        seen.extend(products._threads)
        return {"y": products.times_transposed(np.ones((1, 2)), np.ones((3, 2)))}

    np.testing.assert_array_equal(ArrayStore(tmp_path, None, 60).get("run", {}, compute)["y"], [[2, 2, 2]])
    assert len(seen) == 1
    assert not products._threads


def test_a_process_that_was_stopped_while_it_computed_is_not_waited_for_for_ever(tmp_path):
    store = ArrayStore(tmp_path, None, 0.05)
    with locked(tmp_path / f"run-{key_digest({})}.lock"):
        assert list(store.get("run", {}, lambda: {"y": np.ones(1)})) == ["y"]
