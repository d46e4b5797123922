"""Memory figures follow what a process allocates, frees and leaves to its children."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from rnnbench.measure import memory

SIZE = 64 << 20


def test_the_peak_remembers_what_was_freed_until_it_is_forgotten():
    memory.forget_peak()
    before = memory.peak()
    block = np.ones(SIZE, np.uint8)
    assert memory.resident() >= SIZE
    del block
    assert memory.peak() >= before + 0.9 * SIZE
    memory.forget_peak()
    assert memory.peak() < before + 0.5 * SIZE


def test_a_childs_peak_is_seen_once_it_has_ended():
    subprocess.run([sys.executable, "-c", f"b'x' * {2 * SIZE}"], check=True)
    assert memory.children_peak() >= 2 * SIZE


def test_a_leak_shows_as_growth_and_a_page_here_and_there_does_not():
    kept = []

    def leak():
        kept.append(np.ones(10_000))

    grown = memory.growth(leak)
    assert grown.per_1000_calls == pytest.approx(80e6, rel=0.3)
    steady = memory.growth(lambda: sum(range(100)))
    assert abs(steady.per_1000_calls) < 1e5
    assert steady.calls >= 8
