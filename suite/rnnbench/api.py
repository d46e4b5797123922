"""The suite from Python: run or check cases, read their records, draw a plot. `import rnnbench` offers it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar, cast

from rnnbench.cache import CacheFolder
from rnnbench.cases import Case, Trial, check_case_names
from rnnbench.pipeline import NoProgress, Observer, check_trials, run_trials, usable_cache
from rnnbench.plan import RunPlan, begin_run, expected_failures, require_devices, targets_of
from rnnbench.results import Run, Store, read_run

Cases = Case | Sequence[Case]
T = TypeVar("T")


def run(
    cases: Cases,
    backends: str | Sequence[str] = (),
    *,
    baseline: bool = False,
    results: str | Path = "results",
    observer: Observer | None = None,
    rebuild: bool = False,
) -> Run:
    """Build, check and time every trial of the cases, as `rnnbench run` does.

    `backends` is a name as `iree`, `tvm:relax` or `numpy:*`, or several; without any, every installed backend takes
    part with its default route. With `baseline` the baseline's trials are added. The run's folder is made in `results`;
    `observer` is told of every stage and record. With `rebuild`, every program is built and checked, also where an
    earlier run has done so. Raises CaseError, BackendError, CacheError and StoreError.
    """
    plan = _plan(cases, backends, results, baseline=baseline)
    run_trials(plan, observer or NoProgress(), cache=_cache(rebuild=rebuild))
    return read_run(plan.folder)


def check(
    cases: Cases,
    backends: str | Sequence[str] = (),
    *,
    jobs: int | None = None,
    results: str | Path = "results",
    observer: Observer | None = None,
    rebuild: bool = False,
) -> Run:
    """Check every trial of the cases against the reference, without timing, as `rnnbench check` does.

    `jobs` trials are checked at once; without it one for each core. For the rest see `run`.
    """
    plan = _plan(cases, backends, results, is_check=True)
    cache = _cache(rebuild=rebuild)
    check_trials(plan, observer or NoProgress(), jobs, cache=cache)
    return read_run(plan.folder)


def plot(runs: Run | Sequence[Run], file: str | Path, path: str = "bound") -> Path:
    """Draw latency per step against the chunk, of one latency path, into a PNG or SVG file. Returns the file.

    All trials must be of one workload but for the hidden size. Needs Matplotlib (`pip install 'rnnbench[report]'`).
    Raises ReportError where there is nothing to draw, or more than one picture holds.
    """
    from rnnbench.reports import draw_latency

    return draw_latency(_listed(runs, Run, "a Run, as read_run(FOLDER) gives"), Path(file), path)


def _listed(value: T | Sequence[T], kind: type[T], expected: str) -> list[T]:
    """One value or several, as a list. Raises TypeError for others, such as the name of a file."""
    values = [value] if isinstance(value, kind) else list(cast("Sequence[T]", value))
    if not all(isinstance(value, kind) for value in values):
        raise TypeError(f"expected {expected}, or several of them; got {value!r}")
    return values


def _cache(*, rebuild: bool) -> CacheFolder | None:
    return usable_cache(lambda text: warnings.warn(text, stacklevel=4), reads=not rebuild)


def _plan(
    cases: Cases, backends: str | Sequence[str], results: str | Path, *, baseline: bool = False, is_check: bool = False
) -> RunPlan:
    chosen = _listed(cases, Case, "a Case, as load_case(FILE) gives")
    check_case_names(chosen)
    targets = targets_of([backends] if isinstance(backends, str) else backends, baseline=baseline)
    trials: list[Trial] = [
        trial for case in chosen for trial in case.trials(targets, endurance=case.endurance if is_check else 0.0)
    ]
    if backends:
        require_devices(trials)
    # A check is known by the files of its cases: it is no night, and is not resumed as a run.
    files = [Path(case.path or case.name) for case in chosen] if is_check else []
    return begin_run(trials, Store(Path(results)), expected_failures(chosen, trials), case_files=files)
