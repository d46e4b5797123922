"""The descendants of a process are those of all its threads, with and without the kernel's lists of children."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from threading import Thread

import psutil
import pytest
from waiting import PATIENCE_S, has_ended, join, wait_until

from rnnbench import process_tree
from rnnbench.process_tree import descendants, is_stopped, living_descendants, living_family, parent_of
from rnnbench.worker.memory import ResidentMemory

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


@pytest.fixture(params=[True, False], ids=["lists", "no lists"])
def lists_children(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel with lists of children, and one without."""
    monkeypatch.setattr(process_tree, "LISTS_CHILDREN", request.param)


@pytest.mark.usefixtures("lists_children")
def test_descendants_are_the_children_of_all_threads_and_their_children(shell: psutil.Process) -> None:
    children = {child.pid for child in shell.children(recursive=True)}
    assert descendants(shell.pid) == living_descendants(shell.pid) == children
    assert descendants(os.getpid()) >= {shell.pid, *children}
    assert living_family({shell.pid}) == {shell.pid, *children}


@pytest.mark.usefixtures("lists_children")
def test_a_process_that_has_ended_has_no_descendants_and_no_parent() -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    assert parent_of(ended.pid) == 0
    assert descendants(ended.pid) == set()
    assert living_family({ended.pid}) == set()


def test_a_child_that_nobody_has_waited_for_is_a_descendant_and_no_living_one() -> None:
    child = subprocess.Popen(["true"])
    wait_until(lambda: has_ended(child.pid), "it does not end")
    assert child.pid in descendants(os.getpid())
    assert child.pid not in living_descendants(os.getpid())
    child.wait(PATIENCE_S)


@pytest.mark.usefixtures("lists_children")
def test_memory_is_that_of_a_process_and_its_descendants(shell: psutil.Process) -> None:
    resident = sum(process.memory_info().rss for process in (shell, *shell.children(recursive=True)))
    assert ResidentMemory(shell.pid).read() == resident > shell.memory_info().rss
    # Other processes of the machine come and go, and share pages with these.
    children = sum(process.memory_full_info().pss for process in shell.children(recursive=True))
    assert ResidentMemory(shell.pid).read_shared_once() > shell.memory_full_info().pss + children / 2


def test_a_process_that_has_ended_has_no_memory() -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    assert ResidentMemory(ended.pid).read() == 0


def test_a_process_of_which_a_descendant_is_stopped_is_known(shell):
    """A compiler's own process, which the compiler waits for."""
    assert not is_stopped(shell.pid)
    grandchild = shell.children(recursive=True)[-1]
    grandchild.suspend()
    wait_until(lambda: is_stopped(shell.pid), "a stopped descendant is not seen")
    grandchild.resume()
    wait_until(lambda: not is_stopped(shell.pid), "it runs again")
