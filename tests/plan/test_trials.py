"""Devices that are not here, and cases of one name, are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness_trials import make_trial

from rnnbench.backends import Probe
from rnnbench.backends.base import Lack
from rnnbench.backends.registry import BackendError
from rnnbench.cases import CaseError, make_case
from rnnbench.plan import check_case_names, trials

SECTIONS = {"workload": {"steps": 8, "chunk": 4}, "strategy": {"time": "looped", "state": "stitched"}}
LSTM, GRU = ({"cell": cell, "input": 3, "hidden": 4} for cell in ("lstm", "gru"))


def test_two_cases_of_one_name_are_refused():
    tiny = make_case("tiny", model=LSTM, **SECTIONS)
    check_case_names([tiny, make_case("other", model=LSTM, **SECTIONS)])
    with pytest.raises(CaseError, match="same name, 'tiny'"):
        check_case_names([replace(tiny, path="a.yaml"), replace(tiny, path="b.yaml")])


def test_a_named_backend_without_the_device_says_what_is_missing(monkeypatch):
    lack = Lack("the driver lists none", "apt-get install a-driver")
    monkeypatch.setattr(trials, "probe_or_stand_in", lambda backend: Probe(("r",), devices={"vulkan": lack}))
    trials.require_devices([make_trial()])
    with pytest.raises(BackendError, match=r"fake is not available on vulkan: the driver lists none; .* a-driver"):
        trials.require_devices([replace(make_trial(), device="vulkan")])
