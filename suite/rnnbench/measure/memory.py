"""Memory of this process and what belongs to it, in bytes, as the Linux kernel counts it.

The process counts with its resident bytes, those of mapped shared memory included. Each descendant that runs adds what
it has for itself alone. Shared memory that was made and left unmapped counts with its whole size, and so does an
anonymous file in memory. So nothing counts twice, and a program without any of these has exactly its resident bytes.
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
    """Bytes resident now, with those of descendants, of unmapped shared memory and of unmapped files in memory."""
    return _resident_in_processes() + _unmapped()


def resident_in_use() -> int:
    """Bytes resident after garbage collection, and after the C library has returned its free memory (malloc_trim(3)).

    Otherwise a leak could be hidden by free memory that the allocator still holds. Unmapped shared memory is left out:
    a neighbour may have made it.
    """
    gc.collect()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    return _resident_in_processes()


def _unmapped() -> int:
    """Bytes in memory that are in no process's resident ones."""
    return SEGMENTS.unmapped() + unmapped_memory_files()


def _resident_in_processes() -> int:
    return int(psutil.Process().memory_info().rss) + private_bytes(children_of_this_process())


def reset_peak() -> None:
    """Set the peak to what is resident now (proc(5), clear_refs)."""
    _CLEAR_REFS.write_text("5")


def peak() -> int:
    """Most bytes resident since the start of the process, or since `reset_peak`, with the peaks of its descendants."""
    match = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    assert match, "the Linux kernel reports VmHWM for every process"
    return int(match[1]) * 1024 + private_peak(children_of_this_process()) + _unmapped()


def children_peak() -> int:
    """Most bytes resident in any one finished child (or its children). 0 if there was none."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def finished_beyond(before: int) -> int:
    """Bytes that a child had above this process's own, of the children that finished since `children_peak` was
    `before`.

    A child begins with what its parent has; only what is beyond that is surely its own. A child that was smaller than
    an earlier one is not seen.
    """
    now = children_peak()
    return max(0, now - int(psutil.Process().memory_info().rss)) if now > before else 0
