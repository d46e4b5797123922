"""The memory limits of trials that share a process: a trial's limit is raised by what other trials' commands added.

So a trial has as much memory here as in a worker of its own.
"""

from __future__ import annotations

from collections import defaultdict

from rnnbench.cases import Trial
from rnnbench.stages import ImportFigures
from rnnbench.worker import (
    Command,
    Reply,
    SamplePath,
    SampleStateCopy,
    ServeFrames,
    ServeRequests,
    WorkerError,
    WorkerProcess,
)


class AddedMemory:
    """Resident bytes that the commands of each trial have added to one process."""

    def __init__(self, buffer: int) -> None:
        """`buffer` is the size in bytes of the suite's buffer for cold caches, which stays in the process."""
        self._buffer = buffer
        self._added: defaultdict[str, int] = defaultdict(int)

    def left(self, trial: Trial) -> int:
        """Bytes that the trial has left."""
        return trial.limits.memory - self._added[trial.id]

    def ask(self, process: WorkerProcess[ImportFigures], trial: Trial, command: Command[Reply]) -> Reply:
        """Send the command with the trial's limits of time and memory. Raises WorkerError.

        New children of the process are not searched for after each block: it would take too long.
        """
        looks = not isinstance(command, SamplePath | SampleStateCopy | ServeFrames | ServeRequests)
        before = process.resident(look=looks)
        others = sum(self._added.values()) - self._added[trial.id]
        try:
            return process.ask(command, trial.limits.trial, trial.limits.memory + others + self._buffer)
        except WorkerError as error:
            if error.outcome == "out-of-memory" and others and error.cpu_s is not None:  # The suite killed it.
                reason = f"{error.reason}; {others >> 20} MiB of both belong to other trials in its process"
                raise WorkerError(error.outcome, reason, error.alive) from error
            raise
        finally:
            self._added[trial.id] = max(0, self._added[trial.id] + process.resident(look=looks) - before)

    def clear(self) -> None:
        """Begin anew, with another process."""
        self._added.clear()
