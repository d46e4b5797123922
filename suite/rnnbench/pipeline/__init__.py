"""The line that a trial goes through: Trial → Examined → Built → Checked → Sampled → Record.

    run              `run_trials`: what `rnnbench run` does
    check            `check_trials`: what `rnnbench check` does
    ab               `compare_sides`: what `rnnbench ab` does; `environments` are its two sides
    build_and_check  the stages before sampling: `build`, `check`
    record           the last stage: `record_of`, and the `Journal` that writes records
    shrink           the smallest trial that fails alike
    progress         what is shown while a run goes on

The values between stages are in `rnnbench.stages`, the first stage in `rnnbench.plan`, sampling in `rnnbench.sampling`.
Start with `run`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.pipeline.ab import SideBySide, compare_sides
    from rnnbench.pipeline.build_and_check import build_and_check_trial, not_checked, not_sampled
    from rnnbench.pipeline.check import check_trials
    from rnnbench.pipeline.environments import ENVIRONMENTS, SideError, open_side
    from rnnbench.pipeline.progress import NoProgress, ProgressBar
    from rnnbench.pipeline.record import Observer, record_of
    from rnnbench.pipeline.run import run_trials
    from rnnbench.pipeline.shrink import reproduce_command

_NAMES = {
    "ab": (
        "SideBySide",
        "compare_sides",
    ),
    "build_and_check": (
        "build_and_check_trial",
        "not_checked",
        "not_sampled",
    ),
    "check": ("check_trials",),
    "environments": (
        "ENVIRONMENTS",
        "SideError",
        "open_side",
    ),
    "progress": (
        "NoProgress",
        "ProgressBar",
    ),
    "record": (
        "Observer",
        "record_of",
    ),
    "run": ("run_trials",),
    "shrink": ("reproduce_command",),
}
__all__ = [
    "ENVIRONMENTS",
    "NoProgress",
    "Observer",
    "ProgressBar",
    "SideBySide",
    "SideError",
    "build_and_check_trial",
    "check_trials",
    "compare_sides",
    "not_checked",
    "not_sampled",
    "open_side",
    "record_of",
    "reproduce_command",
    "run_trials",
]
__getattr__ = lazy_names(__name__, _NAMES)
