"""Caches are told by size, and evicting them reads twice the largest."""

from __future__ import annotations

import pytest
from alone import alone

from rnnbench.measure import caches, memory


def test_the_largest_cache_is_evicted_twice_over():
    sizes = caches.cache_sizes()
    assert caches.eviction_bytes() == 2 * max(sizes.values(), default=caches.UNKNOWN)


@pytest.mark.usefixtures("own_segments")
def test_every_page_of_the_buffer_is_a_page_of_its_own_before_the_first_eviction(monkeypatch):
    """Filling it takes longer than a block of calls."""
    monkeypatch.setattr(caches, "eviction_bytes", lambda: 64 << 20)

    def measure():
        before = memory.resident()
        evict = caches.Evictor()
        grown = memory.resident() - before
        evict()
        return grown

    assert alone(measure) >= 0.9 * (64 << 20)
