"""One trial while it is sampled: its blocks, the check of its timed calls, its findings and its failure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from threading import Lock

from rnnbench.cases import Trial
from rnnbench.conformance import TIMED
from rnnbench.measure import ENERGY, SERVER, STREAMS, Block, EnergyUse, GrowthStep, Served
from rnnbench.results import CheckResult, Finding, not_believed
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
from rnnbench.worker import Verified, WorkerError


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
        self.unmeasured: dict[str, str] = {}
        """Each figure that could not be measured on this machine, and why."""
        self._lock = Lock()
        self._timed: CheckResult | None = None
        self._state: SampledState | None = None
        self._findings: list[Finding] = []
        self._growth: dict[str, list[tuple[GrowthStep, ...]]] = {}

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
    def has_failed(self) -> bool:
        return self.failure is not None

    @property
    def not_believed(self) -> str:
        """Why its times are not believed; empty if they are."""
        return not_believed(self._findings)

    def fail(self, error: WorkerError) -> None:
        self.failure = Failure("sample", error.outcome, error.reason)

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
        self.note_unmeasured(verified.unmeasured)
        for path, steps in verified.growth.items():
            self._growth.setdefault(path, []).append(tuple(steps))
        earlier = self._state.metrics if self._state else {}
        metrics = {name: max(value, earlier.get(name, value)) for name, value in verified.metrics.items()}
        self._state = SampledState(verified.state, verified.busy_threads, os.getloadavg()[0], metrics)

    def sampled(self, checked: Checked, roof: RoofReadings, floor: DispatchFloorSamples | None = None) -> Sampled:
        """Everything that was collected, as the value of this stage."""
        return Sampled(
            checked=checked,
            paths={name: blocks.samples() for name, blocks in self.paths.items() if any(blocks.processes)},
            timed=self._timed,
            state=self._state,
            growth=self._frozen_growth(),
            state_copies=tuple(self.state_copies),
            dispatch_floor=floor,
            streams=StreamSamples(self.frame_period, tuple(self.streams)) if self.streams else None,
            server=ServerSamples(self.request_rate, tuple(self.served)) if self.served else None,
            energy=tuple(self.energy),
            unmeasured={**checked.unmeasured, **self.unmeasured},
            roof=roof,
            findings=(*checked.findings, *self._findings),
            failure=self.failure,
        )

    def _frozen_growth(self) -> Mapping[str, tuple[tuple[GrowthStep, ...], ...]]:
        return {path: tuple(processes) for path, processes in self._growth.items()}


def _weight(result: CheckResult) -> tuple[bool, float]:
    return result.verdict == "fail", result.rounding or 0.0
