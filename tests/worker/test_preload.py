"""What a build had to import is there for the next one, where trials take turns in a worker."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness_trials import make_trial
from rnnbench_fake import CONVERTER

from rnnbench.run.preload import modules, modules_since, preload
from rnnbench.run.prepare import examine, start_worker
from rnnbench.run.process import Workplace


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


def test_what_was_imported_is_named_in_order_and_what_fails_is_left(packages: None) -> None:
    before = set(modules())
    preload(["preload_broken", "preload_whole"])
    assert modules_since(before) == ["preload_whole", "preload_whole.part"]
    assert "preload_broken" not in sys.modules


def test_the_collector_leaves_alone_what_is_preloaded(packages: None) -> None:
    preload([])
    assert gc.get_freeze_count() > 0


def test_a_build_need_not_import_what_an_earlier_one_did(tmp_path: Path) -> None:
    trials = [make_trial(chunk=chunk) for chunk in (1, 2)]
    worker = start_worker(examine(trials[0]), Workplace.of_run(tmp_path), "worker.log")
    worker.ready()
    needed: list[str] = []
    for trial, expected in zip(trials, (True, False), strict=True):
        worker.fork(needed)
        worker.ask("build", trial, trial.limits.build)
        needed = worker.end()
        assert (CONVERTER in needed) is expected
    worker.close()
