"""Settings that the C library keeps for a process: the floating-point environment, variables, signal handlers, timers.

Each has a function that reads it, one that puts it back, and one that names a change.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal

from rnnbench.worker.setting_words import some_of

# The floating-point environment of this thread (fenv(3)). Its exception flags are no setting and are not compared.

_LIBC = ctypes.CDLL(None)
_LIBM = _LIBC if hasattr(_LIBC, "fegetenv") else ctypes.CDLL("libm.so.6")
_FENV = ctypes.create_string_buffer(64)
_X86 = platform.machine() in ("x86_64", "AMD64")
_CONTROL_WORDS = ((0, 2, 0xFFFF), (28, 4, 0xFFC0)) if _X86 else ((0, 4, 0xFFFFFFFF),)
"""Offset, size and mask of the control words in fenv_t: x87 and MXCSR, or FPCR of AArch64."""
_FLUSH, _DENORMALS_ARE_ZERO, _ROUNDING = (1 << 15, 1 << 6, 3 << 13) if _X86 else (1 << 24, 0, 3 << 22)
"""Bits of MXCSR, or of FPCR."""


def read_floating_point() -> tuple[int, ...]:
    _LIBM.fegetenv(_FENV)
    raw = _FENV.raw
    return tuple(int.from_bytes(raw[at : at + size], "little") & mask for at, size, mask in _CONTROL_WORDS)


def restore_floating_point(words: tuple[int, ...]) -> None:
    _LIBM.fegetenv(_FENV)
    for (at, size, mask), word in zip(_CONTROL_WORDS, words, strict=True):
        now = int.from_bytes(_FENV.raw[at : at + size], "little")
        ctypes.memmove(ctypes.addressof(_FENV) + at, (now & ~mask | word).to_bytes(size, "little"), size)
    _LIBM.fesetenv(_FENV)


def describe_floating_point(before: tuple[int, ...], after: tuple[int, ...]) -> str:
    """What changed from one reading to the next, in words; empty if nothing did."""
    old, new = before[-1], after[-1]
    parts = []
    if (old ^ new) & _FLUSH:
        parts.append("denormals flushed to zero" if new & _FLUSH else "denormals no longer flushed to zero")
    if (old ^ new) & _DENORMALS_ARE_ZERO:
        parts.append("denormals read as zero" if new & _DENORMALS_ARE_ZERO else "denormals no longer read as zero")
    if (old ^ new) & _ROUNDING:
        parts.append("another rounding direction")
    if rest := [word for word in zip(before, after, strict=True) if word[0] != word[1]]:
        parts.append(", ".join(f"control word {b:#x} instead of {a:#x}" for a, b in rest))
    return ", ".join(parts)


# Environment variables as C code sees them. `os.environ` misses what C code sets.


def read_environment() -> dict[bytes, bytes]:
    block = ctypes.POINTER(ctypes.c_char_p).in_dll(_LIBC, "environ")
    found, index = {}, 0
    while block and (entry := block[index]) is not None:
        name, _, value = entry.partition(b"=")
        found[name] = value
        index += 1
    return found


def restore_environment(values: dict[bytes, bytes]) -> None:
    for name in read_environment().keys() - values.keys():
        os.environb.pop(name, None)
        os.unsetenv(name)
    for name, value in values.items():
        os.environb[name] = value


def describe_environment(before: dict[bytes, bytes], after: dict[bytes, bytes]) -> str:
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return some_of(os.fsdecode(name) for name in changed)


# Signal handlers: those of Python and those of the C library.

_SIGNALS = tuple(number for number in signal.valid_signals() if number < signal.SIGRTMIN)
_ACTION = ctypes.create_string_buffer(256)
"""A struct sigaction: its first word is the handler."""
_WORD = ctypes.sizeof(ctypes.c_void_p)


def read_handlers() -> dict[int, tuple[object, bytes]]:
    return {number: (signal.getsignal(number), _c_action(number)[:_WORD]) for number in _SIGNALS}


def _c_action(number: int) -> bytes:
    _LIBC.sigaction(int(number), None, _ACTION)
    return _ACTION.raw


def restore_handlers(handlers: dict[int, tuple[object, bytes]]) -> None:
    for number, (python, c) in handlers.items():
        if python is not None and signal.getsignal(number) != python:
            signal.signal(number, python)  # type: ignore[arg-type]
        action = _c_action(number)
        if action[:_WORD] != c:
            _LIBC.sigaction(int(number), ctypes.create_string_buffer(c + action[_WORD:]), None)


def describe_handlers(before: dict[int, tuple[object, bytes]], after: dict[int, tuple[object, bytes]]) -> str:
    return some_of(signal.Signals(number).name for number in before if before[number] != after[number])


_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


def read_timers() -> tuple[bool, ...]:
    return tuple(any(signal.getitimer(which)) for which in _TIMERS)


def restore_timers(running: tuple[bool, ...]) -> None:
    for which, runs in zip(_TIMERS, running, strict=True):
        if not runs:
            signal.setitimer(which, 0)
