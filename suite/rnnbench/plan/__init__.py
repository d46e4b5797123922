"""The plan of a run, made before any worker starts.

    adapters         questions to adapters, each in a process of its own: `probe`, `support`, `supports`
    named_targets    the targets that a user names: `targets_of`, `installed_backends`, `baselines`
    examination      the first stage: `examine` a trial, or all
    devices          the devices that trials need: `require_devices`
    covering         a covering set of trials for each target: `covering_trials`
    support_matrix   which strategies every installed backend supports: `build_support_matrix`
    workload_groups  trials that are compared: `group_by_workload`
    shards           a plan cut into shards, for machines that share it: `shard_of`
    run_plan         `RunPlan`: trials, `expected_failures` and seed, in a run's folder; `begin_run`, `resume_run`
    plan_files       the files of a plan, also those that an older rnnbench wrote
    run_lock         the lock of a run in progress; `compress_run` compresses a run that is not in progress

The stages that follow are in `rnnbench.pipeline`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.plan.adapters import close_adapters, probe, probe_or_stand_in, support, supports
    from rnnbench.plan.covering import CoveringTrials, covering_of, covering_trials
    from rnnbench.plan.devices import device_of_backends, require_devices
    from rnnbench.plan.examination import examine, examine_all, unavailable
    from rnnbench.plan.named_targets import baselines, installed_backends, parse_targets, targets_of
    from rnnbench.plan.run_lock import compress_run
    from rnnbench.plan.run_plan import (
        ExpectedFailures,
        RunPlan,
        begin_run,
        discard_run,
        end_run,
        expected_failures,
        resume_run,
    )
    from rnnbench.plan.shards import Shard, ShardedPlan, anchor_trials, shard_of
    from rnnbench.plan.support_matrix import build_support_matrix
    from rnnbench.plan.workload_groups import group_by_workload

__getattr__, __all__ = lazy_names(__name__, __file__)
