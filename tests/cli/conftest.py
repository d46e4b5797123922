"""A folder with a case, in which the command is run as a user would, and one in which a run has been made."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

import pytest
from few_checks import make_few_checks
from forked_workers import fork_file_readers, fork_workers
from harness_command import run_command

CASE = """\
schema: 1
name: tiny
model: {cell: lstm, input: 3, hidden: 4}
workload: {steps: 8, chunk: [2, 4]}
strategy: {time: looped, state: [stitched, stateful]}
limits: {endurance: 10ms}
measure: {budget: 20ms, processes: 1}
"""


@contextmanager
def hurried():
    """What workers and pictures are is shown elsewhere, and those of a report take two thirds of a run's time."""
    with pytest.MonkeyPatch.context() as patch:
        fork_workers(patch)
        make_few_checks(patch)
        fork_file_readers(patch)
        patch.setattr("rnnbench.reports.plots.draw", lambda view, folder: [])
        yield


@pytest.fixture(scope="module", autouse=True)
def quick():
    with hurried():
        yield


@pytest.fixture
def folder(tmp_path):
    """A folder that has `tiny.yaml`."""
    (tmp_path / "tiny.yaml").write_text(CASE)
    return tmp_path


@pytest.fixture
def rnnbench(folder):
    """Runs the command in that folder."""
    return partial(run_command, folder)


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A folder in which a run has been made, which nobody changes, and what the command printed of it."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.yaml").write_text(CASE)
    with hurried():
        return folder, run_command(folder, "run", "tiny.yaml", "--backend", "fake:honest")
