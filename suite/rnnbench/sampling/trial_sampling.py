"""One trial while it is sampled: its blocks, the check of its timed calls, its findings and its failure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from threading import Lock
from typing import Any

from rnnbench.cases import Trial
from rnnbench.conformance import TIMED
from rnnbench.devices import KINDS, UnmeasuredError
from rnnbench.measure import (
    DEVICE_TIME,
    ENERGY,
    SERVER,
    STATE_COPY,
    STREAMS,
    Block,
    DeviceConditions,
    EnergyUse,
    GrowthStep,
    Served,
)
from rnnbench.results import CheckResult, Finding, FindingKind, not_believed
from rnnbench.sampling.path_sampling import PathBlocks
from rnnbench.stages import (
    Checked,
    DispatchFloorSamples,
    Examined,
    Failure,
    RoofReadings,
    Sampled,
    SampledState,
    ServerSamples,
    StreamProcess,
    StreamSamples,
    first_failure,
)
from rnnbench.worker import DeviceTime, Verified, WorkerError

MISSED = "The process in which it would have been measured ended while another trial was measured."


class TrialSampling:
    """Collects the samples and results of one trial."""

    def __init__(self, examined: Examined, is_built: bool = True) -> None:
        self.examined = examined
        self.is_built = is_built
        """Whether its artifact is in the cache. Otherwise the sampling worker builds it."""
        self.failure: Failure | None = None
        self.paths: dict[str, PathBlocks] = {}
        self.state_copies: list[Block] = []
        self.streams: list[StreamProcess] = []
        """The result of the scenario `streams` in each process."""
        self.served: list[Served] = []
        """The served requests of the scenario `server` in each process."""
        self.energy: list[EnergyUse] = []
        """The energy of a long block in each process, if the case asks for it."""
        self.device_time: dict[str, float] = {}
        """The metrics of the device's own clock: of each, the largest of the processes."""
        self.unmeasured: dict[str, str] = {}
        """Each figure that could not be measured on this machine, and why."""
        self._lock = Lock()
        self._timed: CheckResult | None = None
        self._state: SampledState | None = None
        self._findings: list[Finding] = []
        self._growth: dict[str, list[tuple[GrowthStep, ...]]] = {}
        self._missed_device_time = False

    @property
    def trial(self) -> Trial:
        return self.examined.trial

    @property
    def frame_period(self) -> float:
        """Seconds between two frames of the scenario `streams`; 0 if it is not asked for."""
        return STREAMS.value(self.trial.measure.settings) * self.trial.strategy.chunk

    @property
    def has_stream_scenario(self) -> bool:
        """Whether the case asks for the scenario `streams`. A strategy without a state has no streams."""
        return self.frame_period > 0 and self.trial.strategy.state != "none"

    @property
    def request_rate(self) -> float:
        """Requests per second of the scenario `server`; 0 if it is not asked for."""
        return SERVER.value(self.trial.measure.settings)

    @property
    def asks_for_energy(self) -> bool:
        return bool(self.trial.measure.settings.get(ENERGY.key))

    @property
    def has_device_clock(self) -> bool:
        """Whether its calls can be timed by the device's own events, as far as is known."""
        return KINDS[self.trial.device].open_clock is not None and DEVICE_TIME not in self.unmeasured

    @property
    def has_failed(self) -> bool:
        return self.failure is not None

    @property
    def not_believed(self) -> str:
        """Why its times are not believed; empty if they are."""
        return not_believed(self._findings)

    def device_conditions(self) -> DeviceConditions | None:
        """The current clock, temperature and power of its device; None if it does not report them."""
        if (read := KINDS[self.trial.device].conditions) is None:
            return None
        try:
            return read()
        except UnmeasuredError as error:
            self.note_unmeasured({"device_conditions": str(error)})
            return None

    def fail(self, error: WorkerError) -> None:
        self.failure = Failure("sample", error.outcome, error.reason)

    def lose(self, figure: str, error: WorkerError) -> None:
        """A figure beside the latencies cannot be measured, and nothing is kept of it. Everything else is kept."""
        self.note_unmeasured({figure: f"{error.outcome} while it was measured: {error.reason}"})
        measured: Mapping[str, list[Any] | dict[str, float]] = {
            DEVICE_TIME: self.device_time,
            ENERGY.key: self.energy,
            STREAMS.name: self.streams,
            SERVER.name: self.served,
            STATE_COPY: self.state_copies,
        }
        if figure in measured:
            measured[figure].clear()
        verified = "were" if figure == DEVICE_TIME else "were not"
        detail = (
            f"its process ended ({error.outcome}) while {figure.replace('_', ' ')} was measured; the results of the "
            f"calls that had been timed in this process {verified} checked before"
        )
        self.note_findings([Finding(kind=FindingKind.PROCESS, detail=detail)])

    def note_device_time(self, timed: DeviceTime) -> None:
        self.note_unmeasured(timed.unmeasured)
        earlier = self.device_time
        self.device_time.update({name: max(value, earlier.get(name, value)) for name, value in timed.metrics.items()})

    def miss_device_time(self) -> None:
        """Its process has ended before its calls were timed by the device. Another process may time them."""
        self._missed_device_time = True

    def note_findings(self, findings: Iterable[Finding]) -> None:
        """Add findings of its worker's commands. Equal findings count once."""
        self._findings += [finding for finding in dict.fromkeys(findings) if finding not in self._findings]

    def note_unmeasured(self, reasons: Mapping[str, str]) -> None:
        """Note why figures cannot be measured. A latency path among them is no longer sampled."""
        self.unmeasured.update(reasons)
        for name in reasons:
            self.paths.pop(name, None)

    def note_timed(self, result: CheckResult) -> None:
        """Keep the worst result of the check of timed calls. A failed check ends the trial.

        Two threads may call this at once: one process is checked while the next one is prepared.
        """
        with self._lock:
            if self._timed is None or (self._timed.verdict != "fail" and _weight(result) > _weight(self._timed)):
                self._timed = result
        if result.verdict == "fail" and self.failure is None:
            self.failure = Failure("sample", "nonconforming", first_failure({TIMED: self._timed}))

    def note_verified(self, verified: Verified) -> None:
        """Add the check after sampling, and the state of the process."""
        self.note_timed(verified.timed)
        for path, steps in verified.growth.items():
            self._growth.setdefault(path, []).append(tuple(steps))
        earlier = self._state.metrics if self._state else {}
        metrics = {name: max(value, earlier.get(name, value)) for name, value in verified.metrics.items()}
        self._state = SampledState(verified.state, verified.busy_threads, os.getloadavg()[0], metrics)

    def sampled(self, checked: Checked, roof: RoofReadings, floor: DispatchFloorSamples | None = None) -> Sampled:
        """Everything that was collected, as the value of this stage."""
        missed = {DEVICE_TIME: MISSED} if self._missed_device_time and not self.device_time else {}
        state = self._state and replace(self._state, metrics={**self._state.metrics, **self.device_time})
        return Sampled(
            checked=checked,
            paths={name: blocks.samples() for name, blocks in self.paths.items() if any(blocks.processes)},
            timed=self._timed,
            state=state,
            growth=self._frozen_growth(),
            state_copies=tuple(self.state_copies),
            dispatch_floor=floor,
            streams=StreamSamples(self.frame_period, tuple(self.streams)) if self.streams else None,
            server=ServerSamples(self.request_rate, tuple(self.served)) if self.served else None,
            energy=tuple(self.energy),
            unmeasured={**checked.unmeasured, **missed, **self.unmeasured},
            roof=roof,
            findings=(*checked.findings, *self._findings),
            failure=self.failure,
        )

    def _frozen_growth(self) -> Mapping[str, tuple[tuple[GrowthStep, ...], ...]]:
        return {path: tuple(processes) for path, processes in self._growth.items()}


def _weight(result: CheckResult) -> tuple[bool, float]:
    return result.verdict == "fail", result.rounding or 0.0
