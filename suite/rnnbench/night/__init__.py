"""The night: the newest versions are measured and compared with the last good ones, and changes are reported.

    state        `night.yaml`: the last good version of each backend, and the progress of the night
    builds       the newest version of each backend, and which have to be compared
    measure      `measure_night`: the run, the checks, the comparisons and the A/A comparison
    conformance  the check of a new version, and its consequences for alerts
    slowdowns    the SLOWER verdicts of a comparison, and the second comparison that confirms them
    verdicts     the consequences of verdicts for alerts and for the last good versions
    folders      the folders and files of a night's results
    collect      `collect_night`: history, alerts, summary and site
    github       `tell_github`: an issue for each alert, and comments, through `gh`

Each step calls functions of other packages; this package puts them in order. Start with `measure`.
"""

from typing import TYPE_CHECKING

from rnnbench.lazy import lazy_names

if TYPE_CHECKING:
    from rnnbench.night.builds import ALL, VersionSearch, checks_of, jobs_of, newest_of
    from rnnbench.night.collect import MeasuredNight, collect_night, measured_in
    from rnnbench.night.conformance import ConformanceCases
    from rnnbench.night.folders import NightFolders
    from rnnbench.night.github import GitHub, tell_github
    from rnnbench.night.measure import NightPlan, measure_night
    from rnnbench.night.state import State, hold_state, read_state

__getattr__, __all__ = lazy_names(__name__, __file__)
