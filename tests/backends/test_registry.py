"""A backend is found by its name, and a name that two packages have is no one's."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
from unasked import unasked_adapters

from rnnbench.backends import BackendError, entry_of, registry

OWN = EntryPoint("numpy", "rnnbench.backends.numpy:NumpyBackend", registry.GROUP)
OTHER = EntryPoint("numpy", "my_package:ToyBackend", registry.GROUP)


def test_a_name_of_two_packages_is_refused_whichever_is_found_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for entries in ([OWN, OTHER], [OTHER, OWN]):
        monkeypatch.setattr(registry, "entry_points", lambda group, entries=entries: entries)
        told = "several packages have a backend 'numpy': my_package:ToyBackend, rnnbench.backends.numpy:NumpyBackend"
        with unasked_adapters(), pytest.raises(BackendError, match=told):
            entry_of("numpy")


def test_a_package_that_is_found_twice_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: [OWN, OWN])
    with unasked_adapters():
        assert entry_of("numpy") == OWN
