"""Releases of the fake backend: environments like this one, but for variables, in place of ones that pip makes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from forked_workers import write_python

from rnnbench.cases import Trial
from rnnbench.devices import Device
from rnnbench.history import VERDICTS_FILE
from rnnbench.night import conformance, measure
from rnnbench.pipeline import Side, SideBySide, SideError, ab, backfill, bisect, confirmation, environments, releases
from rnnbench.pipeline.environment_worker import EnvironmentFacts, source_digest
from rnnbench.pipeline.made_environments import MadeEnvironment
from rnnbench.plan import RunPlan, end_run, examine
from rnnbench.results import Comparison, LatencyChange, compare_runs, judge_pairs, read_run
from rnnbench.results.journal import append_record
from rnnbench.results.record import Environment, Params, Record, SupportResult
from rnnbench.stages import Examined

PACKAGE = "rnnbench-fake"
INSTALLED = "1.0"
"""The version in the environment that runs the tests."""
NOT_INSTALLABLE = "no-wheel"
DEVICE: Device | None = None
"""The device of every measurement."""
YANKED = "yanked"


def fake_index(patch: pytest.MonkeyPatch, content: Mapping[str, str]) -> list[str]:
    """Make the index have these versions, each with variables for its environment. Returns what is installed."""
    made: list[str] = []

    def make(requirements: str, extras: Sequence[str], cache: Path, stop: Event | None = None) -> MadeEnvironment:
        version = requirements.removeprefix(f"{PACKAGE}==")
        if content[version] == NOT_INSTALLABLE:
            raise SideError(f"'{requirements}': the environment could not be made: ERROR: No matching distribution")
        variables = "" if content[version] == YANKED else content[version]
        python = cache / version / "bin" / "python"
        added = dict(variable.split("=", 1) for variable in variables.split())
        write_python(python, {"RNNBENCH_FAKE_VERSION": version, **added})
        made.append(version)
        return MadeEnvironment(str(python), "it was wrong" if content[version] == YANKED else "")

    for module in (environments, backfill, measure):
        patch.setattr(module, "make_environment", make)
    patch.setattr(environments, "is_made", lambda *_: True)
    patch.setattr(releases, "versions_of_index", lambda package, *options: list(content))
    return made


def fake_measurements(
    patch: pytest.MonkeyPatch, latencies: Mapping[str, float | str], scatter: float = 0.001, pairs: int = 6
) -> list[str]:
    """Make a comparison of two versions show these latencies, or outcomes, and pairs that differ so much.

    No process is started.

    Returns the versions that were compared with another one.
    """
    compared: list[str] = []

    def open_side(text: str | None, trials: Sequence[Trial], cache: Path) -> Side:
        version = INSTALLED if text is None else text.removeprefix(f"{PACKAGE}==")
        if version not in latencies:
            raise SideError(f"'{text}': the environment could not be made")
        versions = {PACKAGE: version}
        seen = tuple(replace(one, probe=replace(one.probe, versions=versions)) for one in map(examine, trials))
        return Side(
            text or "the running environment", sys.executable, EnvironmentFacts(source_digest(), "3", versions, seen)
        )

    def compare(both: SideBySide, budget: Any, observer: Any, *, together: bool = False) -> Comparison:
        versions = [side.facts.packages[PACKAGE] for side in both.sides]
        compared.append(versions[1])
        seen = [latencies[version] for version in versions]
        verdicts, changes = [], []
        for trial in both.plans[0].trials:
            for plan, version, latency in zip(both.plans, versions, seen, strict=True):
                append_record(plan.folder, _record(trial, version, latency))
            if not any(isinstance(latency, str) for latency in seen):
                ratios = [float(seen[1]) / float(seen[0]) * (1 + scatter * k) for k in (-1, 0, 1, 0, 1, -1)[:pairs]]
                threshold = budget.smallest_change_of(trial)
                judged = judge_pairs(ratios, threshold)
                verdicts.append({"trial": trial.id, "path": "bound", "ratios": ratios, **asdict(judged)})
                changes.append(LatencyChange(trial.id, "bound", float(seen[0]), float(seen[1]), judged, threshold))
        sides = {name: {"environment": side.text} for name, side in zip("ab", both.sides, strict=True)}
        content = {**sides, "differences": both.differences, "verdicts": verdicts}
        (both.runs[1] / VERDICTS_FILE).write_text(json.dumps(content))
        compared_runs = compare_runs(*map(read_run, both.runs))
        return ab.replace(compared_runs, latencies=tuple(changes))

    for module in (backfill, bisect, confirmation, measure):
        patch.setattr(module, "open_side", open_side)
        patch.setattr(module, "compare_sides", compare)
    patch.setattr(conformance, "open_environment", open_side)
    return compared


def fake_runs(patch: pytest.MonkeyPatch) -> None:
    """Make the run of a night write a record for each trial, without a process."""

    def run_trials(plan: RunPlan, observer: Any, *, examined: Sequence[Examined]) -> None:
        for one in examined:
            ended = one.failure.outcome if one.failure else 1.0
            append_record(plan.folder, _record(one.trial, one.probe.versions.get(PACKAGE, ""), ended))
        end_run(plan.folder, {})

    patch.setattr(measure, "run_trials", run_trials)


def fake_checks(patch: pytest.MonkeyPatch, outcomes: Mapping[str, str]) -> list[str]:
    """Make the conformance check of a version end with this outcome in every trial; with "ok" where none is given.

    Returns the versions that were checked.
    """
    checked: list[str] = []

    def check_trials(plan: RunPlan, *_: Any, shrinks: bool, examined: Sequence[Examined]) -> None:
        for one in examined:
            version = one.probe.versions[PACKAGE]
            append_record(plan.folder, _record(one.trial, version, outcomes.get(version, "ok")))
        checked.append(examined[0].probe.versions[PACKAGE])
        end_run(plan.folder, {})

    patch.setattr(conformance, "check_trials", check_trials)
    return checked


def _record(trial: Trial, version: str, latency: float | str) -> Record:
    outcome: Any = latency if isinstance(latency, str) else "ok"
    return Record(
        trial=trial.id,
        case=trial.case,
        backend=trial.target.backend,
        route=trial.target.route,
        version={PACKAGE: version},
        rnnbench="0",
        params=Params.model_validate(trial.params),
        support=SupportResult(level="native", reason=""),
        outcome=outcome,
        stage="" if outcome == "ok" else "check",
        reason="" if outcome == "ok" else "planted",
        environment=Environment(threads_requested=1),
        device=DEVICE,
    )
