"""What descends from a process, by the kernel's own lists, and that it is killed with all of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from threading import Thread

import psutil
import pytest
from waiting import PATIENCE_S, join, wait_until

from rnnbench.worker import memory
from rnnbench.worker.kernel import descendants, kill_until_gone

SHELL = "sleep 600 & sh -c 'sleep 600; true' & wait"
"""A child, and another one with a child of its own."""


def _started(shell: psutil.Process) -> list[str]:
    """Names of what has started and waits: what a shell has just forked is still a shell, and takes memory."""
    waiting = [child for child in shell.children(recursive=True) if child.status() == psutil.STATUS_SLEEPING]
    return sorted(child.name() for child in waiting)


@pytest.fixture
def shell() -> Iterator[psutil.Process]:
    """Started by a thread that has ended."""
    started: list[subprocess.Popen[bytes]] = []
    thread = Thread(target=lambda: started.append(subprocess.Popen(["sh", "-c", SHELL], start_new_session=True)))
    thread.start()
    join(thread)
    shell = psutil.Process(started[0].pid)
    wait_until(lambda: _started(shell) == ["sh", "sleep", "sleep"], "the shell has not started all")
    yield shell
    os.killpg(shell.pid, 9)
    started[0].wait(PATIENCE_S)


def test_descendants_are_the_children_of_all_threads_and_their_children(shell: psutil.Process) -> None:
    theirs = {child.pid for child in shell.children(recursive=True)}
    assert descendants(shell.pid) == theirs
    assert descendants(os.getpid()) >= {shell.pid, *theirs}


def test_a_process_that_has_ended_has_no_list() -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    with pytest.raises(OSError, match=str(ended.pid)):
        descendants(ended.pid)
    assert memory.ResidentMemory(ended.pid).read() == 0


def test_on_a_kernel_without_lists_of_children_all_processes_are_looked_at(
    shell: psutil.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_lists = memory.ResidentMemory(shell.pid).read()

    def none(pid: int) -> set[int]:
        raise FileNotFoundError

    monkeypatch.setattr(memory, "descendants", none)
    assert memory.ResidentMemory(shell.pid).read() == with_lists > psutil.Process(shell.pid).memory_info().rss


def test_what_is_forked_while_others_are_killed_is_killed_too() -> None:
    first, second = (subprocess.Popen(["sleep", "600"]) for _ in range(2))
    looks = iter([{first.pid}, {second.pid}, set[int]()])
    kill_until_gone(lambda: next(looks), PATIENCE_S)
    assert (first.wait(PATIENCE_S), second.wait(PATIENCE_S)) == (-9, -9)


def test_killing_what_does_not_end_ends_at_its_limit() -> None:
    nobody = 2**22 + 1  # No process has a number as large (proc_sys_kernel(5), pid_max).
    kill_until_gone(lambda: {nobody}, 0.01)
