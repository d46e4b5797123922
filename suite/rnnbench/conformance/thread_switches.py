"""Setting how often Python's threads take turns within a check, so that they also do so within a call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def switching_every(seconds: float) -> Iterator[None]:
    """Let threads take turns every `seconds` seconds. The earlier interval is restored afterwards."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
