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
    """Bytes resident once Python's garbage is gone and the C library has given back what it keeps for later.

    What an allocator was left by something else would take in what is lost now (malloc_trim(3), where there is one).
    """
    gc.collect()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    return resident()


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
