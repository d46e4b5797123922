"""How a faulty adapter is enlisted: by the check that must find it, and the trial in which it shows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from honest_adapter import HonestBound, HonestSession


@dataclass(frozen=True)
class Fault:
    name: str
    found_by: str
    session: type[HonestSession]
    trial: dict[str, Any] = field(default_factory=dict)
    """What the trial must be for the fault to show, where it is not an LSTM of batch 1 in chunks of 4."""


FAULTS: list[Fault] = []
BATCH = {"batch": 3}
RAGGED = {"batch": 3, "state": "none", "lengths": "ragged"}


def fault(found_by: str, **trial: Any) -> Callable[[type[HonestSession]], type[HonestSession]]:
    """Enlists a session as a fault, named for its class."""

    def enlist(session: type[HonestSession]) -> type[HonestSession]:
        FAULTS.append(Fault(session.__name__, found_by, session, trial))
        return session

    return enlist


def timed(found_by: str, **trial: Any) -> Callable[[type[HonestBound]], type[HonestBound]]:
    """Enlists a bound call as a fault of an otherwise honest session."""

    def enlist(bound: type[HonestBound]) -> type[HonestBound]:
        session = type(bound.__name__, (HonestSession,), {"_bind": lambda self, ring: bound(self, ring)})
        FAULTS.append(Fault(bound.__name__, found_by, session, trial))
        return bound

    return enlist


def let_others_run(have_run: Callable[[], bool] = lambda: True, patience_s: float = 0.0) -> None:
    """Give another thread time to be in the same place, without waiting for it: it may have gone.

    Where there is one chance alone, wait up to `patience_s` until `have_run`: on a busy machine, a thread begins late.
    """
    if threading.current_thread() is threading.main_thread():
        return
    until = time.monotonic() + patience_s
    time.sleep(1e-3)
    while not have_run() and time.monotonic() < until:
        time.sleep(1e-3)
