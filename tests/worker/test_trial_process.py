"""Which trials may share a worker, and the environment that a worker gets."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from cores_in_turn import cores_of_slot, last_cores
from harness_trials import make_trial

from rnnbench.plan import examine
from rnnbench.worker import by_worker, log_name, trial_process, variables, worker_cores, worker_key


def test_trials_share_a_worker_where_backend_threads_and_environment_are_the_same():
    honest, other = examine(make_trial()), examine(make_trial(chunk=2))
    assert worker_key(honest) == worker_key(other)
    assert worker_key(honest) != worker_key(examine(make_trial("numpy:eager")))
    assert worker_key(honest) != worker_key(replace(honest, trial=replace(honest.trial, device="vulkan")))
    assert worker_key(honest) != worker_key(examine(make_trial("fake:wrong-bound"))), "its environment differs"
    assert worker_key(honest) != worker_key(replace(honest, trial=replace(honest.trial, threads=2)))
    elsewhere = replace(honest, support=replace(honest.support, interpreter="/other/python"))
    assert worker_key(honest) != worker_key(elsewhere)
    numpy = examine(make_trial("numpy:eager"))
    assert by_worker([(honest, 1), (numpy, 2), (other, 3)]) == [[1, 3], [2]]


def test_the_reference_s_products_run_on_one_thread_and_a_backend_may_set_other_values():
    honest = examine(replace(make_trial(), threads=2))
    assert variables(honest) == {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "2", "RNNBENCH_FAKE": "honest"}
    own = replace(honest, support=replace(honest.support, environment={"OMP_NUM_THREADS": "7"}))
    assert variables(own)["OMP_NUM_THREADS"] == "7"


def test_workers_of_test_processes_side_by_side_have_different_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2})
    assert [cores_of_slot(1, slot) for slot in range(4)] == [[2], [1], [0], [2]]
    assert cores_of_slot(2, 1) == [0, 1]
    assert cores_of_slot(2, 0) == last_cores(2) == [1, 2]


def test_a_worker_has_the_last_cores_and_a_log_of_its_trial():
    (core,) = last_cores(1)
    assert core == max(last_cores(64))
    trial = make_trial()
    assert log_name(trial) == f"{trial.digest}.log"


@pytest.mark.parametrize(("device", "count"), [("cpu", 1), ("cuda", 3), ("vulkan", 3)])
def test_a_driver_s_threads_have_cores_beside_that_of_the_caller(monkeypatch, device, count):
    """On one core a third of IREE's calls took 4 to 8 ms more, probably for its driver's thread (docs/devices.md)."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    monkeypatch.setattr(trial_process, "last_cores", last_cores)
    assert worker_cores(replace(make_trial(), device=device)) == tuple(range(8))[-count:]
