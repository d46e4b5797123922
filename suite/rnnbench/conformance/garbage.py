"""Garbage collection within a check: a framework's objects would take longer to look at than the calls."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_frozen_for_good = False


def freeze_for_good() -> None:
    """Freeze what is in memory now, so that no collector of this process or of its children visits it again."""
    global _frozen_for_good
    gc.freeze()
    _frozen_for_good = True


@contextmanager
def only_new_garbage() -> Iterator[None]:
    """The collector looks only at what is made from now on.

    Where objects were frozen before, as in a forked child, all of them stay so: `gc.unfreeze` knows no others. Counting
    them visits every one, so that is done only where nobody has said so.
    """
    frozen_before = _frozen_for_good or gc.get_freeze_count() > 0
    gc.freeze()
    try:
        yield
    finally:
        if not frozen_before:
            gc.unfreeze()
