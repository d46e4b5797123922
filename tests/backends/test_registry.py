"""The backends that are registered, and which of them every table compares with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rnnbench.backends import registry
from rnnbench.backends.base import Backend
from rnnbench.backends.registry import BackendError
from rnnbench.cases.trial import Target


def test_numpy_is_the_baseline() -> None:
    assert registry.baselines() == [Target("numpy", "eager")]


def test_a_backend_that_cannot_be_loaded_is_no_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    find = registry.find

    def broken(name: str) -> Backend:
        if name == "broken":
            raise BackendError("backend 'broken' cannot be loaded")
        return find(name)

    monkeypatch.setattr(registry, "find", broken)
    monkeypatch.setattr(registry, "names", lambda: ["broken", "numpy"])
    assert registry.baselines() == [Target("numpy", "eager")]


def test_another_backend_may_declare_itself_a_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    find = registry.find

    class Another:
        name = "another"

        def probe(self):
            return replace(find("numpy").probe(), routes=("first", "second"))

    monkeypatch.setattr(registry, "names", lambda: ["another", "numpy"])
    monkeypatch.setattr(registry, "find", lambda name: Another() if name == "another" else find(name))
    assert registry.baselines() == [Target("another", "first"), Target("numpy", "eager")]
