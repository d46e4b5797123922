"""The processor's caches: their sizes, and evicting a program's data from them."""

from __future__ import annotations

import mmap
from functools import cache
from pathlib import Path

import numpy as np

CPU = Path("/sys/devices/system/cpu/cpu0")
LINE = 64
"""Bytes of a cache line on every processor that the backends support."""
UNKNOWN = 128 << 20
"""Bytes that are assumed for the largest cache if the kernel does not report it: more than most processors have."""


@cache
def cache_sizes() -> dict[str, int]:
    """Bytes by level: `L1d`, `L1i`, `L2`, `L3`. A level that the kernel does not report is left out."""
    sizes = {}
    for index in sorted((CPU / "cache").glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if size.endswith("K"):
            sizes[f"L{level}{ {'Data': 'd', 'Instruction': 'i'}.get(kind, '') }"] = int(size[:-1]) * 1024
    return sizes


def eviction_bytes() -> int:
    """Twice the largest cache, or twice UNKNOWN: reading a cache's size once may leave some old lines in place."""
    return 2 * max(cache_sizes().values(), default=UNKNOWN)


class Evictor:
    """Called, it reads a byte of every line of a buffer twice the size of the largest cache.

    It does not evict the instruction cache of the first level, because data does not pass through it.
    """

    def __init__(self) -> None:
        # The kernel fills the buffer with pages: untouched pages would share one page of zeros. Touching each page from
        # Python takes ten times as long.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
        self._lines = np.frombuffer(mmap.mmap(-1, eviction_bytes(), flags=flags), np.uint8)[::LINE]

    def __call__(self) -> None:
        self._lines.max()
