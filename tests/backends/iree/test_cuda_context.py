"""CUDA's context is current in every thread that calls a session. A fake driver library notes what it is asked."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rnnbench.backends.iree import cuda_context

OPENED = 4242


class FakeDriver:
    """Keeps the current context of each thread, as CUDA's driver does."""

    def __init__(self) -> None:
        self.here = threading.local()
        self.here.context = OPENED
        self.set_in: list[int] = []

    def cuCtxGetCurrent(self, place: Any) -> int:  # noqa: N802 the driver's name
        place._obj.value = getattr(self.here, "context", None)
        return 0

    def cuCtxSetCurrent(self, context: ctypes.c_void_p) -> int:  # noqa: N802
        self.here.context = context.value
        self.set_in.append(threading.get_ident())
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    fake = FakeDriver()
    monkeypatch.setattr(cuda_context.ctypes, "CDLL", lambda name: fake)
    cuda_context._context.cache_clear()
    yield fake
    cuda_context._context.cache_clear()


def in_a_thread(call: Any) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join(60)
    return results[0]


def test_another_thread_gets_the_context_once(driver: FakeDriver) -> None:
    seen = cuda_context.around_calls("cuda")(lambda: getattr(driver.here, "context", None))
    assert in_a_thread(lambda: (seen(), seen())) == (OPENED, OPENED)
    assert len(driver.set_in) == 1


def test_the_thread_that_opened_the_device_is_left_alone(driver: FakeDriver) -> None:
    assert cuda_context.around_calls("cuda")(lambda value: value)(3) == 3
    assert driver.set_in == []


def test_a_session_that_another_thread_opens_has_the_context_of_the_first(driver: FakeDriver) -> None:
    cuda_context.around_calls("cuda")

    def call() -> Any:
        return cuda_context.around_calls("cuda")(lambda: driver.here.context)()

    assert in_a_thread(call) == OPENED


def test_calls_on_the_processor_are_the_runtimes_own() -> None:
    def call() -> None: ...

    assert cuda_context.around_calls("cpu")(call) is call
