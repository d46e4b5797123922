"""From what was found out about a trial to its record."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rnnbench import __version__
from rnnbench.cases import ExpectedFailure, expected_failures_of
from rnnbench.cases.trial import Trial
from rnnbench.conformance import expected_failure_results
from rnnbench.measure.floor import latency_floor
from rnnbench.measure.growth import growth_of
from rnnbench.measure.latency import summarise
from rnnbench.measure.sampling import Block
from rnnbench.results.record import Environment, FloorFigure, Memory, Outcome, Params, Record, SupportFigure
from rnnbench.results.timing import Beside, DispatchFloor, Latency, PacedLatency, Timing
from rnnbench.run.prepare import PATHS, Findings, affinity, variables
from rnnbench.run.roof import cost_of


def compose(findings: Findings, twin: Findings | None = None, known: Sequence[ExpectedFailure] = ()) -> Record:
    """The record of a trial; with `twin`, of one whose program and call plan are the twin's, and share its samples.

    `known` are the failures that the trial's case expects.
    """
    trial, failure = findings.trial, findings.failure
    measured = findings if twin is None else twin
    if twin is not None and failure is None:
        failure = twin.failure
    outcome: Outcome = "ok" if failure is None else failure.outcome
    timing = _timing(findings, measured)
    verdicts = {**measured.verdicts, **findings.verdicts}
    failures = expected_failures_of(trial, findings.probe.versions, known)
    return Record(
        trial=trial.id,
        case=trial.case,
        backend=trial.target.backend,
        route=trial.target.route,
        version=dict(findings.probe.versions),
        rnnbench=__version__,
        params=_params(trial),
        support=SupportFigure(
            level=findings.support.level, reason=findings.support.reason, upstream=findings.support.upstream
        ),
        outcome=outcome,
        stage="" if failure is None else (findings.stage or measured.stage),
        reason="" if failure is None else failure.reason,
        expected=expected_failure_results(failures, outcome, verdicts),
        same_as=None if twin is None else twin.trial.id,
        conformance={**measured.verdicts, **findings.verdicts},
        timing=timing,
        anchor=measured.anchor,
        memory=_memory(findings),
        floor=_floor(findings, measured, timing.bound),
        artifact=findings.artifact,
        environment=Environment(
            threads_asked=trial.threads,
            threads_seen=measured.seen.get("threads_seen"),
            threads_busy=measured.seen.get("threads_busy"),
            affinity_asked=tuple(affinity(trial.threads)) if measured.seen else (),
            affinity=tuple(measured.seen.get("affinity", ())),
            load=measured.seen.get("load"),
            variables=variables(findings),
        ),
    )


def _params(trial: Trial) -> Params:
    return Params.model_validate(trial.params)


def _timing(findings: Findings, measured: Findings) -> Timing:
    built, loaded = findings.built, findings.loaded
    trial = findings.trial
    latency = {
        path: summarise(
            blocks, trial.strategy.chunk, trial.batch, measured.warmups.get(path, ()), measured.courses.get(path)
        )
        for path, blocks in measured.blocks.items()
        if measured.is_measured()
    }
    return Timing(
        build_s=built.get("build_s"),
        build_import_s=built.get("build_import_s"),
        build_origin=built.get("build_origin"),
        load_s=loaded.get("load_s"),
        load_import_s=loaded.get("load_import_s"),
        first_call_s=loaded.get("first_call_s"),
        tail_build_s=built.get("tail_build_s"),
        bound=latency.get("bound"),
        public=latency.get("public"),
        cold=latency.get("cold"),
        paced=paced if isinstance(paced := latency.get("paced"), PacedLatency) else None,
        state_copy=_beside([[block] for block in measured.copied]) if measured.copied else None,
        dispatch=None if measured.least is None else _dispatch(measured.least),
    )


def _dispatch(least: Findings) -> DispatchFloor:
    strategy, blocks = str(least.trial.strategy), least.blocks.get("bound", ())
    if least.failure is not None or not all(blocks):
        reason = least.failure.reason if least.failure else "its rounds ended before it had a block"
        return DispatchFloor(strategy=strategy, unmeasured=reason)
    return DispatchFloor(strategy=strategy, **_beside(blocks).model_dump())


def _beside(processes: Sequence[Sequence[Block]]) -> Beside:
    latency = summarise(processes, chunk=1)
    return Beside(seconds=median(latency.process_medians), interval=latency.interval, count=latency.count)


def _floor(findings: Findings, measured: Findings, bound: Latency | None) -> FloorFigure | None:
    """The account of every program that was loaded, and its ratio where it was sampled."""
    if findings.artifact is None:
        return None
    medians = bound.process_medians if bound else ()
    return latency_floor(cost_of(findings), findings.artifact.hoisted, medians, measured.roofs, measured.no_roof)


def _memory(findings: Findings) -> Memory:
    bound, public = (growth_of(findings.grown.get(path, ())) for path in PATHS)
    return Memory(
        harness=findings.started.get("harness"),
        imported=findings.started.get("imported"),
        build_peak=findings.built.get("build_peak"),
        run_peak=findings.loaded.get("run_peak"),
        steady=findings.loaded.get("steady"),
        growth=bound.per_1000_calls,
        growth_calls=bound.calls or None,
        public_growth=public.per_1000_calls,
        public_growth_calls=public.calls or None,
    )
