"""Garbage collection within a check. Without it, visiting a framework's objects would take longer than the calls."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_frozen_for_good = False


def freeze_for_good() -> None:
    """Freeze all objects in memory, so that no collector of this process or its children visits them again."""
    global _frozen_for_good
    gc.freeze()
    _frozen_for_good = True


@contextmanager
def only_new_garbage() -> Iterator[None]:
    """Let the collector visit only objects that are made from now on.

    If objects were frozen before, as in a forked child, all stay frozen afterwards, since `gc.unfreeze` unfreezes all.
    Counting frozen objects visits each of them, so they are counted only if `freeze_for_good` was not called.
    """
    frozen_before = _frozen_for_good or gc.get_freeze_count() > 0
    gc.freeze()
    try:
        yield
    finally:
        if not frozen_before:
            gc.unfreeze()
