import gc
import runpy

import pytest

from rnnbench.worker import process_family, trial_worker


@pytest.fixture
def as_it_was():
    yield
    gc.unfreeze()
    gc.enable()


def test_the_collector_is_on_when_a_worker_starts_and_leaves_out_what_the_suite_imported(monkeypatch, as_it_was):
    seen = []
    monkeypatch.setattr(process_family, "die_with_parent", lambda: None)
    monkeypatch.setattr(trial_worker, "main", lambda: seen.append((gc.isenabled(), gc.get_freeze_count())))
    runpy.run_module("rnnbench.worker", run_name="__main__")
    ((enabled, frozen),) = seen
    assert enabled
    assert frozen > len(vars(trial_worker))
