"""Caches are told by size, and evicting them reads twice the largest."""

from __future__ import annotations

import gc

from rnnbench.measure import caches, memory


def test_the_largest_cache_is_evicted_twice_over():
    sizes = caches.cache_sizes()
    assert caches.eviction_bytes() == 2 * max(sizes.values(), default=caches.UNKNOWN)


def test_every_page_of_the_buffer_is_a_page_of_its_own_before_the_first_eviction(monkeypatch):
    """Filling it takes longer than a block of calls."""
    monkeypatch.setattr(caches, "eviction_bytes", lambda: 64 << 20)
    gc.collect()  # what other tests left is not to go in the middle
    before = memory.resident()
    evict = caches.Evictor()
    assert memory.resident() - before >= 0.9 * (64 << 20)
    evict()
