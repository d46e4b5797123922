"""Memory figures follow what a process allocates, frees and leaves to its children."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest

from rnnbench.measure import memory

SIZE = 64 << 20


@pytest.fixture
def swept():
    """What other tests left behind is gone, and does not go in the middle of this one."""
    gc.collect()


def test_the_peak_remembers_what_was_freed_until_it_is_forgotten(swept):
    memory.reset_peak()
    before = memory.peak()
    block = np.ones(SIZE, np.uint8)
    assert memory.resident() >= SIZE
    del block
    assert memory.peak() >= before + 0.9 * SIZE
    memory.reset_peak()
    assert memory.peak() < before + 0.5 * SIZE


def test_a_childs_peak_is_seen_once_it_has_ended():
    subprocess.run([sys.executable, "-c", f"b'x' * {2 * SIZE}"], check=True)
    assert memory.children_peak() >= 2 * SIZE


def test_what_was_freed_is_not_in_use_though_an_allocator_may_keep_it():
    memory.resident_in_use()
    before = memory.resident_in_use()
    blocks = [np.ones(1 << 16, np.uint8) for _ in range(SIZE >> 16)]
    last = np.ones(1 << 16, np.uint8)
    assert memory.resident_in_use() - before >= 0.9 * SIZE
    del blocks
    assert memory.resident_in_use() - before < 0.1 * SIZE
    assert last.all(), "which keeps the heap from shrinking by itself"


def test_memory_that_is_kept_is_resident(swept):
    before = memory.resident()
    kept = np.ones(SIZE, np.uint8)
    assert memory.resident() - before >= 0.9 * kept.nbytes
