"""The targets that a user names, and the backends that every table compares with."""

from __future__ import annotations

from dataclasses import replace

import pytest
from unasked import unasked_adapters

from rnnbench.backends import BackendError, find, registry
from rnnbench.backends.answers import CheckedBackend
from rnnbench.cases import Target
from rnnbench.plan import baselines, targets


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
        targets(["nunpy"])
    with pytest.raises(BackendError, match="unknown route 'numpy:eagre'; did you mean 'eager'"):
        targets(["numpy:eagre"])
    with pytest.raises(BackendError, match=r"'numpy:' names no route; expected numpy, numpy:\* or numpy:eager"):
        targets(["numpy:"])
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
            assert targets(["fake"], reading=formats) == [Target("fake", route) for route in routes]
        assert targets(["fake:first"], reading=("onnx",)) == [Target("fake", "first")]
