"""A process is killed with all that it forks meanwhile."""

from __future__ import annotations

import errno
import os
import subprocess
from threading import Timer

import pytest
from waiting import PATIENCE_S

from rnnbench.worker import process_family
from rnnbench.worker.process_family import kill_until_gone


@pytest.mark.parametrize("lack", ["nothing", "the kernel", "Python"])
def test_what_is_forked_while_others_are_killed_is_killed_too(monkeypatch: pytest.MonkeyPatch, lack: str) -> None:
    """Also where nothing tells of the end of a process."""
    if lack == "the kernel":
        monkeypatch.setattr(os, "pidfd_open", _is_not_there)
    if lack == "Python":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    first, second = (subprocess.Popen(["sleep", "600"]) for _ in range(2))
    looks = iter([{first.pid}, {second.pid}, set[int]()])
    kill_until_gone(lambda: next(looks), PATIENCE_S)
    assert (first.wait(PATIENCE_S), second.wait(PATIENCE_S)) == (-9, -9)


def test_killing_what_does_not_end_ends_at_its_limit() -> None:
    nobody = 2**22 + 1  # No process has a number as large (proc_sys_kernel(5), pid_max).
    kill_until_gone(lambda: {nobody}, 0.01)


def test_what_takes_long_to_end_is_looked_for_once_more_when_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look reads files of all processes of the machine."""
    slow, looks = subprocess.Popen(["sleep", "600"]), list[int]()

    def living() -> set[int]:
        looks.append(slow.pid)
        return set() if slow.poll() is not None else {slow.pid}

    monkeypatch.setattr(process_family, "LOOK_AGAIN_S", PATIENCE_S)
    monkeypatch.setattr(process_family, "kill_all", lambda processes: Timer(0.05, slow.kill).start())
    kill_until_gone(living, PATIENCE_S)
    assert len(looks) == 2


def test_what_does_not_end_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have forked another one meanwhile."""
    stays = subprocess.Popen(["sleep", "600"])
    looks = iter([{stays.pid}, {stays.pid}, set[int]()])
    monkeypatch.setattr(process_family, "LOOK_AGAIN_S", 0.01)
    monkeypatch.setattr(process_family, "kill_all", lambda processes: None)
    kill_until_gone(lambda: next(looks), PATIENCE_S)
    stays.kill()
    stays.wait(PATIENCE_S)
    assert next(looks, None) is None


def _is_not_there(process: int) -> int:
    """As on an old kernel."""
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
