"""Resident memory of this process and its finished children, in bytes, as the Linux kernel counts it."""

from __future__ import annotations

import ctypes
import gc
import re
import resource
from pathlib import Path

import psutil

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


def resident() -> int:
    """Bytes resident now."""
    return int(psutil.Process().memory_info().rss)


def resident_in_use() -> int:
    """Bytes resident after garbage collection, and after the C library has returned its free memory (malloc_trim(3)).

    Otherwise a leak could be hidden by free memory that the allocator still holds.
    """
    gc.collect()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    return resident()


def reset_peak() -> None:
    """Set the peak to what is resident now (proc(5), clear_refs)."""
    _CLEAR_REFS.write_text("5")


def peak() -> int:
    """Most bytes resident since the start of the process, or since `reset_peak`."""
    match = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    assert match, "the Linux kernel reports VmHWM for every process"
    return int(match[1]) * 1024


def children_peak() -> int:
    """Most bytes resident in any one finished child (or its children). 0 where there was none."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
