"""The time that a run says it is of. A machine whose clock was wrong may have dated its runs in the future."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

AHEAD = timedelta(minutes=10)
"""By as much a run may be later than now. Clocks that the network sets differ by less."""
EARLIEST = datetime(2025, 1, 1, tzinfo=UTC)
"""A clock before this is wrong: rnnbench was written later. A machine without a battery begins in 1970."""


def is_ahead(started: str) -> bool:
    """Whether a time in ISO 8601 is in the future. It is UTC where it names no zone; what is no time is not.

    By a clock that is wrong nothing is: it would leave out every run that another day has made.
    """
    now = datetime.now(UTC)
    if now < EARLIEST:
        return False
    try:
        time = datetime.fromisoformat(started)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)) > now + AHEAD
    except (ValueError, OverflowError):
        return False


def ahead_of_others(times: Iterable[str]) -> frozenset[str]:
    """The times that are in the future. None if all are, since then this machine's clock is the wrong one."""
    times = frozenset(times)
    ahead = frozenset(filter(is_ahead, times))
    return frozenset() if ahead == times else ahead
