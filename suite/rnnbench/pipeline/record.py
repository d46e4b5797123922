"""The last stage: the record of a sampled trial, and the journal that writes it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rnnbench import __version__
from rnnbench.cases import ExpectedFailure, Trial, expected_failures_of
from rnnbench.conformance import TrialEnd, expected_failure_results
from rnnbench.devices import KINDS
from rnnbench.disk import error_of_disk
from rnnbench.measure import PATHS, DeviceConditions, DeviceSpell, EnergyUse, energy_metrics, growth_of
from rnnbench.pipeline.latency import CallSize, sample_rows, side_latency, summarise
from rnnbench.pipeline.latency_floor import below_floor, latency_floor
from rnnbench.pipeline.scenarios import server_figures, streams_figures
from rnnbench.plan import RunPlan
from rnnbench.results import (
    FAILURES,
    DeviceState,
    DispatchFloor,
    EnergyReading,
    Environment,
    Finding,
    Latency,
    LatencyFloor,
    MemoryUse,
    Params,
    Record,
    StoreError,
    SupportResult,
    Timing,
    append_record,
    save_samples,
)
from rnnbench.rnn import DTYPES
from rnnbench.sampling import cost_of
from rnnbench.stages import DispatchFloorSamples, Sampled
from rnnbench.worker import variables, worker_cores


class Observer(Protocol):
    """Is told how a run goes on."""

    def stage(self, trial: Trial, stage: str) -> None: ...
    def finished(self, record: Record, side: str = "") -> None:
        """A trial has ended. `side` is the environment's name where two are compared."""


class Journal:
    """Writes records and samples into a run's folder as trials come to their end."""

    def __init__(self, plan: RunPlan, observer: Observer, side: str = "") -> None:
        self._plan = plan
        self._observer = observer
        self._side = side

    def write(self, sampled: Sampled, same_as: Sampled | None = None, *, timed: bool = True) -> Record:
        """Append the trial's record (see `record_of`), and return it once it is on the disk.

        A record that is not `timed` has no times: the times of trials that ran side by side mean nothing. Samples are
        written after the record, which needs the room on the disk more. Raises StoreError if either cannot be written,
        or if the trial failed while the disk is full. It then has no record, and a resumed run does it again.
        """
        trial = sampled.trial
        if sampled.failure is not None and sampled.failure.outcome in FAILURES:
            self._require_disk(trial, sampled.failure.reason)
        record = record_of(sampled, same_as, self._plan.expected_of(trial))
        record = record.model_copy(update={"run_seed": self._plan.seed, **({} if timed else {"timing": Timing()})})
        append_record(self._plan.folder, record)
        if same_as is None and sampled.is_measured:
            for path, samples in sampled.paths.items():
                save_samples(self._plan.folder, trial.id, path, sample_rows(samples.processes))
        self._observer.finished(record, self._side)
        return record

    def _require_disk(self, trial: Trial, reason: str) -> None:
        """Raises StoreError if the suite itself finds the disk full. A worker's word for it decides nothing."""
        for folder in (self._plan.folder, Path(tempfile.gettempdir())):
            if error := error_of_disk(folder):
                raise StoreError(
                    f"cannot write in {folder}: {error.strerror}; {trial.id} failed meanwhile: {reason}; "
                    f"free space on the disk of {folder}"
                )


def record_of(
    sampled: Sampled, same_as: Sampled | None = None, expected_failures: Sequence[ExpectedFailure] = ()
) -> Record:
    """The record of a trial.

    `same_as` is a trial whose program and call plan are the same to the byte. Its samples count for this one too.
    `expected_failures` are those of the trial's case.
    """
    trial, examined, checked = sampled.trial, sampled.examined, sampled.checked
    support = examined.support
    measured = same_as or sampled
    failure = sampled.failure or measured.failure
    results = {**measured.results, **sampled.results}
    timing = _timing(sampled, measured)
    outcome = "ok" if failure is None else failure.outcome
    floor = _floor(sampled, measured, timing.latency.get("bound"))
    entries = expected_failures_of(trial, examined.probe.versions, expected_failures)
    ended = TrialEnd(outcome, failure.stage if failure else "", failure.reason if failure else "", trial.model)
    return Record(
        trial=trial.id,
        case=trial.case,
        backend=trial.target.backend,
        route=trial.target.route,
        baseline=examined.probe.baseline,
        version=dict(examined.probe.versions),
        rnnbench=__version__,
        params=Params.model_validate(trial.params),
        step_seconds=trial.model.step_seconds,
        device=examined.probe.device(trial.device),
        unmeasured=_unmeasured(sampled, measured),
        device_state=_device_state(measured),
        support=SupportResult(level=support.level, reason=support.reason, upstream=support.upstream),
        outcome=outcome,
        stage="" if failure is None else failure.stage,
        reason="" if failure is None else failure.reason,
        expected_failures=expected_failure_results(entries, ended, results),
        same_as=None if same_as is None else same_as.trial.id,
        conformance=results,
        checked=checked.figures.checked if checked.figures else "",
        timing=timing,
        common_trial=measured.common_trial,
        memory=_memory(sampled),
        metrics=_metrics(sampled, measured),
        energy=_energy(measured.energy),
        floor=floor,
        artifact=checked.artifact,
        findings=tuple(dict.fromkeys([*sampled.findings, *measured.findings, *_accusations(trial, floor)])),
        environment=_environment(sampled, measured),
    )


def _timing(sampled: Sampled, measured: Sampled) -> Timing:
    built, loaded, checks = sampled.checked.built.figures, sampled.checked.loaded, sampled.checked.figures
    trial = sampled.trial
    size = CallSize(trial.strategy.chunk, trial.batch)
    latency = {
        name: summarise(samples, size, PATHS[name]) for name, samples in measured.paths.items() if measured.is_measured
    }
    floor = measured.dispatch_floor
    return Timing(
        build_s=built.build_s if built else None,
        build_import_s=built.import_s if built else None,
        build_origin=built.origin if built else None,
        built=built.built if built else "",
        load_s=loaded.load_s if loaded else None,
        load_import_s=loaded.import_s if loaded else None,
        open_s=loaded.open_s if loaded else None,
        bind_s=loaded.bind_s if loaded else None,
        first_call_s=loaded.first_call_s if loaded else None,
        close_s=loaded.close_s if loaded else None,
        tail_build_s=checks.tail_build_s if checks else None,
        latency=latency,
        state_copy=side_latency([[block] for block in measured.state_copies]) if measured.state_copies else None,
        dispatch_floor=None if floor is None else _dispatch_floor(floor),
        server=server_figures(measured.server) if measured.server and measured.is_measured else None,
        streams=streams_figures(measured.streams) if measured.streams and measured.is_measured else None,
    )


def _dispatch_floor(floor: DispatchFloorSamples) -> DispatchFloor:
    if floor.unmeasured:
        return DispatchFloor(strategy=floor.strategy, unmeasured=floor.unmeasured)
    return DispatchFloor(strategy=floor.strategy, **side_latency(floor.processes).model_dump())


def _floor(sampled: Sampled, measured: Sampled, bound: Latency | None) -> LatencyFloor | None:
    """The latency floor, and the ratio to it if the program was sampled. None if no program was loaded."""
    artifact = sampled.checked.artifact
    if artifact is None:
        return None
    cost, medians, roof = cost_of(sampled.checked), bound.process_medians if bound else (), measured.roof
    kind, roofs = KINDS[sampled.trial.device], roof.processes
    if reason := kind.unmeasured.get("latency_floor"):
        return latency_floor(cost, artifact.hoisted, (), (), reason, {})
    if DTYPES[sampled.trial.dtype].activations:  # The probe measures no products of int8: only reading counts.
        roofs = [[replace(sample, rate=None) for sample in process] for process in roofs]
    return latency_floor(cost, artifact.hoisted, medians, roofs, roof.unmeasured, kind.caches())


def _accusations(trial: Trial, floor: LatencyFloor | None) -> list[Finding]:
    """The finding that a latency is below its floor, for devices whose floor has proven to be one."""
    return below_floor(floor) if KINDS[trial.device].roof_is_proven else []


def _unmeasured(sampled: Sampled, measured: Sampled) -> dict[str, str]:
    """The reason for each missing figure: of the kind of device, of this machine, or of this program."""
    of_kind: dict[str, str] = dict(KINDS[sampled.trial.device].unmeasured.items())
    loaded = sampled.checked.loaded
    of_count = {"allocated": loaded.not_counted} if loaded and loaded.not_counted else {}
    return {**of_kind, **sampled.unmeasured, **measured.unmeasured, **of_count}


def _memory(sampled: Sampled) -> MemoryUse:
    imports, built, loaded = sampled.checked.built.imports, sampled.checked.built.figures, sampled.checked.loaded
    bound, public = (growth_of(sampled.growth.get(path, ())) for path in ("bound", "public"))
    allocated = loaded.allocated if loaded else None
    return MemoryUse(
        harness=imports.harness if imports else None,
        imported=imports.imported if imports else None,
        build_peak=built.peak if built else None,
        run_peak=loaded.run_peak if loaded else None,
        steady=loaded.steady if loaded else None,
        growth=bound.per_1000_calls,
        growth_calls=bound.calls or None,
        public_growth=public.per_1000_calls,
        public_growth_calls=public.calls or None,
        device=sampled.checked.device_memory,
        allocated=allocated.now if allocated else None,
        allocated_peak=allocated.peak if allocated else None,
    )


def _metrics(sampled: Sampled, measured: Sampled) -> dict[str, float]:
    loaded, state = sampled.checked.loaded, sampled.state
    of_energy = energy_metrics(measured.energy, sampled.trial.strategy.chunk)
    return {**(loaded.metrics if loaded else {}), **(state.metrics if state else {}), **of_energy}


def _energy(uses: Sequence[EnergyUse]) -> EnergyReading | None:
    if not uses:
        return None
    disturbed = sum(use.disturbed for use in uses)
    return EnergyReading(source=uses[0].source, blocks=len(uses), disturbed_blocks=disturbed)


def _environment(sampled: Sampled, measured: Sampled) -> Environment:
    checks, state = measured.checked.figures, measured.state
    worker = state.worker if state else checks.state if checks else None
    return Environment(
        threads_requested=sampled.trial.threads,
        threads_seen=worker.threads if worker else None,
        threads_busy=state.busy_threads if state else None,
        affinity_requested=worker_cores(sampled.trial) if worker else (),
        affinity=worker.affinity if worker else (),
        load=state.load if state else None,
        variables=variables(sampled.examined),
    )


def _device_state(sampled: Sampled) -> DeviceState | None:
    """The device's state over all blocks of all processes; None if the device reports nothing."""
    blocks = [block for samples in sampled.paths.values() for process in samples.processes for block in process]
    spells = [block.device for block in blocks if block.device is not None]
    if not spells:
        return None
    return DeviceState(
        clock=_range(spells, lambda now: now.clock),
        temperature=_range(spells, lambda now: now.temperature),
        power=_range(spells, lambda now: now.power),
        moved_blocks=sum(spell.clock_moved for spell in spells),
        throttled=tuple(dict.fromkeys(reason for spell in spells for reason in spell.throttled)),
        throttled_blocks=sum(bool(spell.throttled) for spell in spells),
        others=tuple(dict.fromkeys(other for spell in spells for other in spell.others)),
        shared_blocks=sum(bool(spell.others) for spell in spells),
    )


def _range(
    spells: Sequence[DeviceSpell], figure: Callable[[DeviceConditions], float | None]
) -> tuple[float, float] | None:
    values = [figure(now) for spell in spells for now in (spell.before, spell.after)]
    reported = [value for value in values if value is not None]
    return (min(reported), max(reported)) if reported else None
