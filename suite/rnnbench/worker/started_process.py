"""A process that the suite has started, and its descendants: stopping them, binding them to cores, killing them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

from rnnbench.process_tree import descendants
from rnnbench.worker.memory import ResidentMemory
from rnnbench.worker.process_family import LOOK_AGAIN_S, bind_threads, family, has_ended, kill_and_wait, kill_until_gone


class ChildProcess(Protocol):
    """A process that was started here: the parts of `subprocess.Popen` that are used."""

    pid: int
    returncode: int | None

    def wait(self) -> int: ...


class StartedProcess:
    """A process that leads its own process group. It and its descendants have `mark` in their environment."""

    def __init__(self, process: ChildProcess, mark: str) -> None:
        self._process = process
        self._mark = mark
        self._memory = ResidentMemory(process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None or has_ended(self.pid)

    def pause(self) -> None:
        """Stop all of its threads: idle threads of runtimes spin."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def hold_to(self, cores: Iterable[int]) -> tuple[int, ...]:
        """Bind all of its threads to these cores, while it is stopped. Threads that it starts later inherit them.

        Returns the cores that it was bound to before; none if it has ended.
        """
        before: set[int] = set()
        with suppress(ProcessLookupError, FileNotFoundError):
            before = os.sched_getaffinity(self.pid)
            bind_threads(self.pid, cores)
        return tuple(sorted(before))

    def resident(self, *, look: bool = False) -> int:
        """Resident bytes of the process and its descendants; see `ResidentMemory.read`."""
        return self._memory.read(look=look)

    def kill(self) -> None:
        """Kill the process and its descendants. A thread that waits for its answer notices that it has ended."""
        if self._process.returncode is None:
            self._kill_family()

    def _kill_family(self) -> None:
        """Kill the process, its descendants and its orphans, in any process group and session."""
        known = {self.pid, *descendants(self.pid)}  # An ended process has no descendants.
        self._signal(signal.SIGKILL)
        kill_and_wait(known, LOOK_AGAIN_S)
        kill_until_gone(lambda: family(self.pid, self._mark))

    def _signal(self, number: signal.Signals) -> None:
        """Signal the process group, unless the process was waited for: its pid may be reused by then."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, number)
