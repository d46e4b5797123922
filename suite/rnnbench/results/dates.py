"""The time that a run says it is of. A machine whose clock was wrong may have dated its runs wrongly."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

AHEAD = timedelta(minutes=10)
"""A run may be later than now by this much. Clocks that the network sets differ by less."""
EARLIEST = datetime(2025, 1, 1, tzinfo=UTC)
"""A clock before this is wrong: rnnbench was written later. A machine without a battery begins in 1970."""
FUTURE = "in the future"
PAST = "before rnnbench was written"


def wrong_date(started: str) -> str:
    """FUTURE or PAST for a time in ISO 8601 that a wrong clock gave, else empty. It is UTC where it names no zone.

    A text that is no time is not wrong. If this machine's own clock is before EARLIEST, no time is wrong: otherwise all
    runs would be left out.
    """
    now = datetime.now(UTC)
    if now < EARLIEST:
        return ""
    try:
        time = datetime.fromisoformat(started)
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        return FUTURE if time > now + AHEAD else PAST if time < EARLIEST else ""
    except (ValueError, OverflowError):
        return ""


def wrong_dates(times: Iterable[str]) -> dict[str, str]:
    """The times that a wrong clock gave, and why. None if all are wrong, since then nobody knows the right ones."""
    times = frozenset(times)
    wrong = {time: why for time in times if (why := wrong_date(time))}
    return {} if len(wrong) == len(times) else wrong
