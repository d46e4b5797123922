"""The suite's handle on one worker: starting it, asking it, stopping and continuing it, and what it died of."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from rnnbench.cases.trial import Trial
from rnnbench.run.messages import Failure, read_failure, write_trial
from rnnbench.run.wire import Message, Wire, WireClosedError

START_LIMIT_S = 120.0
"""Longest that an interpreter may take to start and import its framework."""
POLL_S = 0.1
"""Seconds between looks at a worker's memory while it builds or checks; while it samples nobody looks."""
LOG_LINES = 3


class WorkerError(Exception):
    """A command failed or its worker died; `failure` is what the record says of it."""

    def __init__(self, failure: Failure, alive: bool) -> None:
        super().__init__(failure.reason)
        self.failure = failure
        self.alive = alive
        """Whether the worker can be asked something else."""


@dataclass(frozen=True)
class Workplace:
    """The folders that the workers of a run share."""

    cache: Path
    """What compilers leave behind; and, beside it, what each cold build took."""
    oracles: Path
    logs: Path

    @classmethod
    def of_run(cls, run: Path) -> Workplace:
        return cls(run / "artifacts", run / "oracles", run / "logs")

    def clear(self) -> None:
        """Remove what a finished run has no more use for: artifacts and trajectories, by far the most of its bytes."""
        for folder in (self.cache, self.oracles):
            shutil.rmtree(folder, ignore_errors=True)


class WorkerProcess:
    """A fresh interpreter that imports its backend's framework, and may be asked once it is `ready`."""

    def __init__(
        self,
        backend: str,
        workplace: Workplace,
        affinity: Sequence[int],
        variables: Mapping[str, str],
        log: str,
        interpreter: str = "",
    ) -> None:
        ours, theirs = socket.socketpair()
        workplace.logs.mkdir(parents=True, exist_ok=True)
        self._log = workplace.logs / log
        with theirs, self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [interpreter or sys.executable, "-m", "rnnbench.run.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **variables},
                start_new_session=True,
            )
        self._wire = Wire(ours)
        self._wire.send(
            {
                "backend": backend,
                "cache": str(workplace.cache),
                "oracles": str(workplace.oracles),
                "affinity": list(affinity),
            }
        )

    def ready(self) -> Message:
        """Wait for the import; what it took and left resident. Raises WorkerError."""
        return self._answer(START_LIMIT_S, None)

    def ask(
        self,
        do: str,
        trial: Trial,
        timeout: float,
        memory: int | None = None,
        arguments: Mapping[str, float] | None = None,
    ) -> Message:
        """The reply to one command, within `timeout` seconds and `memory` resident bytes. Raises WorkerError."""
        return self._command({"do": do, "trial": write_trial(trial), **(arguments or {})}, timeout, memory)

    def fork(self, modules: Sequence[str]) -> None:
        """From here to `end` a forked child answers, which has imported the framework, these modules and nothing else.

        Raises WorkerError.
        """
        self._command({"do": "fork", "modules": list(modules)}, START_LIMIT_S, None)

    def end(self) -> list[str]:
        """Let the child go. Returns the modules that its build had to import. Raises WorkerError."""
        modules: list[str] = self._command({"do": "end"}, START_LIMIT_S, None)["modules"]
        return modules

    def pause(self) -> None:
        """Stop every thread of it: runtimes' idle threads spin."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill it with all its children. What matters of it is on disk or has been told."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._wire.close()

    def _command(self, message: Message, timeout: float, memory: int | None) -> Message:
        try:
            self._wire.send(message)
        except WireClosedError:
            raise WorkerError(self._cause_of_death(), alive=False) from None
        return self._answer(timeout, memory)

    def _answer(self, timeout: float, memory: int | None) -> Message:
        try:
            reply = self._reply(timeout, memory)
        except WireClosedError:
            raise WorkerError(self._cause_of_death(), alive=False) from None
        failure = read_failure(reply)
        if failure is not None:
            raise WorkerError(failure, alive=True)
        return reply

    def _reply(self, timeout: float, memory: int | None) -> Message:
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                self.close()
                raise WorkerError(
                    Failure("timed-out", f"no answer within {timeout:.4g} s, what its limits leave; killed"),
                    alive=False,
                )
            reply = self._wire.receive(left if memory is None else min(left, POLL_S))
            if reply is not None:
                return reply
            if memory is not None and (used := self._resident()) > memory:
                self.close()
                reason = f"{used >> 20} MiB resident, over its limit of {memory >> 20} MiB; killed"
                raise WorkerError(Failure("out-of-memory", reason), alive=False)

    def _resident(self) -> int:
        total = 0
        try:
            worker = psutil.Process(self._process.pid)
            for process in (worker, *worker.children(recursive=True)):
                total += process.memory_info().rss
        except psutil.NoSuchProcess:
            return total
        return total

    def _cause_of_death(self) -> Failure:
        self._signal(signal.SIGKILL)
        status = self._process.wait()
        died = f"died of {signal.Signals(-status).name}" if status < 0 else f"exited with status {status}"
        hint = " (the kernel does so when memory runs out)" if status == -signal.SIGKILL else ""
        return Failure("crashed", f"{died}{hint}{self._last_words()}")

    def _last_words(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return "; its log ends: " + " | ".join(lines[-LOG_LINES:]) if lines else ""

    def _signal(self, number: signal.Signals) -> None:
        """To the worker's process group; not once it has been waited for, when its number may be another's."""
        if self._process.returncode is not None:
            return
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return
