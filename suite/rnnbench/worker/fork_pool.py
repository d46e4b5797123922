"""Workers for trials that are only checked: one imports the framework, and forks a child for each trial.

The parent only imports: its framework, and what builds on the same route had to import, in this worker or in another
one of the run. And it finds out once what a compiler finds out of the machine in each process (`PreparesBuilds`). So
every child starts as a fresh worker that has made these imports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeVar

from rnnbench.cases import Trial
from rnnbench.results import Finding
from rnnbench.stages import BuildFigures, ImportFigures
from rnnbench.worker.commands import Build, EndFork, Fork
from rnnbench.worker.launcher import START_LIMIT_S, WorkerError, WorkerProcess
from rnnbench.worker.protocol import Command, Reply

Result = TypeVar("Result")


Route = tuple[str, str]
"""A route of a backend and a kind of device."""


class BuildImports:
    """What builds on each route had to import, as the workers of one backend in one interpreter find it out.

    Several threads use it. None of its workers waits for what another one finds out.
    """

    def __init__(self) -> None:
        self._by_route: defaultdict[Route, dict[str, None]] = defaultdict(dict)

    def add(self, route: Route, modules: Iterable[str]) -> None:
        self._by_route[route] = {**self._by_route[route], **dict.fromkeys(modules)}

    def of(self, route: Route) -> tuple[str, ...]:
        return tuple(self._by_route[route])


class ForkingWorker:
    """A worker that forks a child for each trial, while it lives."""

    def __init__(self, process: WorkerProcess[ImportFigures], found: BuildImports | None = None) -> None:
        self.process = process
        self.is_closed = False
        self._found = found or BuildImports()
        self._imports: ImportFigures | None = None
        self._preloaded: set[str] = set()
        """Modules that the parent has imported, or could not import by themselves."""
        self._built: dict[Route, None] = {}
        """Routes and devices on which a child has built."""

    def imports(self, memory: int | None = None) -> ImportFigures:
        """Wait for the import, the first time, within `memory` resident bytes. Raises WorkerError."""
        if self._imports is None:
            self._imports = self.process.ready(memory=memory)
        return self._imports

    def fork(self, trial: Trial) -> None:
        """A child that has what builds on the trial's route import. Raises WorkerError."""
        modules = tuple(name for name in self._found.of(_route(trial)) if name not in self._preloaded)
        self.process.ask(Fork(modules, tuple(self._built)), START_LIMIT_S)
        self._preloaded.update(modules)

    def has_built(self, trial: Trial) -> None:
        """Before the next fork, prepare for builds on the same route."""
        self._built[_route(trial)] = None

    def has_imported(self, figures: BuildFigures) -> bool:
        """Whether this process has what the build had to import."""
        return self._preloaded.issuperset(figures.modules)

    def end_fork(self, trial: Trial) -> None:
        """End the child. The next one on this route need not import what its build imported. Raises WorkerError."""
        self._found.add(_route(trial), self.process.ask(EndFork(), START_LIMIT_S).modules)

    def close(self) -> None:
        if not self.is_closed:
            self.process.close()
            self.is_closed = True


class ForkedWorker:
    """The child that carries out one trial's commands. It is used like a worker process of its own."""

    def __init__(self, parent: ForkingWorker, trial: Trial) -> None:
        self._parent = parent
        self._trial = trial
        self._is_forked = False
        self._parent_lives = True

    def ready(self, *, memory: int | None = None) -> ImportFigures:
        """As `WorkerProcess.ready`. Raises WorkerError."""

        def fork() -> ImportFigures:
            imports = self._parent.imports(memory)
            self._parent.fork(self._trial)
            self._is_forked = True
            return imports

        return self._guarded(fork)

    @property
    def age_s(self) -> float:
        """Seconds since the first command of the worker that imports was sent."""
        return self._parent.process.age_s

    def ask(self, command: Command[Reply], timeout: float, memory: int | None = None) -> Reply:
        """As `WorkerProcess.ask`. Raises WorkerError.

        After a build that had to import something, another child carries out the rest. Its parent has imported it.
        """
        reply = self._guarded(lambda: self._parent.process.ask(command, timeout, memory))
        if isinstance(command, Build):
            self._parent.has_built(command.trial)
            if isinstance(reply, BuildFigures) and not self._parent.has_imported(reply):
                self._guarded(self._fork_again)
        return reply

    def take_findings(self) -> tuple[Finding, ...]:
        """As `WorkerProcess.take_findings`."""
        return self._parent.process.take_findings()

    def close(self) -> None:
        """End the child, and the parent too where it died with the child."""
        if self._parent_lives:
            try:
                self._parent.end_fork(self._trial)
            except WorkerError:
                self._parent_lives = False
        if not self._parent_lives:
            self._parent.close()

    def _fork_again(self) -> None:
        self._parent.end_fork(self._trial)
        self._parent.fork(self._trial)

    def _guarded(self, action: Callable[[], Result]) -> Result:
        try:
            return action()
        except WorkerError as error:
            self._parent_lives = error.alive and self._is_forked
            raise


def _route(trial: Trial) -> Route:
    return trial.target.route, trial.device
