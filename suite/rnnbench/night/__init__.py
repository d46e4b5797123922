"""The night: the newest versions are measured, compared with the last good ones, and what changed is told.

    state      `night.yaml`: the last good version of each backend, and how far the night in progress has come
    builds     the newest version of each backend, and which have to be compared
    measure    `measure_night`: the run, the checks, the comparisons and the A/A comparison
    conformance   the check of a new version, and what it means for alerts
    slower     what a comparison found, and the second one that confirms it
    verdicts   what the verdicts mean for alerts and for the last good versions
    folders    where a night keeps what it found
    collect    `collect_night`: history, alerts, summary and site
    github     `tell_github`: an issue for each alert, and comments, through `gh`

Each step is a function of another room: this one puts them in order. Start with `measure`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.night.builds import ALL, Sought, checks_of, jobs_of, newest_of
    from rnnbench.night.collect import MeasuredNight, collect_night, measured_in
    from rnnbench.night.conformance import ConformanceCases
    from rnnbench.night.folders import NightFolders
    from rnnbench.night.github import GitHub, tell_github
    from rnnbench.night.measure import NightPlan, measure_night
    from rnnbench.night.state import State, hold_state, read_state

_NAMES = {
    "builds": (
        "ALL",
        "Sought",
        "checks_of",
        "jobs_of",
        "newest_of",
    ),
    "collect": (
        "MeasuredNight",
        "collect_night",
        "measured_in",
    ),
    "conformance": ("ConformanceCases",),
    "folders": ("NightFolders",),
    "github": (
        "GitHub",
        "tell_github",
    ),
    "measure": (
        "NightPlan",
        "measure_night",
    ),
    "state": (
        "State",
        "hold_state",
        "read_state",
    ),
}
__all__ = [
    "ALL",
    "ConformanceCases",
    "GitHub",
    "MeasuredNight",
    "NightFolders",
    "NightPlan",
    "Sought",
    "State",
    "checks_of",
    "collect_night",
    "hold_state",
    "jobs_of",
    "measure_night",
    "measured_in",
    "newest_of",
    "read_state",
    "tell_github",
]
__getattr__ = lazy_names(__name__, _NAMES)
