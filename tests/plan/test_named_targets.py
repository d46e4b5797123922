"""The targets that a user names, and the backends that every table compares with."""

from __future__ import annotations

from dataclasses import replace

import pytest
from unasked import unasked_adapters

from rnnbench.backends import BackendError, find, registry
from rnnbench.backends.answers import CheckedBackend
from rnnbench.cases import Target
from rnnbench.plan import baselines, installed_backends, named_targets, parse_targets, targets_of
from rnnbench.plan.adapters import STAND_IN

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


def test_numpy_is_the_baseline() -> None:
    assert baselines() == [Target("numpy", "eager")]


def test_a_backend_that_fails_to_answer_is_no_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    with unasked_adapters():
        monkeypatch.setattr(find("fake")._adapter, "probe", lambda: None, raising=False)
        assert baselines() == [Target("numpy", "eager")]


@pytest.mark.proof
def test_another_backend_may_declare_itself_a_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    with unasked_adapters():
        fake = find("fake")
        assert isinstance(fake, CheckedBackend)
        another = replace(fake.probe(), routes=("first", "second"), baseline=True)
        monkeypatch.setattr(fake._adapter, "probe", lambda: another, raising=False)
        assert baselines() == [Target("fake", "first"), Target("numpy", "eager")]


def test_an_unknown_name_is_told_with_the_nearest_one() -> None:
    with pytest.raises(BackendError, match="unknown backend 'nunpy'; did you mean 'numpy'"):
        parse_targets(["nunpy"])
    with pytest.raises(BackendError, match="unknown route 'numpy:eagre'; did you mean 'eager'"):
        parse_targets(["numpy:eagre"])
    with pytest.raises(BackendError, match=r"'numpy:' names no route; expected numpy, numpy:\* or numpy:eager"):
        parse_targets(["numpy:"])
    assert "fake" in registry.names()


def test_a_name_alone_is_for_each_format_the_first_route_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with unasked_adapters():
        fake = find("fake")
        assert isinstance(fake, CheckedBackend)
        reads = {"second": ("onnx", "pt2"), "third": ("onnx", "keras")}
        another = replace(fake.probe(), routes=("first", "second", "third"), reads=reads)
        monkeypatch.setattr(fake._adapter, "probe", lambda: another, raising=False)
        for formats, routes in (
            (("onnx",), ["second"]),
            (("keras", "onnx"), ["third", "second"]),
            (("h5",), ["first"]),
        ):
            assert parse_targets(["fake"], reading=formats) == [Target("fake", route) for route in routes]
        assert parse_targets(["fake:first"], reading=("onnx",)) == [Target("fake", "first")]


def test_of_an_adapter_that_does_not_answer_the_named_route_is_taken(monkeypatch):
    monkeypatch.setattr(named_targets, "probe_or_stand_in", lambda name: STAND_IN)
    targets = parse_targets(["fake:honest", "fake", "fake:*"])
    assert targets == [Target("fake", "honest"), Target("fake", "default")]
