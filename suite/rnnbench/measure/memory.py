"""The memory of this process and of what belongs to it, in bytes, as the Linux kernel counts it.

It is the sum of the process's resident bytes, with mapped shared memory; the bytes that each running descendant has for
itself; and the size of unmapped shared memory and of anonymous files in memory. So nothing counts twice. A program
without descendants and such memory has exactly its resident bytes.
"""

from __future__ import annotations

import ctypes
import gc
import re
import resource
from pathlib import Path

import psutil

from rnnbench.measure.descendants import (
    SEGMENTS,
    children_of_this_process,
    private_bytes,
    private_peak,
    unmapped_memory_files,
)

_STATUS = Path("/proc/self/status")
_CLEAR_REFS = Path("/proc/self/clear_refs")


def resident() -> int:
    """Resident bytes now, with those of descendants, of unmapped shared memory and of unmapped files in memory."""
    return _resident_in_processes() + _unmapped()


def resident_in_use() -> int:
    """Resident bytes after garbage collection, and after the C library has returned free memory (malloc_trim(3)).

    Otherwise free memory that the allocator still holds could hide a leak. Unmapped shared memory is left out, since
    another program may have made it.
    """
    gc.collect()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    return _resident_in_processes()


def _unmapped() -> int:
    """Bytes in memory that are in no process's resident bytes."""
    return SEGMENTS.unmapped() + unmapped_memory_files()


def _resident_in_processes() -> int:
    return int(psutil.Process().memory_info().rss) + private_bytes(children_of_this_process())


def reset_peak() -> None:
    """Set the peak to the resident bytes of now (proc(5), clear_refs)."""
    _CLEAR_REFS.write_text("5")


def peak() -> int:
    """The most resident bytes since the process's start or `reset_peak`, with the peaks of its descendants."""
    match = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    assert match, "the Linux kernel reports VmHWM for every process"
    return int(match[1]) * 1024 + private_peak(children_of_this_process()) + _unmapped()


def children_peak() -> int:
    """The most resident bytes of any one finished child (or of its children); 0 if there was none."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def finished_beyond(before: int) -> int:
    """Bytes by which the largest child exceeds this process's resident bytes, if it finished since `before`.

    `before` is an earlier `children_peak`. A forked child begins with its parent's memory, so only the excess is surely
    its own. A child that is smaller than an earlier one is not noticed.
    """
    now = children_peak()
    return max(0, now - int(psutil.Process().memory_info().rss)) if now > before else 0
