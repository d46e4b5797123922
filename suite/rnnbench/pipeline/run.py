"""`rnnbench run`: groups of trials are built one by one, checked side by side, and then sampled together."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from rnnbench.backends import SeenFiles
from rnnbench.cache import CacheFolder
from rnnbench.measure import MachineWatch, WallTime
from rnnbench.pipeline.anchors import examine_with_anchors
from rnnbench.pipeline.batches import Comparing, build_and_check_all
from rnnbench.pipeline.build_and_check import not_checked, not_sampled
from rnnbench.pipeline.record import Journal, Observer, record_of
from rnnbench.pipeline.same_programs import SamePrograms
from rnnbench.plan import RunPlan, close_adapters, end_run, group_by_workload
from rnnbench.results import Claim, Contradiction, Finding, FindingKind, contradictions, read_run, write_info
from rnnbench.sampling import Context, sample_trials
from rnnbench.stages import Checked, Examined, Sampled
from rnnbench.worker import RunFolders

WithFirst = tuple[Sampled, Sampled | None]
"""A trial, and the earlier trial whose samples it shares, if any."""


def run_trials(
    plan: RunPlan,
    observer: Observer,
    *,
    keep_artifacts: bool = False,
    examined: Sequence[Examined] | None = None,
    cache: CacheFolder | None = None,
) -> None:
    """Build, check and sample the trials of a run. Append each record as soon as it is complete, then end the run.

    `examined` are the trials as the environments see them that run them; None: anchors are in environments of their
    own, and all others in the running one. `cache` has what earlier runs built; None: this run builds everything.
    A KeyboardInterrupt goes through once every worker is gone. What has a record then stays as it is.
    """
    wall_time, watch = WallTime(), MachineWatch()
    folders = RunFolders.of_run(plan.folder, cache)
    context = Context(folders, wall_time, observer.stage)
    journal = Journal(plan, observer)
    if examined is None:
        examined = examine_with_anchors(plan.trials)
    close_adapters()
    files = see_files(examined)
    for group in group_by_workload(examined, lambda one: one.trial):
        _run_group(group, context, journal, plan.seed, files)
    end_run(plan.folder, wall_time.seconds(), watch.conditions(), files.changed())
    if not keep_artifacts:
        folders.clear()


def see_files(examined: Iterable[Examined]) -> SeenFiles:
    """The files of the suite, and of the packages that these trials use in the running environment.

    Packages of other environments are left out. A package that changes during a run would give it trials of two
    versions.
    """
    usable = [one for one in examined if one.failure is None]
    packages = {name for one in usable if _runs_here(one) for name in one.probe.versions}
    return SeenFiles({one.trial.target.backend for one in usable}, {*packages, "numpy"})


def _runs_here(examined: Examined) -> bool:
    """Whether a trial runs in the running environment."""
    return examined.support.interpreter in ("", sys.executable)


def note_versions(plan: RunPlan, examined: Iterable[Examined]) -> None:
    """Write into a run's `run.json` the versions of its environments, if they are not the running one."""
    versions = {one.trial.target.backend: dict(one.probe.versions) for one in examined if not one.trial.pinned}
    write_info(plan.folder, read_run(plan.folder).info.model_copy(update={"versions": versions}))


def _run_group(examined: Sequence[Examined], context: Context, journal: Journal, seed: int, files: SeenFiles) -> None:
    """Examined → Built → Checked → Sampled → Record, for trials of one workload."""
    same = SamePrograms()
    checked = list(check_group([(one, context) for one in examined], journal, same.compare))
    distinct = [one for one in checked if one.trial.id not in same.same_as]
    sampled = {one.trial.id: one for one in sample_trials(distinct, context, seed)} if distinct else {}
    measured: list[WithFirst] = []
    for one in checked:
        if (first := same.same_as.get(one.trial.id)) is not None:
            measured.append((not_sampled(one), sampled[first.trial.id]))
        else:
            measured.append((sampled[one.trial.id], None))
    changed = frozenset(map(str.lower, files.changed()))
    for one_sampled, first_sampled in _without_contradictions(measured):
        if _runs_here(one_sampled.examined):
            one_sampled = _of_installed_versions(of_one_version(one_sampled, changed))
        journal.write(one_sampled, first_sampled)


def check_group(
    examined: Sequence[tuple[Examined, Context]], journal: Journal, compare: Comparing
) -> Iterable[Checked]:
    """The trials that were built and conform. The others have their record at once."""
    for one, _ in examined:
        if one.failure is not None:
            journal.write(not_sampled(not_checked(one)))
    for checked in build_and_check_all([pair for pair in examined if pair[0].failure is None], compare):
        if checked.failure is not None:
            journal.write(not_sampled(checked))
        else:
            yield checked


def _without_contradictions(trials: Sequence[WithFirst]) -> list[WithFirst]:
    """Add a finding for each contradiction among trials of one workload, and remove an impossible `hoisted`."""
    found: dict[str, list[Contradiction]] = {}
    for contradiction in contradictions([record_of(sampled, first) for sampled, first in trials]):
        found.setdefault(contradiction.trial, []).append(contradiction)
    return [(_with_contradictions(sampled, found.get(sampled.trial.id, ())), first) for sampled, first in trials]


def of_one_version(sampled: Sampled, changed: Set[str]) -> Sampled:
    """The trial, with a finding if a package of it changed: some processes may have imported another version."""
    packages = sorted(name for name in sampled.examined.probe.versions if name.lower() in changed)
    if not packages:
        return sampled
    detail = (
        f"files of {', '.join(packages)} changed after the version was read, so its figures may be of another version; "
        f"run it again"
    )
    finding = Finding(kind=FindingKind.ARTIFACT, detail=detail, disbelieved=True)
    return replace(sampled, findings=(*sampled.findings, finding))


def _of_installed_versions(sampled: Sampled) -> Sampled:
    """The trial, with a finding for each version that is not the one of the package's metadata."""
    findings = [
        Finding(
            kind=FindingKind.ARTIFACT,
            detail=f"the adapter says {name} {claimed}, and the metadata of the installed package says {installed}",
        )
        for name, claimed in sampled.examined.probe.versions.items()
        if (installed := _installed_version(name)) not in (None, claimed)
    ]
    return replace(sampled, findings=(*sampled.findings, *findings)) if findings else sampled


def _installed_version(name: str) -> str | None:
    """None where no package of this name is installed here, or its metadata cannot be read."""
    try:
        return version(name)
    except (PackageNotFoundError, ValueError):
        return None


def _with_contradictions(sampled: Sampled, found: Sequence[Contradiction]) -> Sampled:
    if not found:
        return sampled
    findings = (Finding(kind=FindingKind.ARTIFACT, detail=contradiction.detail) for contradiction in found)
    sampled = replace(sampled, findings=(*sampled.findings, *findings))
    loaded = sampled.checked.loaded
    if loaded is None or all(contradiction.claim is not Claim.HOISTED for contradiction in found):
        return sampled
    artifact = loaded.artifact.model_copy(update={"hoisted": None})
    return replace(sampled, checked=replace(sampled.checked, loaded=replace(loaded, artifact=artifact)))
