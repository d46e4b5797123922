"""The memory that processes may still use: on the machine, and within the control groups of this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil

_OWN_GROUPS = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")
_FILES = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""For each version of control groups: the files of limit and use, and the field of reclaimable pages in `memory.stat`.
"""


def free_memory() -> int:
    """Bytes available on the machine, or less if a control group of a container has a limit (cgroups(7))."""
    return min([psutil.virtual_memory().available, *left_in_groups(_OWN_GROUPS, _GROUPS)])


def left_in_groups(own: Path, groups: Path) -> Iterator[int]:
    """The bytes that each group with a limit has left. `own` is the file with the groups, `groups` their folder.

    A container may see its group as the root and not under its path. So all folders above it are read too.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        version, root = (1, groups / "memory") if controllers else (2, groups)
        folder = root / path.lstrip("/")
        for group in (folder, *folder.parents):
            if group.is_relative_to(root) and (left := _bytes_left(group, version)) is not None:
                yield left


def _bytes_left(group: Path, version: int) -> int | None:
    limit, used, reclaimable = _FILES[version]
    try:
        statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        in_use = int((group / used).read_text()) - int(statistics.get(reclaimable, 0))
        return max(0, int((group / limit).read_text()) - in_use)
    except (OSError, ValueError):  # The root has no limit, and "max" is none.
        return None
