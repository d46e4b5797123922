"""Names of backends become targets, and cases of one name are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness_trials import make_trial

from rnnbench.backends import Probe
from rnnbench.backends.base import Lack
from rnnbench.backends.registry import BackendError
from rnnbench.cases import CaseError, Target, make_case
from rnnbench.plan import check_case_names, installed_backends, targets_of, trials

SECTIONS = {"workload": {"steps": 8, "chunk": 4}, "strategy": {"time": "looped", "state": "stitched"}}
LSTM, GRU = ({"cell": cell, "input": 3, "hidden": 4} for cell in ("lstm", "gru"))
HONEST, WRONG = Target("fake", "honest"), Target("fake", "wrong-bound")


def test_a_name_alone_is_the_default_route_and_a_star_is_every_route():
    assert targets_of(["fake"]) == [HONEST]
    assert targets_of(["fake:wrong-bound"]) == [WRONG]
    routes = targets_of(["fake:*"])
    assert {HONEST, WRONG} < set(routes)
    assert {target.backend for target in routes} == {"fake"}


def test_a_target_that_is_named_twice_is_there_once():
    assert targets_of(["fake", "fake:wrong-bound", "fake:honest"]) == [HONEST, WRONG]


def test_without_names_every_installed_backend_has_its_default_route():
    chosen = targets_of([])
    assert {target.backend for target in chosen} == set(installed_backends())
    assert len(chosen) == len(installed_backends())
    assert HONEST in chosen
    assert "absent" not in installed_backends()


def test_the_baseline_comes_first_and_is_there_once():
    baseline, *others = targets_of(["fake", "numpy"], baseline=True)
    assert baseline.backend == "numpy"
    assert others == [HONEST]
    assert targets_of(["fake"]) == [HONEST], "only where it is asked for"


def test_a_target_that_is_not_installed_is_refused_unless_that_does_not_matter():
    with pytest.raises(BackendError, match=r"absent:honest is not available.*pip install 'rnnbench\[absent\]'"):
        targets_of(["absent"])
    assert targets_of(["absent"], installed=False) == [Target("absent", "honest")]


@pytest.mark.parametrize(
    ("name", "message"),
    [("fakee", "did you mean 'fake'?"), ("fake:honst", "did you mean 'honest'?")],
)
def test_a_name_with_a_typing_mistake_is_refused_with_the_nearest_one(name, message):
    with pytest.raises(BackendError, match=message.replace("?", r"\?")):
        targets_of([name])


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
