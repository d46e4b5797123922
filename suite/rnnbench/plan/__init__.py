"""What a run is going to do, known before any worker starts.

    examination  the first stage: `examine` a trial, `request_of` a trial
    covering     the trials of a check that names no backend: `covering_trials`
    run_plan     `RunPlan`: trials, expected failures and seed, in a run's folder; `begin_run`, `resume_run`, `end_run`

The stages that follow are in `rnnbench.pipeline`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.plan.covering import CoveringTrials, covering_trials
    from rnnbench.plan.examination import examine, request_of
    from rnnbench.plan.run_plan import RunPlan, begin_run, end_run, resume_run

_NAMES = {
    "covering": ("CoveringTrials", "covering_trials"),
    "examination": ("examine", "request_of"),
    "run_plan": ("RunPlan", "begin_run", "end_run", "resume_run"),
}
__all__ = [
    "CoveringTrials",
    "RunPlan",
    "begin_run",
    "covering_trials",
    "end_run",
    "examine",
    "request_of",
    "resume_run",
]
__getattr__ = lazy_names(__name__, _NAMES)
