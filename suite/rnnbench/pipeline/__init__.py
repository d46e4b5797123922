"""The stages that a trial goes through: Trial → Examined → Built → Checked → Sampled → Record.

    run              `run_trials`: what `rnnbench run` does
    check            `check_trials`: what `rnnbench check` does; `shrink` finds the smallest trial that fails alike
    ab               `compare_sides`: what `rnnbench ab` does
    environments     the two sides of a comparison; `made_environments` makes one from requirements, with the packages
                     of `environment_packages`; `environment_worker` describes one
    pip_errors       why pip failed
    anchors          trials of pinned versions, in environments of their own
    releases         the releases of a package
    backfill         `measure_releases`: releases, each beside a reference
    bisect           `bisect_releases`: the release in which a trial became slower or wrong
    confirmation     `confirm`: measures again whether an alert of the history is true
    reproduction     the smallest programs that show a compiler's fault (`docs/upstream`), and whether it is mended
    build_and_check  the stages before sampling: `import_framework`, `build`, `load`, `check`; `reference` comes before
                     the checks
    batches          a run's trials in these stages: built alone, checked side by side
    same_programs    trials whose programs are equal, which are measured once
    record           the last stage: `record_of`, and the `Journal` that writes records
    latency, latency_floor, scenarios   parts of a record, computed from samples
    cache_folder     the cache that the runs of a user share: its folder and size
    progress         the progress bar of a run

The values between stages are in `rnnbench.stages`, the first stage in `rnnbench.plan`, sampling in `rnnbench.sampling`.
Start with `run`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.pipeline.ab import SideBySide, compare_sides
    from rnnbench.pipeline.anchors import MAKING_ANCHORS, examine_with_anchors
    from rnnbench.pipeline.backfill import Backfill, MeasuredRelease, measure_releases, missing_trials, stored_reference
    from rnnbench.pipeline.bisect import Bisection, LatencyJudge, OutcomeJudge, Step, Steps, bisect_releases
    from rnnbench.pipeline.build_and_check import build_and_check_trial, not_checked, not_sampled
    from rnnbench.pipeline.cache_folder import CacheError, usable_cache, user_cache
    from rnnbench.pipeline.check import check_trials
    from rnnbench.pipeline.confirmation import Confirmation, confirm, confirm_sides, not_comparable
    from rnnbench.pipeline.environment_packages import extras_of
    from rnnbench.pipeline.environment_worker import source_digest
    from rnnbench.pipeline.environments import Side, check_side, open_environment, open_side
    from rnnbench.pipeline.made_environments import ENVIRONMENTS, NotNowError, SideError, make_environment
    from rnnbench.pipeline.progress import NoProgress, ProgressBar, told_if_long
    from rnnbench.pipeline.record import Observer, record_of
    from rnnbench.pipeline.releases import (
        Release,
        between,
        find_release,
        list_releases,
        newest_of_minors,
        newest_release,
        released_package,
    )
    from rnnbench.pipeline.reproduction import (
        FaultState,
        Reproduced,
        Reproduction,
        ReproductionError,
        earlier_environment,
        environment_of,
        find_reproduction,
        reproduce,
        reproductions,
    )
    from rnnbench.pipeline.run import note_versions, run_trials
    from rnnbench.pipeline.shrink import reproduce_command

__getattr__, __all__ = lazy_names(__name__, __file__)
