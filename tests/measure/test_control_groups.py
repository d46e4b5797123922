"""Memory that may still be taken, and cores that may be kept busy, within the limits of control groups."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from rnnbench.measure import control_groups
from rnnbench.measure.control_groups import (
    cores_at_once,
    free_memory,
    left_in_groups,
    memory_limit,
    quotas_of_groups,
)

MIB = 1 << 20
V2 = ("memory.max", "memory.current", "inactive_file")
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def group(folder: Path, names: tuple[str, str, str], limit: str, used: int, reclaimable: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names, (limit, used, f"{names[2]} {reclaimable}"), strict=True):
        (folder / ("memory.stat" if name == names[2] else name)).write_text(f"{value}\n")


@pytest.mark.parametrize(
    ("line", "place", "names"), [("0::/a/b", "a/b", V2), ("4:cpu,memory:/a/b", "memory/a/b", V1)], ids=["v2", "v1"]
)
def test_a_group_leaves_its_limit_without_what_is_in_use(tmp_path, line, place, names):
    (tmp_path / "own").write_text(f"9:name=systemd:/\n{line}\n")
    group(tmp_path / place, names, str(100 * MIB), 70 * MIB, 20 * MIB)
    assert list(left_in_groups(tmp_path / "own", tmp_path)) == [50 * MIB]


def test_every_group_above_has_its_limit_and_max_is_none(tmp_path):
    (tmp_path / "own").write_text("0::/a/b\n")
    group(tmp_path / "a" / "b", V2, "max", 70 * MIB, 0)
    group(tmp_path / "a", V2, str(90 * MIB), 100 * MIB, 0)
    group(tmp_path, V2, str(400 * MIB), 100 * MIB, 0)
    assert list(left_in_groups(tmp_path / "own", tmp_path)) == [0, 300 * MIB]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (("max", "900"), "a control group has a limit of 900 MiB"),
        (("700", "900"), "a control group has a limit of 700 MiB"),
        (("max", "99999"), "the machine has 2000 MiB"),
        (("max", "damaged"), "the machine has 2000 MiB"),
    ],
)
def test_the_limit_at_which_the_kernel_ends_processes_is_the_least_one(tmp_path, monkeypatch, limits, words):
    (tmp_path / "own").write_text("0::/a/b\n")
    for place, limit in zip(("a/b", "a"), limits, strict=True):
        group(tmp_path / place, V2, str(int(limit) * MIB) if limit.isdigit() else limit, 1, 0)
    monkeypatch.setattr(control_groups, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(control_groups, "_GROUPS", tmp_path)
    memory = SimpleNamespace(total=2000 * MIB, available=1000 * MIB)
    monkeypatch.setattr(control_groups.psutil, "virtual_memory", lambda: memory)
    assert memory_limit() == words


def test_a_system_without_groups_has_no_limits(tmp_path):
    assert list(left_in_groups(tmp_path / "own", tmp_path)) == []


@pytest.mark.parametrize(
    ("line", "files", "quotas"),
    [
        ("0::/a/b", {"a/b/cpu.max": "150000 100000", "a/cpu.max": "max 100000"}, [1.5]),
        ("0::/a/b", {"a/b/cpu.max": "400000 100000", "a/cpu.max": "50000 100000"}, [4.0, 0.5]),
        ("0::/a/b", {"cpu.max": "200000 100000"}, [2.0]),
        ("3:cpu,cpuacct:/a", {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000"}, [2.5]),
        ("3:cpu,cpuacct:/a", {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, []),
        ("3:cpuset:/a", {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000"}, []),
        ("0::/a", {"a/cpu.max": "100000"}, []),
        ("0::/a", {"a/cpu.max": "0 100000"}, []),
        ("0::/a", {"a/cpu.max": "100000 0"}, []),
    ],
    ids=["v2", "above", "root", "v1", "v1-without", "another-controller", "damaged", "no-time", "no-period"],
)
def test_a_group_allows_the_time_of_some_cores(tmp_path, line, files, quotas):
    (tmp_path / "own").write_text(f"9:name=systemd:/\n{line}\n")
    for name, content in files.items():
        (tmp_path / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "groups" / name).write_text(f"{content}\n")
    assert list(quotas_of_groups(tmp_path / "own", tmp_path / "groups")) == quotas


@pytest.mark.parametrize(("quota", "at_once"), [(None, 4), (9.0, 4), (2.0, 2), (1.5, 2), (0.1, 1)])
def test_as_many_cores_are_busy_at_once_as_the_container_allows(monkeypatch, quota, at_once):
    monkeypatch.setattr(control_groups, "cpu_quota", lambda: quota)
    monkeypatch.setattr(control_groups.os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert cores_at_once() == at_once


def test_it_is_no_more_than_what_the_machine_has():
    assert 0 < free_memory() <= psutil.virtual_memory().total
