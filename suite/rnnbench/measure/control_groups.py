"""The memory and the cores that processes may use: on the machine, and within the control groups of this process."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

STARTED_ON = frozenset(os.sched_getaffinity(0))
"""The cores of this process when it began. A worker is bound to some of them later."""
_OWN_GROUPS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")
_FILES = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""For each version of control groups: the files of limit and use, and the field of reclaimable pages in `memory.stat`.
"""
_QUOTA_FILES = {2: ("cpu.max",), 1: ("cpu.cfs_quota_us", "cpu.cfs_period_us")}
"""For each version: the files with the microseconds that a group may use in each period, and those of the period."""


def free_memory() -> int:
    """Bytes available on the machine, or less if a control group of a container has a limit (cgroups(7))."""
    return min([psutil.virtual_memory().available, *left_in_groups(_OWN_GROUPS, _GROUPS)])


def memory_limit() -> str:
    """The limit of memory at which the kernel ends processes, in words: of control groups, or the machine's memory."""
    machine, limits = psutil.virtual_memory().total, limits_of_groups(_OWN_GROUPS, _GROUPS)
    least = min(limits, default=machine)
    return (
        f"the machine has {machine >> 20} MiB"
        if least >= machine
        else f"a control group has a limit of {least >> 20} MiB"
    )


def cores_at_once() -> int:
    """The cores that this process may keep busy: those that it may run on, or as many as control groups pay for."""
    cores, quota = len(os.sched_getaffinity(0)), cpu_quota()
    return cores if quota is None else min(cores, math.ceil(quota))


def cpu_quota() -> float | None:
    """The cores' worth of processor time that control groups allow (`docker run --cpus`); None without a limit."""
    return min(quotas_of_groups(_OWN_GROUPS, _GROUPS), default=None)


def left_in_groups(own: Path, groups: Path) -> Iterator[int]:
    """The bytes that each group with a limit has left. `own` is the file with the groups, `groups` their folder."""
    for version, group in _groups_with("memory", own, groups):
        if (left := _bytes_left(group, version)) is not None:
            yield left


def limits_of_groups(own: Path, groups: Path) -> Iterator[int]:
    """The bytes that each group with a limit may use. The arguments are those of `left_in_groups`."""
    for version, group in _groups_with("memory", own, groups):
        with suppress(OSError, ValueError):  # The root has no limit, and "max" is none.
            yield int((group / _FILES[version][0]).read_text())


def quotas_of_groups(own: Path, groups: Path) -> Iterator[float]:
    """The cores' worth of time of each group that limits it. The arguments are those of `left_in_groups`."""
    for version, group in _groups_with("cpu", own, groups):
        try:
            words = " ".join((group / name).read_text() for name in _QUOTA_FILES[version]).split()
            quota, period = map(int, words)
        except (OSError, ValueError):  # The root has no limit, and "max" is none.
            continue
        if quota > 0 and period > 0:
            yield quota / period


def _groups_with(controller: str, own: Path, groups: Path) -> Iterator[tuple[int, Path]]:
    """The version and folder of this process's group of a controller, and of each group above it.

    A container may see its group as the root and not under its path. So all folders above it are read too.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        version, root = (1, groups / controller) if controllers else (2, groups)
        folder = root / path.lstrip("/")
        yield from ((version, group) for group in (folder, *folder.parents) if group.is_relative_to(root))


def _bytes_left(group: Path, version: int) -> int | None:
    limit, used, reclaimable = _FILES[version]
    try:
        statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        in_use = int((group / used).read_text()) - int(statistics.get(reclaimable, 0))
        return max(0, int((group / limit).read_text()) - in_use)
    except (OSError, ValueError):  # The root has no limit, and "max" is none.
        return None
