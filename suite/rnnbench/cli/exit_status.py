"""The exit status of a command that ran trials."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rnnbench.results import Record

OK, NONCONFORMING, MISTAKE, FAILED, INTERRUPTED = 0, 1, 2, 3, 130
UNREAD = 128 + signal.SIGPIPE
"""As a shell says it of git or jq: nobody reads the output any more. It is no verdict of a comparison."""


def exit_status(records: Sequence[Record]) -> int:
    """1 if something is nonconforming, else 3 if a trial failed: a wrong number is worse.

    An expected failure counts as success. An expected failure that passes counts as 1: the list of expected failures is
    out of date.
    """
    from rnnbench.results import FAILURES

    outcomes = {record.outcome for record in records if not record.fails_as_expected}
    if "nonconforming" in outcomes or any(record.passes_unexpectedly for record in records):
        return NONCONFORMING
    return FAILED if outcomes & FAILURES else OK
