"""Measuring in a process that has nothing of earlier tests: no child, no thread, no garbage to be collected."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Callable
from typing import TypeVar

from waiting import PATIENCE_S, join

Result = TypeVar("Result")


def alone(measure: Callable[[], Result]) -> Result:
    """What `measure` returns in a forked child, or raises there."""
    receive, send = multiprocessing.Pipe(duplex=False)
    gc.collect()
    child = multiprocessing.get_context("fork").Process(target=lambda: send.send(_attempt(measure)))
    child.start()
    send.close()
    try:
        assert receive.poll(PATIENCE_S), "the child neither answers nor ends"
        result = receive.recv()
    finally:
        child.kill()
        join(child)
        receive.close()
    if isinstance(result, BaseException):
        raise result
    return result


def _attempt(measure: Callable[[], Result]) -> Result | Exception:
    gc.disable()
    try:
        return measure()
    except Exception as error:  # noqa: BLE001 it is raised in the test
        return error
