"""The device's roof: a process that measures bandwidth and arithmetic, in the rounds in which trials are sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rnnbench.devices import KINDS
from rnnbench.measure import Roof
from rnnbench.rnn import DTYPES, Cost, call_cost
from rnnbench.sampling.context import Context
from rnnbench.stages import Checked
from rnnbench.worker import Command, Done, Host, WorkerError, WorkerProcess, worker_cores

READINGS = 6
"""Readings beside one process of the trials, in its first rounds."""
ANSWER_S = 60.0
"""Longest that the probe may take to start, or for one reading. Filling its largest buffers takes 1 to 2 s."""
ENDED = "the process that measures the roof has ended; its log says why"


@dataclass(frozen=True)
class StartRoof(Command[Done]):
    """Compile the probe, on the cores that trials are bound to."""

    working_sets: tuple[int, ...]
    """Sizes in bytes whose reading is timed."""
    dtype: str
    device: str
    threads: int
    affinity: tuple[int, ...]


@dataclass(frozen=True)
class RoofReading:
    """A `Roof` as it is sent to the suite."""

    bandwidth: tuple[tuple[int, float], ...]
    rate: float | None
    launch: float = 0.0
    on_chip: int = 0
    caches: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, roof: Roof) -> RoofReading:
        return cls(tuple(roof.bandwidth.items()), roof.rate, roof.launch, roof.on_chip, tuple(roof.caches.items()))

    @property
    def roof(self) -> Roof:
        return Roof(dict(self.bandwidth), self.rate, self.launch, self.on_chip, dict(self.caches))


@dataclass(frozen=True)
class ReadRoof(Command[RoofReading]):
    """Measure the roof once."""


def cost_of(checked: Checked) -> Cost:
    """The bytes and operations of one call of the trial's program. Its artifact declares what is hoisted."""
    trial = checked.trial
    dtype = DTYPES[trial.dtype]
    hoisted = checked.artifact.hoisted if checked.artifact else None
    return call_cost(trial.model, trial.strategy.chunk, trial.batch, dtype.weight_itemsize, dtype.itemsize, hoisted)


@dataclass
class RoofLog:
    """The readings beside each process of one trial."""

    processes: list[list[Roof]] = field(default_factory=list)
    unmeasured: str = ""
    """Why there are none."""


class RoofWorker:
    """The probe's process, beside one process of each trial. Its readings are added to the trials' logs.

    The trials run on one kind of device. If its roof cannot be measured, no process is started.
    """

    def __init__(self, trials: Sequence[Checked], logs: Sequence[RoofLog], context: Context, log: str) -> None:
        self._context = context
        self._logs = logs
        self._readings: list[Roof] = []
        self._is_missing = False
        for roof_log in logs:
            roof_log.processes.append(self._readings)
        trial = trials[0].trial
        self._process: WorkerProcess[Done] | None = None
        if reason := KINDS[trial.device].unmeasured.get("latency_floor"):
            self._note(reason)
            return
        sizes = {reading.working_set for checked in trials for reading in cost_of(checked).readings}
        dtype = DTYPES[trial.dtype].sampled_with
        start = StartRoof(tuple(sorted(sizes)), dtype, trial.device, trial.threads, worker_cores(trial))
        host = Host(context.folders.logs / log, KINDS[trial.device].variables)
        self._process = WorkerProcess("rnnbench.sampling.roof_worker", start, host)

    def ready(self) -> None:
        """Wait until the probe is compiled, or note why it cannot be."""
        if self._process is None:
            return
        try:
            self._process.ready(ANSWER_S)
        except WorkerError as error:
            self._note_missing(error)

    def read(self) -> None:
        """Take one reading, unless there are READINGS already."""
        if self._process is None or self._is_missing or len(self._readings) >= READINGS:
            return
        with self._context.wall_time.spent_on("sample"):
            try:
                reading = self._process.ask(ReadRoof(), ANSWER_S)
            except WorkerError as error:
                self._note_missing(error)
                return
        self._readings.append(reading.roof)

    def close(self) -> None:
        if self._process is not None:
            self._process.close()

    def _note_missing(self, error: WorkerError) -> None:
        self._is_missing = True
        self._note(error.reason if error.outcome != "crashed" else ENDED)

    def _note(self, unmeasured: str) -> None:
        for roof_log in self._logs:
            roof_log.unmeasured = unmeasured
