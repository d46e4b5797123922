"""Settings that the kernel keeps for a process: functions that read them, put them back, and name a change."""

from __future__ import annotations

import os
import re
import resource
from pathlib import Path
from typing import Any

from rnnbench.worker.setting_words import from_to, some_of

_LIMITS = {name: getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}


def read_limits() -> dict[str, tuple[int, int]]:
    return {name: resource.getrlimit(which) for name, which in _LIMITS.items()}


def restore_limits(limits: dict[str, tuple[int, int]]) -> None:
    """Restore the limits. A hard limit that was lowered stays lowered, since only root may raise it."""
    for name, (soft, hard) in limits.items():
        try:
            resource.setrlimit(_LIMITS[name], (soft, hard))
        except (OSError, ValueError):
            now = resource.getrlimit(_LIMITS[name])[1]
            resource.setrlimit(_LIMITS[name], (soft if now == resource.RLIM_INFINITY else min(soft, now), now))


def describe_limits(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> str:
    return some_of(f"{n} {after[n][0]} instead of {before[n][0]}" for n in before if before[n] != after[n])


def read_umask() -> int:
    """The umask, from /proc: `os.umask` would change it for a moment, while other threads may write files."""
    match = re.search(rb"^Umask:\s+(\d+)", Path("/proc/self/status").read_bytes(), re.MULTILINE)
    return int(match[1], 8) if match else -1


def read_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "a folder that was removed"


def read_scheduling() -> tuple[Any, ...]:
    return os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), tuple(sorted(os.sched_getaffinity(0)))


def restore_scheduling(values: tuple[Any, ...]) -> None:
    os.sched_setaffinity(0, values[2])
    if os.sched_getscheduler(0) != values[1]:
        os.sched_setscheduler(0, values[1], os.sched_param(0))
    if os.getpriority(os.PRIO_PROCESS, 0) != values[0]:
        os.setpriority(os.PRIO_PROCESS, 0, values[0])


def describe_scheduling(before: tuple[Any, ...], after: tuple[Any, ...]) -> str:
    what = zip(("niceness", "policy", "cores"), before, after, strict=True)
    return ", ".join(f"{name} {from_to(old, new)}" for name, old, new in what if old != new)
