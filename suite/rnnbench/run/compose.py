"""From what was found out about a trial to its record."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rnnbench import __version__
from rnnbench.cases.expectations import Expectation, expected
from rnnbench.cases.trial import Trial
from rnnbench.conformance.expected import judge
from rnnbench.measure.floor import floor_figure
from rnnbench.measure.growth import growth_of
from rnnbench.measure.latency import summarise
from rnnbench.measure.sampling import Block
from rnnbench.results.record import Environment, LatencyFloor, MemoryUse, Outcome, Params, Record, SupportResult
from rnnbench.results.timing import DispatchFloor, Latency, SideLatency, Timing
from rnnbench.run.prepare import PATHS, Findings, affinity, variables
from rnnbench.run.roof import cost_of


def compose(findings: Findings, twin: Findings | None = None, known: Sequence[Expectation] = ()) -> Record:
    """The record of a trial; with `twin`, of one whose program and call plan are the twin's, and share its samples.

    `known` are the failures that the trial's case has expectations of.
    """
    trial, failure = findings.trial, findings.failure
    measured = findings if twin is None else twin
    if twin is not None and failure is None:
        failure = twin.failure
    outcome: Outcome = "ok" if failure is None else failure.outcome
    timing = _timing(findings, measured)
    verdicts = {**measured.verdicts, **findings.verdicts}
    failures = expected(trial, findings.probe.versions, known)
    return Record(
        trial=trial.id,
        case=trial.case,
        backend=trial.target.backend,
        route=trial.target.route,
        version=dict(findings.probe.versions),
        rnnbench=__version__,
        params=_params(trial),
        baseline=trial.target.backend == "numpy",
        support=SupportResult(
            level=findings.support.level, reason=findings.support.reason, upstream=findings.support.upstream
        ),
        outcome=outcome,
        stage="" if failure is None else (findings.stage or measured.stage),
        reason="" if failure is None else failure.reason,
        expected_failures=judge(failures, outcome, verdicts),
        same_as=None if twin is None else twin.trial.id,
        conformance={**measured.verdicts, **findings.verdicts},
        timing=timing,
        anchor=measured.anchor,
        memory=_memory(findings),
        floor=_floor(findings, measured, timing.latency.get("bound")),
        artifact=findings.artifact,
        environment=Environment(
            threads_requested=trial.threads,
            threads_seen=measured.seen.get("threads_seen"),
            threads_busy=measured.seen.get("threads_busy"),
            affinity_requested=tuple(affinity(trial.threads)) if measured.seen else (),
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
        latency={str(path): figures for path, figures in latency.items()},
        state_copy=_side([[block] for block in measured.copied]) if measured.copied else None,
        dispatch_floor=None if measured.least is None else _dispatch(measured.least),
    )


def _dispatch(least: Findings) -> DispatchFloor:
    strategy, blocks = str(least.trial.strategy), least.blocks.get("bound", ())
    if least.failure is not None or not all(blocks):
        reason = least.failure.reason if least.failure else "its rounds ended before it had a block"
        return DispatchFloor(strategy=strategy, unmeasured=reason)
    return DispatchFloor(strategy=strategy, **_side(blocks).model_dump())


def _side(processes: Sequence[Sequence[Block]]) -> SideLatency:
    latency = summarise(processes, chunk=1)
    return SideLatency(seconds=median(latency.process_medians), interval=latency.interval, count=latency.count)


def _floor(findings: Findings, measured: Findings, bound: Latency | None) -> LatencyFloor | None:
    """The account of every program that was loaded, and its ratio where it was sampled."""
    if findings.artifact is None:
        return None
    medians = bound.process_medians if bound else ()
    return floor_figure(cost_of(findings), findings.artifact.hoisted, medians, measured.roofs, measured.no_roof)


def _memory(findings: Findings) -> MemoryUse:
    bound, public = (growth_of(findings.grown.get(path, ())) for path in PATHS)
    return MemoryUse(
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
