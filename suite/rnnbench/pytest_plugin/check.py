"""The test that a trial is: built and checked in a process of its own, by the same steps as `rnnbench check`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from rnnbench.cases import Trial
from rnnbench.pytest_plugin import FOLDER, is_xdist_worker
from rnnbench.pytest_plugin.verdict import conclude
from rnnbench.run.account import Account
from rnnbench.run.prepare import examine, prepare, start_worker
from rnnbench.run.process import Workplace

if TYPE_CHECKING:
    from rnnbench.pytest_plugin.item import TrialItem


def check_trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Build and check the trial of this item. Raises pytest's outcomes."""
    item = cast("TrialItem", request.node)
    workplace = workplace_of(request.config, tmp_path_factory)
    check(item, workplace)
    conclude(item, workplace.logs / log_of(item.trial))


def check(item: TrialItem, workplace: Workplace) -> None:
    """Build, load and check; what comes of it is in the item's findings, new ones where a test is run again."""
    item.findings = examine(item.trial)
    if item.findings.failure is None:
        cores = _cores(item.config, item.trial)
        worker = start_worker(item.findings, workplace, log_of(item.trial), cores)
        for _ in prepare(item.findings, worker, workplace, Account(), quietly):
            continue


def workplace_of(config: pytest.Config, folders: pytest.TempPathFactory) -> Workplace:
    """Folders under the session's temporary one; under pytest-xdist, under the one its processes have in common."""
    base = folders.getbasetemp()
    folder = config.stash.setdefault(FOLDER, (base.parent if is_xdist_worker(config) else base) / "rnnbench")
    return Workplace.of_run(Path(folder))


def log_of(trial: Trial) -> str:
    return f"{trial.digest}.log"


def quietly(trial: Trial, stage: str) -> None:
    """pytest shows how far it is."""


def _cores(config: pytest.Config, trial: Trial) -> list[int] | None:
    """A core to each process of pytest-xdist, in turn; None for those that any other run would take."""
    if trial.threads > 1 or not is_xdist_worker(config):
        return None
    cores = sorted(os.sched_getaffinity(0))
    worker = re.search(r"\d+$", config.workerinput["workerid"])  # type: ignore[attr-defined]
    return [cores[int(worker[0]) % len(cores)]] if worker else None
