"""Workers for trials that are checked and not timed: a parent imports the framework, and forks a child for each trial.

The parent imports the framework, and the modules that the builds of earlier trials had to import. It also prepares
builds once (`PreparesBuilds`). So every child starts as a fresh worker that has these imports already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rnnbench.cases import Trial
from rnnbench.results import Finding
from rnnbench.stages import ImportFigures
from rnnbench.worker.commands import Build, EndFork, Fork
from rnnbench.worker.launcher import START_LIMIT_S, WorkerError, WorkerProcess
from rnnbench.worker.protocol import Command, Reply

Result = TypeVar("Result")


class ForkingWorker:
    """A worker that forks a child for each trial, while it lives."""

    def __init__(self, process: WorkerProcess[ImportFigures]) -> None:
        self.process = process
        self.is_closed = False
        self._imports: ImportFigures | None = None
        self._modules: tuple[str, ...] = ()
        self._built: dict[tuple[str, str], None] = {}
        """The routes and devices on which a child has built, in order."""

    def imports(self, memory: int | None = None) -> ImportFigures:
        """Wait for the import, the first time, within `memory` resident bytes. Raises WorkerError."""
        if self._imports is None:
            self._imports = self.process.ready(memory=memory)
        return self._imports

    def fork(self) -> None:
        """Fork the child of the next trial. Raises WorkerError."""
        self.process.ask(Fork(self._modules, tuple(self._built)), START_LIMIT_S)

    def has_built(self, trial: Trial) -> None:
        """Note a build of a child. Before the next fork, the parent prepares for builds on this route and device."""
        self._built[trial.target.route, trial.device] = None

    def end_fork(self) -> None:
        """End the child. The parent imports what its build imported before it forks again. Raises WorkerError."""
        self._modules = self.process.ask(EndFork(), START_LIMIT_S).modules

    def kill(self) -> None:
        """Kill the process. Any thread may call this; the thread that uses the worker notices, and closes it."""
        self.process.kill()

    def close(self) -> None:
        if not self.is_closed:
            self.process.close()
            self.is_closed = True


class ForkedWorker:
    """The child that carries out one trial's commands. It is used like a worker process of its own."""

    def __init__(self, parent: ForkingWorker) -> None:
        self._parent = parent
        self._is_forked = False
        self._parent_lives = True

    def ready(self, *, memory: int | None = None) -> ImportFigures:
        """As `WorkerProcess.ready`. Raises WorkerError."""

        def fork() -> ImportFigures:
            imports = self._parent.imports(memory)
            self._parent.fork()
            self._is_forked = True
            return imports

        return self._guarded(fork)

    @property
    def age_s(self) -> float:
        """Seconds since the first command of the worker that imports was sent."""
        return self._parent.process.age_s

    @property
    def stopped_s(self) -> float:
        """As `WorkerProcess.stopped_s`."""
        return self._parent.process.stopped_s

    def ask(self, command: Command[Reply], timeout: float, memory: int | None = None) -> Reply:
        """As `WorkerProcess.ask`. Raises WorkerError."""
        reply = self._guarded(lambda: self._parent.process.ask(command, timeout, memory))
        if isinstance(command, Build):
            self._parent.has_built(command.trial)
        return reply

    def take_findings(self) -> tuple[Finding, ...]:
        """As `WorkerProcess.take_findings`."""
        return self._parent.process.take_findings()

    def close(self) -> None:
        """End the child. Close the parent too if it has died with the child."""
        if self._parent_lives:
            try:
                self._parent.end_fork()
            except WorkerError:
                self._parent_lives = False
        if not self._parent_lives:
            self._parent.close()

    def _guarded(self, action: Callable[[], Result]) -> Result:
        try:
            return action()
        except WorkerError as error:
            self._parent_lives = error.alive and self._is_forked
            raise
