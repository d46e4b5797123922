"""Each package names what others may use, and gives it."""

from __future__ import annotations

from importlib import import_module

import pytest

PACKAGES = ("cases", "conformance", "devices", "fleet", "history", "measure", "model_files", "night", "rnn", "site")


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_of_the_package_is_there(name):
    package = import_module(f"rnnbench.{name}")
    assert all(getattr(package, public) is not None for public in package.__all__)
    assert sorted(public for names in package._NAMES.values() for public in names) == sorted(package.__all__)


@pytest.mark.parametrize("name", PACKAGES)
def test_other_names_are_not(name):
    package = import_module(f"rnnbench.{name}")
    with pytest.raises(AttributeError, match=rf"module 'rnnbench\.{name}' has no attribute 'no_such_name'"):
        _ = package.no_such_name
