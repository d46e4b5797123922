"""Limits of the address space (`ulimit -v`, `ulimit -d`), the library of NumPy's products, and DuckDB.

OpenBLAS allocates its buffers while it is loaded. If that fails on several threads, it tries again for ever, and no
signal reaches Python meanwhile. On one thread it ends the process, with a message of its own. DuckDB dies of SIGSEGV
where it has no room for its first buffers.
"""

from __future__ import annotations

import mmap
import os
import resource
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

ROOM = 128 << 20
"""Bytes that NumPy and OpenBLAS add to the address space on one thread: 120 MiB for the import and a first product."""
DATABASE_ROOM = 1 << 30
"""Bytes that DuckDB adds with a small table: 810 MiB, and the import."""
LOADING = {"numpy": ("NumPy", ROOM), "scipy.linalg": ("NumPy", ROOM), "duckdb": ("DuckDB", DATABASE_ROOM)}
"""The imports that load a copy of OpenBLAS each, or DuckDB; what they load, and the room for it."""


class _RequiresRoom:
    """Finds no module. It raises MemoryError where OpenBLAS or DuckDB would be loaded without room for its buffers."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in LOADING:
            library, room = LOADING[fullname]
            try:
                mmap.mmap(-1, room, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
            except OSError as error:
                raise MemoryError(f"the limit of the address space leaves no {room >> 20} MiB for {library}") from error
        return None


def load_products_within_limit() -> None:
    """Where this process has such a limit: load OpenBLAS for one thread, and raise MemoryError if it has no room.

    DuckDB is loaded with room, too. Call this before either is imported. Processes that this one starts inherit the
    number of threads.
    """
    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    if any(limit != resource.RLIM_INFINITY for limit in limits):
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        sys.meta_path.insert(0, _RequiresRoom())
