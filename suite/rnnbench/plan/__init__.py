"""What a run is going to do, known before any worker starts.

    examination  the first stage: `examine` a trial, `request_of` a trial
    trials       from cases and names of backends to trials: `targets_of`, `expected_failures`
    covering     the trials of a check that names no backend: `covering_trials`
    run_plan     `RunPlan`: trials, expected failures and seed, in a run's folder; `begin_run`, `resume_run`, `end_run`
    run_lock     who runs a run; `compress_run` where nobody does

The stages that follow are in `rnnbench.pipeline`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.plan.covering import CoveringTrials, covering_trials
    from rnnbench.plan.examination import examine, request_of
    from rnnbench.plan.run_lock import compress_run
    from rnnbench.plan.run_plan import RunPlan, begin_run, end_run, resume_run
    from rnnbench.plan.trials import check_case_names, expected_failures, installed_backends, targets_of

_NAMES = {
    "covering": (
        "CoveringTrials",
        "covering_trials",
    ),
    "examination": (
        "examine",
        "request_of",
    ),
    "run_lock": ("compress_run",),
    "run_plan": (
        "RunPlan",
        "begin_run",
        "end_run",
        "resume_run",
    ),
    "trials": (
        "check_case_names",
        "expected_failures",
        "installed_backends",
        "targets_of",
    ),
}
__all__ = [
    "CoveringTrials",
    "RunPlan",
    "begin_run",
    "check_case_names",
    "compress_run",
    "covering_trials",
    "end_run",
    "examine",
    "expected_failures",
    "installed_backends",
    "request_of",
    "resume_run",
    "targets_of",
]
__getattr__ = lazy_names(__name__, _NAMES)
