"""Adapters that compute rightly and leave something changed in their process, each in one way and at one place."""

from __future__ import annotations

import builtins
import ctypes
import decimal
import gc
import locale
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Any

import numpy as np
from honest_adapter import HonestBound, HonestSession
from waiting import join, wait_until

from rnnbench.conformance import tolerance
from rnnbench.measure import descendants

PLACES = ("open", "bind", "step", "call", "get_state", "close")
_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True)
class Leaving:
    name: str
    change: Callable[[], object]
    named: str
    """Words of the finding."""


def flush_denormals() -> None:
    environment = ctypes.create_string_buffer(64)
    _LIBC.fegetenv(environment)
    at, bits = (28, 0x8040) if os.uname().machine == "x86_64" else (0, 1 << 24)
    word = int.from_bytes(environment.raw[at : at + 4], "little") | bits
    ctypes.memmove(ctypes.addressof(environment) + at, word.to_bytes(4, "little"), 4)
    _LIBC.fesetenv(environment)


def _round_upwards() -> None:
    _LIBC.fesetround(0x800 if os.uname().machine == "x86_64" else 0x400000)


def _lower_a_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))


def _replace_a_clock() -> None:
    monotonic = time.monotonic
    time.monotonic = lambda: monotonic()


def _replace_a_function(owner: Any, name: str) -> None:
    function = getattr(owner, name)
    setattr(owner, name, lambda *given, **named: function(*given, **named))


class _Finder:
    """Finds no module."""

    @staticmethod
    def find_spec(*asked: object) -> None:
        return None


def _use_one_core_less() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


LEAVINGS = (
    Leaving("flushes denormals", flush_denormals, "floating-point environment changed: denormals flushed to zero"),
    Leaving("rounds upwards", _round_upwards, "floating-point environment changed: another rounding direction"),
    Leaving("switches the collector off", gc.disable, "garbage collector changed: switched off"),
    Leaving("collects at once", lambda: gc.set_threshold(7, 7, 7), "garbage collector changed: thresholds (7, 7, 7)"),
    Leaving("goes elsewhere", lambda: os.chdir("/proc"), "the working folder changed: /proc instead of"),
    Leaving(
        "makes temporary files elsewhere",
        lambda: setattr(tempfile, "tempdir", "/proc"),
        "the folder of temporary files changed: /proc instead of",
    ),
    Leaving("sets a variable", lambda: os.environ.update(LEFT="1"), "environment variables changed: LEFT"),
    Leaving("sets one in C", lambda: _LIBC.setenv(b"LEFT_IN_C", b"1", 1), "environment variables changed: LEFT_IN_C"),
    Leaving("removes a variable", lambda: os.environ.pop("PATH", None), "environment variables changed: PATH"),
    Leaving("handles a signal", lambda: signal.signal(signal.SIGUSR1, print), "signal handlers changed: SIGUSR1"),
    Leaving("ignores one in C", lambda: _LIBC.signal(int(signal.SIGUSR2), 1), "signal handlers changed: SIGUSR2"),
    Leaving("replaces a clock", _replace_a_clock, "Python's clocks changed: time.monotonic"),
    Leaving(
        "blocks a signal", lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP}), "blocked signals changed"
    ),
    Leaving("sets a timer", lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 3600), "interval timers changed"),
    Leaving("draws from Python's", random.random, "Python's random state changed"),
    Leaving("seeds NumPy's", lambda: np.random.seed(5), "NumPy's random state changed"),
    Leaving("ignores overflows", lambda: np.seterr(over="raise"), "NumPy's handling of errors changed"),
    Leaving("prints short", lambda: np.set_printoptions(precision=2), "NumPy's print options changed"),
    Leaving(
        "speaks another language",
        lambda: locale.setlocale(locale.LC_ALL, "C" if locale.setlocale(locale.LC_ALL) != "C" else "C.UTF-8"),
        "the locale changed",
    ),
    Leaving("recurses deeper", lambda: sys.setrecursionlimit(4321), "recursion limit changed: 4321 instead of"),
    Leaving("switches seldom", lambda: sys.setswitchinterval(0.5), "switch interval of threads changed: 0.5 instead"),
    Leaving("silences warnings", lambda: warnings.filterwarnings("ignore", "left"), "filters of warnings changed"),
    Leaving("adds a path", lambda: sys.path.append("/left"), "sys.path changed: /left"),
    Leaving("hooks exceptions", lambda: setattr(sys, "excepthook", print), "Python's hooks changed: sys.excepthook"),
    Leaving("traces threads", lambda: setattr(threading, "excepthook", print), "hooks changed: threading.excepthook"),
    Leaving("profiles threads", lambda: threading.setprofile(lambda *_: None), "hooks changed: threading.setprofile"),
    Leaving("finds modules", lambda: sys.meta_path.insert(0, _Finder), "Python's import hooks changed"),
    Leaving("hears of collections", lambda: gc.callbacks.append(lambda *_: None), "callbacks of the garbage collector"),
    Leaving(
        "rounds decimals", lambda: setattr(decimal.getcontext(), "prec", 3), "the context of decimal numbers changed"
    ),
    Leaving(
        "hurries sockets", lambda: socket.setdefaulttimeout(0.001), "the timeout of sockets changed: 0.001 instead"
    ),
    Leaving(
        "replaces a function of NumPy",
        lambda: _replace_a_function(np, "abs"),
        "functions of Python, NumPy or the suite changed: numpy.abs",
    ),
    Leaving("replaces one of Python", lambda: _replace_a_function(builtins, "sorted"), "changed: builtins.sorted"),
    Leaving(
        "replaces one of the suite",
        lambda: _replace_a_function(tolerance.Errors, "add"),
        "changed: rnnbench.conformance.tolerance.Errors.add",
    ),
    Leaving("takes the output away", lambda: setattr(sys, "stderr", None), "Python's output changed: sys.stderr"),
    Leaving("lowers a limit", _lower_a_limit, "limits of resources changed: RLIMIT_NOFILE"),
    Leaving("masks files", lambda: os.umask(0o77), "the umask changed: 077 instead of"),
    Leaving("moves to one core", _use_one_core_less, "scheduling changed: cores"),
)
"""What an adapter leaves changed. Each is put back by the suite."""


class Segment:
    """Shared memory that is mapped and full. Python's own starts a process beside it, which stays."""

    def __init__(self, size: int) -> None:
        self.path = Path(descendants._SEGMENTS, f"rnnbench-test-{uuid.uuid4().hex}")
        with self.path.open("xb+") as file:
            file.truncate(size)
            self._mapped = mmap(file.fileno(), size)
        self._mapped.write(b"1" * size)

    def close(self) -> None:
        self._mapped.close()

    def unlink(self) -> None:
        self.path.unlink()


class Leaks:
    """What leaks, one at a time, and what a test has to clean up."""

    def __init__(self) -> None:
        self._end = threading.Event()
        self._descriptors: list[int] = []
        self._threads: list[threading.Thread] = []
        self._children: list[int] = []
        self._segments: list[Segment] = []

    def descriptor(self) -> None:
        self._descriptors.append(os.open("/dev/null", os.O_RDONLY))

    def thread(self) -> None:
        thread = threading.Thread(target=self._end.wait, daemon=True)
        thread.start()
        self._threads.append(thread)

    def child(self) -> None:
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
        self._children.append(child)

    def segment(self) -> None:
        self._segments.append(Segment(1 << 16))

    def clean_up(self) -> None:
        self._end.set()
        for thread in self._threads:
            join(thread)
            # The kernel's own thread ends a moment later, and would count for the next test.
            task = Path(f"/proc/self/task/{thread.native_id}")
            wait_until(lambda task=task: not task.exists(), "a thread that has ended is gone")  # type: ignore[misc]
        for descriptor in self._descriptors:
            os.close(descriptor)
        for child in self._children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        for segment in self._segments:
            segment.close()
            segment.unlink()


def session_that(change: Callable[[], object], place: str) -> type[HonestSession]:
    """A session that is honest in what it computes, and makes the change whenever that place is passed."""

    class Bound(HonestBound):
        def __call__(self) -> None:
            super().__call__()
            if place == "call":
                change()

    class Session(HonestSession):
        def __init__(self, program: Any) -> None:
            super().__init__(program)
            if place == "open":
                change()

        def _bind(self, ring: list[np.ndarray]) -> HonestBound:
            if place == "bind":
                change()
            return Bound(self, ring)

        def _advance(self, x: np.ndarray) -> np.ndarray:
            if place == "step":
                change()
            return super()._advance(x)

        def _read_state(self) -> dict[str, np.ndarray]:
            if place == "get_state":
                change()
            return super()._read_state()

        def close(self) -> None:
            if place == "close":
                change()
            super().close()

    return Session
