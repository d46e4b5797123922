"""The test that a trial is: built and checked in a process of its own, by the same stages as `rnnbench check`."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from rnnbench.cases import Trial
from rnnbench.measure import WallTime
from rnnbench.pipeline import NoProgress, build_and_check_trial, not_checked, not_sampled
from rnnbench.plan import examine
from rnnbench.pytest_plugin import FOLDER, is_xdist_worker
from rnnbench.pytest_plugin.outcome import conclude
from rnnbench.sampling import Context
from rnnbench.stages import Checked
from rnnbench.worker import RunFolders, log_name, start_trial_worker

if TYPE_CHECKING:
    from rnnbench.pytest_plugin.item import TrialItem


def check_trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Build and check the trial of this item. Raises pytest's outcomes."""
    item = cast("TrialItem", request.node)
    context = context_of(request.config, tmp_path_factory)
    checked = check_item(item, context)
    conclude(item, not_sampled(checked), context.folders.logs / log_name(item.trial))


def check_item(item: TrialItem, context: Context) -> Checked:
    """Build, load and check the trial of an item. A test that is run again starts anew."""
    examined = examine(item.trial)
    if examined.failure is not None:
        return not_checked(examined)
    cores = _cores(item.config, item.trial)
    worker = start_trial_worker(examined, context.folders, log_name(item.trial), cores)
    return build_and_check_trial(examined, worker, context)


def context_of(config: pytest.Config, folders: pytest.TempPathFactory) -> Context:
    """Folders under the session's temporary one. Under pytest-xdist, under the one that its processes share.

    Each process has a store of programs of its own, since a store has one writer.
    """
    base = folders.getbasetemp()
    folder = config.stash.setdefault(FOLDER, (base.parent if is_xdist_worker(config) else base) / "rnnbench")
    shared = RunFolders.of_run(Path(folder))
    worker = _xdist_worker(config)
    own = replace(shared, artifacts=shared.artifacts / worker) if worker else shared
    return Context(own, WallTime(), NoProgress().stage)


def _xdist_worker(config: pytest.Config) -> str:
    """The name of this process of pytest-xdist, as gw0. Empty without it."""
    return str(config.workerinput["workerid"]) if is_xdist_worker(config) else ""  # type: ignore[attr-defined]


def _cores(config: pytest.Config, trial: Trial) -> list[int] | None:
    """One core to each process of pytest-xdist, in turn. None for those that any other run would take."""
    worker = re.search(r"\d+$", _xdist_worker(config))
    if worker is None or trial.threads > 1:
        return None
    cores = sorted(os.sched_getaffinity(0))
    return [cores[int(worker[0]) % len(cores)]]
