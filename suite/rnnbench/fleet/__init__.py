"""Trials on the nodes of a Ray cluster: `rnnbench run --on` and `rnnbench check --on`.

    run            `run_on_cluster`: what `--on` does
    dispatch       sends trial groups to nodes as tasks, and their messages to the journal
    journal        the run's folder, on the driver: records, samples and nodes
    cluster        all calls of Ray, and their errors in words: `Place`, `FleetError`
    group_task     the task on a node, as Ray runs it
    node_process   the process that the task starts: it measures one trial group as `rnnbench run` does
    messages       the messages between the driver and a node's process
    same_suite     checks that a node has the suite and the versions of the driver

The driver is the process that runs the command. Ray is imported only if `--on` is given. Start with `run`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.fleet.cluster import FleetError, Place, require_cluster
    from rnnbench.fleet.dispatch import UnfinishedTrials
    from rnnbench.fleet.journal import describe_nodes
    from rnnbench.fleet.run import run_on_cluster

__getattr__, __all__ = lazy_names(__name__, __file__)
