"""`--on`: the trial groups of a run are measured by the nodes of a Ray cluster, and the journal is kept here."""

from __future__ import annotations

from collections.abc import Callable

from rnnbench.fleet.cluster import FleetError, Place, join
from rnnbench.fleet.dispatch import Dispatch, Group, Left
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
) -> list[Left]:
    """Measure the trials of a run on a cluster; `timed` or only checked, with `jobs` at once on each node.

    Nodes take what an earlier run built there from their caches, unless they are told to `rebuild`.

    Trials that are compared are measured by one node. The longest groups are begun first. Returns the trials that have
    no record because their task or node was lost; the run is ended where there are none. `tell` gets a sentence for
    each loss. Raises FleetError, StoreError, MissingExtraError; a KeyboardInterrupt goes through once no task is left.
    A new run that the cluster refused before its first record leaves no folder.
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
    """Trials that are compared, the group with the most to sample first: the last one to end decides."""
    groups = [Group(tuple(group)) for group in group_by_workload(plan.trials, lambda trial: trial)]
    return sorted(groups, key=lambda group: -sum(trial.measure.budget for trial in group.trials))
