"""The time that a run says it is of. A machine whose clock was wrong may have dated its runs in the future."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

AHEAD = timedelta(minutes=10)
"""By as much a run may be later than now. Clocks that the network sets differ by less."""


def is_ahead(started: str) -> bool:
    """Whether a time in ISO 8601 is in the future. It is UTC where it names no zone; what is no time is not."""
    try:
        time = datetime.fromisoformat(started)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)) > datetime.now(UTC) + AHEAD
    except (ValueError, OverflowError):
        return False


def ahead_of_others(times: Iterable[str]) -> frozenset[str]:
    """The times that are in the future. None if all are, since then this machine's clock is the wrong one."""
    times = frozenset(times)
    ahead = frozenset(filter(is_ahead, times))
    return frozenset() if ahead == times else ahead
