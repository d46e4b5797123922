"""Resident memory of this process and its finished children, in bytes, as the Linux kernel counts it."""

from __future__ import annotations

import re
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median

import psutil

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")

READINGS = 9
"""Times that memory is read while it may grow: the median slope between two of them is none that one page makes."""
GROWTH_S = 0.2
GROWTH_CALLS = 160
"""Seconds, or calls, after which growth has been looked for long enough; whichever comes first. 200 bytes a call show
by then as a page from reading to reading; what grows more slowly is for the long checks to find."""


@dataclass(frozen=True)
class Growth:
    """Bytes by which resident memory grew, scaled to 1,000 calls, as seen over `calls`."""

    per_1000_calls: float
    calls: int


def resident() -> int:
    """Bytes resident now."""
    return int(psutil.Process().memory_info().rss)


def forget_peak() -> None:
    """Start the peak anew from what is resident now (proc(5), clear_refs)."""
    _CLEAR_REFS.write_text("5")


def peak() -> int:
    """Most bytes resident since the process started, or since `forget_peak`."""
    match = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    assert match, "the Linux kernel reports VmHWM for every process"
    return int(match[1]) * 1024


def children_peak() -> int:
    """Most bytes that any one finished child (or its children) had resident; 0 where there was none."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def growth(call: Callable[[], object]) -> Growth:
    """How memory grows from call to call: the median of the slopes between readings (Theil and Sen)."""
    start = time.perf_counter()
    call()
    calls = max(1, min(GROWTH_CALLS, int(GROWTH_S / (time.perf_counter() - start))) // (READINGS - 1))
    readings = [resident()]
    for _ in range(READINGS - 1):
        for _ in range(calls):
            call()
        readings.append(resident())
    slopes = [(b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(readings), 2)]
    return Growth(median(slopes) / calls * 1_000, calls * (READINGS - 1))
