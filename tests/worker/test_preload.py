"""What a build had to import is there for the next one in the same worker."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness_trials import make_trial
from rnnbench_fake import CONVERTER

from rnnbench.plan import examine
from rnnbench.worker import ForkedWorker, ForkingWorker, RunFolders, start_trial_worker
from rnnbench.worker.commands import Build
from rnnbench.worker.preload import freeze, modules_since, preload


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that needs its own submodule, and a module that cannot be imported."""
    (tmp_path / "preload_whole").mkdir()
    (tmp_path / "preload_whole" / "__init__.py").write_text("from preload_whole import part")
    (tmp_path / "preload_whole" / "part.py").touch()
    (tmp_path / "preload_broken.py").write_text("raise RuntimeError('not by itself')")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    gc.unfreeze()
    for name in ("preload_whole", "preload_whole.part"):
        sys.modules.pop(name, None)


def test_imported_modules_are_named_in_order_and_a_broken_one_is_left_out(packages: None) -> None:
    before = set(sys.modules)
    preload(["preload_broken", "preload_whole"])
    assert modules_since(before) == ("preload_whole", "preload_whole.part")
    assert "preload_broken" not in sys.modules


def test_the_collector_leaves_alone_what_is_frozen(packages: None) -> None:
    freeze()
    assert gc.get_freeze_count() > 0


def test_a_build_need_not_import_what_an_earlier_one_did(tmp_path: Path) -> None:
    trials = [make_trial(chunk=chunk) for chunk in (1, 2)]
    folders = RunFolders.of_run(tmp_path)
    parent = ForkingWorker(start_trial_worker(examine(trials[0]), folders, "worker.log"))
    for trial, is_imported in zip(trials, (True, False), strict=True):
        worker = ForkedWorker(parent)
        worker.ready()
        figures = worker.ask(Build(trial), trial.limits.build)
        worker.close()
        assert figures.origin == "cold"
        assert (CONVERTER in figures.modules) is is_imported
    parent.close()
