"""Adapters that are asked for everything again: for tests that change what an adapter is or answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rnnbench.backends import registry
from rnnbench.plan import adapters


@contextmanager
def unasked_adapters() -> Iterator[None]:
    """Nothing that was answered before is known in the block, and nothing that was answered in it is after it."""
    _forget()
    try:
        yield
    finally:
        _forget()


def _forget() -> None:
    adapters.close_adapters()
    adapters._adapters.clear()
    registry.find.cache_clear()
    registry.entry_of.cache_clear()
