"""How often Python's threads take turns within a check: as often as it takes for them to meet within a call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def switching_every(seconds: float) -> Iterator[None]:
    """Threads take turns after so many seconds, and afterwards as they did before."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
