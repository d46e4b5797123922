"""`--on`: the nodes of a Ray cluster measure the trial groups of a run. The journal is on this machine."""

from __future__ import annotations

from collections.abc import Callable

from rnnbench.fleet.cluster import FleetError, Place, join
from rnnbench.fleet.dispatch import Dispatch, Group, UnfinishedTrials
from rnnbench.fleet.journal import FleetJournal, worker_seconds
from rnnbench.fleet.messages import GroupWork, encode_work
from rnnbench.fleet.same_suite import suite_facts
from rnnbench.measure import WallTime
from rnnbench.pipeline import Observer
from rnnbench.plan import RunPlan, close_adapters, discard_run, end_run, group_by_workload, probe_or_stand_in


def run_on_cluster(
    plan: RunPlan,
    place: Place,
    observer: Observer,
    tell: Callable[[str], None],
    *,
    timed: bool = True,
    jobs: int | None = None,
    rebuild: bool = False,
) -> list[UnfinishedTrials]:
    """Measure the trials of a run on a cluster. Trials that are compared are measured by one node, long groups first.

    - `timed`: whether trials are timed; otherwise they are only checked, `jobs` at once on each node.
    - `rebuild`: whether nodes build every program, even if their caches have it.
    - `tell`: gets a sentence for each lost task.

    Returns the trials that have no record because their task or node was lost. If there are none, the run is ended.
    Raises FleetError, StoreError and MissingExtraError. A KeyboardInterrupt is raised after all tasks have ended. If
    the cluster refuses a new run before its first record, the run's folder is removed.
    """
    wall_time = WallTime()
    journal = FleetJournal(plan, observer, timed=timed)
    before = dict(journal.nodes)
    backends = sorted({trial.target.backend for trial in plan.trials})
    suite = suite_facts({name: dict(probe_or_stand_in(name).versions) for name in backends})
    close_adapters()

    def work_of(group: Group) -> bytes:
        expected = {trial.case: tuple(plan.expected_of(trial)) for trial in group.trials}
        return encode_work(GroupWork(group.trials, expected, plan.seed, timed, jobs, rebuild))

    try:
        with join(place) as cluster:
            left = Dispatch(cluster, journal, suite, observer, tell).run(_groups(plan), work_of)
    except FleetError:
        discard_run(plan)
        raise
    if not left:
        seconds = {**wall_time.seconds(), **worker_seconds(before, journal.nodes)}
        end_run(plan.folder, seconds)
    return left


def _groups(plan: RunPlan) -> list[Group]:
    """The groups of trials that are compared, those with the most sampling first, so that the run ends early."""
    groups = [Group(tuple(group)) for group in group_by_workload(plan.trials, lambda trial: trial)]
    return sorted(groups, key=lambda group: -sum(trial.measure.budget for trial in group.trials))
