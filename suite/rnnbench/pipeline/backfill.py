"""`rnnbench history backfill`: measure the releases of a package, each in turn with a reference release.

Every release becomes a run of the history, with the ratios of its latencies to the reference's. A release that cannot
be measured becomes a run whose records have the reason.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

from rnnbench.backends import Probe, Support
from rnnbench.cases import Trial
from rnnbench.history import SERIES_DEVICE, VERDICTS_FILE, History, ReleaseFile, write_release
from rnnbench.measure import describe_machine
from rnnbench.pipeline.ab import SideBySide, compare_sides
from rnnbench.pipeline.build_and_check import not_checked, not_sampled
from rnnbench.pipeline.environment_packages import extras_of
from rnnbench.pipeline.environments import Side, open_side
from rnnbench.pipeline.made_environments import NotNowError, SideError, make_environment
from rnnbench.pipeline.progress import NoProgress
from rnnbench.pipeline.record import Journal, Observer
from rnnbench.pipeline.releases import Release
from rnnbench.plan import begin_run, end_run, probe_or_stand_in
from rnnbench.results import Store, fingerprint, read_run, sql_literal, write_info
from rnnbench.sampling import NO_ROOF, PairBudget
from rnnbench.spelling import count
from rnnbench.stages import Examined, Failure

INSTALLERS = 2
"""Environments made at the same time. Nothing is measured meanwhile."""


@dataclass(frozen=True)
class Backfill:
    """The settings of a backfill: trials, reference, budget and folders."""

    trials: tuple[Trial, ...]
    reference: Release
    budget: PairBudget
    store: Store
    history: Path
    environments: Path
    within: float
    """Seconds after which no further release is begun. The time to make environments does not count."""
    retry: bool = False
    """Whether to try again to install releases whose installation failed."""


@dataclass(frozen=True)
class MeasuredRelease:
    """The result for one release."""

    release: Release
    seconds: float
    problem: str = ""
    """Why it was not measured; empty if it was."""


def measure_releases(
    plan: Backfill, releases: Sequence[Release], observer: Observer, tell: Callable[[str], None]
) -> Iterator[MeasuredRelease]:
    """Measure the releases that the history lacks, the newest first, and add each to the history.

    Stops if the next release would end later than `plan.within`. Raises SideError if the reference cannot be used,
    NotNowError if this machine can make no environment now, which says nothing of a release, and StoreError.
    """
    missing = missing_trials(plan, releases)
    todo = [release for release in reversed(releases) if missing[release.version]]
    if not todo:
        return
    tell(f"Making the environments of {count(len(todo), 'release')}, where they are not there yet.")
    reference = open_side(plan.reference.requirements, plan.trials, plan.environments)
    problems = _install(todo, extras_of(plan.trials), plan.environments)
    started, longest = time.monotonic(), 0.0
    for release in todo:
        trials = missing[release.version]
        begun = time.monotonic()
        if problem := problems[release]:
            _add_failed(plan, release, trials, problem)
            yield MeasuredRelease(release, 0.0, problem)
            continue
        if begun - started + longest > plan.within:
            break
        problem = _measure(plan, release, trials, reference, observer)
        longest = max(longest, time.monotonic() - begun)
        yield MeasuredRelease(release, time.monotonic() - begun, problem)


def missing_trials(plan: Backfill, releases: Sequence[Release]) -> Mapping[str, tuple[Trial, ...]]:
    """By version, the trials that the history does not have yet, of this machine and with the same reference.

    A trial on a GPU is measured anew where the history has it of another GPU. What could not be installed is of none.
    """
    history = History(plan.history)
    machine = fingerprint(describe_machine())
    retried = " AND outcome <> 'unavailable'" if plan.retry else ""
    rows = history.sql(
        "SELECT DISTINCT release, trial, CASE WHEN outcome <> 'unavailable' THEN series_device ELSE '' END "
        f"FROM (SELECT *, {SERIES_DEVICE} AS series_device FROM rows) AS rows JOIN runs USING (run_id) "
        f"WHERE runs.machine = '{machine}' AND package = {sql_literal(plan.reference.package)} "
        f"AND reference = {sql_literal(plan.reference.version)}{retried}"
    ).rows
    gpus = {trial.id: _gpu_of(trial) for trial in plan.trials}
    measured = {(version, trial) for version, trial, gpu in rows if gpu in ("", gpus.get(trial)) or not gpus.get(trial)}
    return {
        release.version: tuple(trial for trial in plan.trials if (release.version, trial.id) not in measured)
        for release in releases
    }


def _gpu_of(trial: Trial) -> str:
    """The name of the GPU that would run a trial; empty where it is none, or where no driver tells."""
    device = probe_or_stand_in(trial.target.backend).device(trial.device)
    return device.name if device is not None and device.driver and not device.software else ""


def stored_reference(history: Path, package: str) -> str:
    """The reference version of the newest backfill of the package on this machine; empty if there is none."""
    machine = fingerprint(describe_machine())
    rows = (
        History(history)
        .sql(
            f"SELECT reference FROM runs WHERE machine = '{machine}' AND package = {sql_literal(package)} "
            "ORDER BY started DESC LIMIT 1"
        )
        .rows
    )
    return str(rows[0][0]) if rows else ""


def _install(releases: Sequence[Release], extras: Sequence[str], environments: Path) -> Mapping[Release, str]:
    """Make the environments of releases. Returns why each release cannot be used; an empty text if it can.

    Raises NotNowError.

    An interrupt stops the installers. Without that it would wait until they end.
    """
    stop = Event()

    def install(release: Release) -> str:
        try:
            environment = make_environment(release.requirements, extras, environments, stop)
        except NotNowError:
            raise
        except SideError as error:
            return str(error)
        return (
            f"{release.requirements}: was withdrawn by its makers (yanked): {environment.yanked}"
            if environment.yanked
            else ""
        )

    with ThreadPoolExecutor(INSTALLERS) as pool:
        try:
            return dict(zip(releases, pool.map(install, releases), strict=True))
        except BaseException:
            stop.set()
            raise


def _measure(plan: Backfill, release: Release, trials: Sequence[Trial], reference: Side, observer: Observer) -> str:
    """Measure one release and add its run to the history. Returns why it could not be measured, or an empty text."""
    try:
        side = open_side(release.requirements, trials, plan.environments)
    except NotNowError:
        raise
    except SideError as error:
        _add_failed(plan, release, trials, str(error))
        return str(error)
    both = SideBySide.begin(trials, (reference.only(trials), side), plan.store)
    compare_sides(both, plan.budget, observer, together=True)
    run = both.runs[1]
    write_release(run, _release_file(plan, release, _ratios(run)))
    History(plan.history).add(run)
    failed = [record for record in read_run(run).records if record.outcome not in ("ok", "unsupported")]
    return "; ".join(dict.fromkeys(f"{record.outcome}: {record.reason}" for record in failed))


def _ratios(run: Path) -> dict[str, dict[str, tuple[float, ...]]]:
    found: dict[str, dict[str, tuple[float, ...]]] = {}
    for entry in json.loads((run / VERDICTS_FILE).read_text(encoding="utf-8"))["verdicts"]:
        found.setdefault(entry["trial"], {})[entry["path"]] = tuple(entry["ratios"])
    return found


def _add_failed(plan: Backfill, release: Release, trials: Sequence[Trial], problem: str) -> None:
    """Add a run whose records say why the release could not be installed."""
    run = begin_run(trials, plan.store, side="b")
    backends = sorted({trial.target.backend for trial in trials})
    versions = {release.package: release.version}
    info = read_run(run.folder).info
    write_info(run.folder, info.model_copy(update={"versions": dict.fromkeys(backends, versions)}))
    journal = Journal(run, NoProgress())
    for trial in trials:
        failure = Failure("probe", "unavailable", problem)
        examined = Examined(trial, Probe(routes=(), versions=versions), Support("unsupported", problem), failure)
        journal.write(replace(not_sampled(not_checked(examined)), roof=NO_ROOF))
    end_run(run.folder, {})
    write_release(run.folder, _release_file(plan, release, {}))
    History(plan.history).add(run.folder)


def _release_file(plan: Backfill, release: Release, ratios: dict[str, dict[str, tuple[float, ...]]]) -> ReleaseFile:
    return ReleaseFile(
        package=release.package,
        version=release.version,
        reference=plan.reference.version,
        released=release.day,
        ratios=ratios,
    )
