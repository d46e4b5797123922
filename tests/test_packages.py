"""Each package gives the names that it lists, and no others. Where it lists its modules, it lists all of them."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import iter_modules

import pytest

PACKAGES = (
    *("backends", "cases", "conformance", "devices", "explain", "fidelity", "fleet", "history", "measure"),
    *("model_files", "night", "pipeline", "plan", "reports", "results", "rnn", "sampling", "site", "worker"),
)
WITH_A_LIST = ("explain", "fidelity", "fleet", "history", "night", "pipeline", "plan", "results", "sampling", "worker")


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_of_the_package_is_there(name):
    package = import_module(f"rnnbench.{name}")
    assert package.__all__
    assert all(getattr(package, public) is not None for public in package.__all__)


@pytest.mark.parametrize("name", PACKAGES)
def test_no_name_of_the_package_is_that_of_a_module_of_it(name):
    """Once the module is imported, the name would mean the module."""
    package = import_module(f"rnnbench.{name}")
    modules = {module.name for module in iter_modules(package.__path__)}
    assert modules & set(package.__all__) == set()


@pytest.mark.parametrize("name", PACKAGES)
def test_a_name_that_a_package_does_not_offer_is_an_attribute_error(name):
    package = import_module(f"rnnbench.{name}")
    with pytest.raises(AttributeError, match=rf"module 'rnnbench\.{name}' has no attribute 'no_such_name'"):
        _ = package.no_such_name


@pytest.mark.parametrize("name", WITH_A_LIST)
def test_the_list_of_modules_has_every_module(name):
    package = import_module(f"rnnbench.{name}")
    modules = {module.name for module in iter_modules(package.__path__)} - {"__main__"}
    assert modules - set(re.findall(r"\w+", package.__doc__)) == set()
