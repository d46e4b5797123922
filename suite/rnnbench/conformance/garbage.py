"""Garbage collection within a check: a framework's objects would take longer to look at than the calls."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def only_new_garbage() -> Iterator[None]:
    """The collector looks only at what is made from now on.

    Where objects were frozen before, as in a forked child, all of them stay so: `gc.unfreeze` knows no others.
    """
    frozen_before = gc.get_freeze_count() > 0
    gc.freeze()
    try:
        yield
    finally:
        if not frozen_before:
            gc.unfreeze()
