"""Calls of a library that may never return: each has a thread of its own, and may be abandoned."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

_NAME = "rnnbench: a call that may be abandoned"


def in_a_thread(call: Callable[[], Any]) -> Future[Any]:
    """Begin a call in a thread of its own, to which no signal comes. The future has its result or exception."""
    answer: Future[Any] = Future()

    def answered() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 it is raised where the answer is taken
            answer.set_exception(error)

    threading.Thread(target=answered, name=_NAME, daemon=True).start()
    return answer


def any_left() -> bool:
    """Whether such a call has not returned. Its library may then let the interpreter not end, or crash as it ends."""
    return any(thread.name == _NAME for thread in threading.enumerate())
