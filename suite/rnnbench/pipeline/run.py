"""`rnnbench run`: groups of trials are built one by one, checked side by side, and then sampled together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rnnbench.cache import CacheFolder
from rnnbench.measure import MachineWatch, WallTime
from rnnbench.pipeline.anchors import examine_with_anchors
from rnnbench.pipeline.batches import Comparing, build_and_check_all
from rnnbench.pipeline.build_and_check import not_checked, not_sampled
from rnnbench.pipeline.claims import without_contradictions
from rnnbench.pipeline.edited import see_files
from rnnbench.pipeline.record import Journal, Observer
from rnnbench.pipeline.same_programs import SamePrograms
from rnnbench.plan import RunPlan, close_adapters, end_run, group_by_workload
from rnnbench.results import read_run, write_info
from rnnbench.sampling import Context, sample_trials
from rnnbench.stages import Checked, Examined, Sampled
from rnnbench.worker import RunFolders


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
        _run_group(group, context, journal, plan.seed)
    end_run(plan.folder, wall_time.seconds(), watch.conditions(), files.changed())
    if not keep_artifacts:
        folders.clear()


def note_versions(plan: RunPlan, examined: Iterable[Examined]) -> None:
    """Write into a run's `run.json` the versions of its environments, if they are not the running one."""
    versions = {one.trial.target.backend: dict(one.probe.versions) for one in examined if not one.trial.pinned}
    write_info(plan.folder, read_run(plan.folder).info.model_copy(update={"versions": versions}))


def _run_group(examined: Sequence[Examined], context: Context, journal: Journal, seed: int) -> None:
    """Examined → Built → Checked → Sampled → Record, for trials of one workload."""
    same = SamePrograms()
    checked = list(check_group([(one, context) for one in examined], journal, same.compare))
    distinct = [one for one in checked if one.trial.id not in same.same_as]
    sampled = {one.trial.id: one for one in sample_trials(distinct, context, seed)} if distinct else {}
    measured: list[tuple[Sampled, Sampled | None]] = []
    for one in checked:
        if (first := same.same_as.get(one.trial.id)) is not None:
            measured.append((not_sampled(one), sampled[first.trial.id]))
        else:
            measured.append((sampled[one.trial.id], None))
    for one_sampled, first_sampled in without_contradictions(measured):
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
