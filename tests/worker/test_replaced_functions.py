"""Functions and constants that a program puts its own in place of are named by their full names, and put back."""

from __future__ import annotations

import builtins
import sys
from itertools import count
from threading import Event, Thread
from types import ModuleType

import numpy as np
import pytest
from quick_tests import runs_all
from waiting import PATIENCE_S

from rnnbench.conformance import tolerance
from rnnbench.measure import blocks
from rnnbench.worker.replaced_functions import Functions


@pytest.fixture
def functions():
    functions = Functions()
    assert functions.replaced() == ()
    yield functions
    functions.put_back()


@pytest.mark.parametrize(
    ("owner", "name", "full"),
    [
        (np, "abs", "numpy.abs"),
        (builtins, "sorted", "builtins.sorted"),
        (blocks, "_time_calls", "rnnbench.measure.blocks._time_calls"),
        (blocks, "time", "rnnbench.measure.blocks.time"),
        (tolerance.Errors, "add", "rnnbench.conformance.tolerance.Errors.add"),
        (tolerance, "FACTOR", "rnnbench.conformance.tolerance.FACTOR"),
    ],
)
def test_another_function_or_constant_is_named_and_put_back(functions, owner, name, full):
    original = getattr(owner, name)
    setattr(owner, name, lambda *given: None)
    assert functions.replaced() == (full,)
    functions.put_back()
    assert functions.replaced() == ()
    assert getattr(owner, name) is original


def test_a_name_that_is_gone_is_put_back_too(functions):
    absolute = np.absolute
    del np.absolute
    assert functions.replaced() == ("numpy.absolute",)
    functions.put_back()
    assert np.absolute is absolute


def test_another_module_of_python_is_named_and_put_back_and_one_that_is_gone_is_imported_anew(functions, monkeypatch):
    json = sys.modules["json"]
    monkeypatch.setitem(sys.modules, "json", ModuleType("json"))
    assert functions.replaced() == ("sys.modules.json",)
    functions.put_back()
    assert sys.modules["json"] is json
    monkeypatch.delitem(sys.modules, "json")
    assert functions.replaced() == ()


def test_a_module_of_the_suite_is_taken_up_when_it_is_first_seen(functions, monkeypatch):
    module = ModuleType("rnnbench.seen_later")
    module.judge, module.counter = lambda: 1, 0
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert functions.replaced() == ()
    module.counter, module.added = 5, lambda: 3
    assert functions.replaced() == (), "values may change and names may come"
    module.judge = lambda: 2
    assert functions.replaced() == ("rnnbench.seen_later.judge",)


def test_another_thread_may_import_modules_meanwhile(functions):
    """As OpenVINO's threads do: a dictionary must not be walked through while it grows."""
    stop = Event()

    def imports() -> None:
        for number in count():
            if stop.is_set():
                return
            name = f"imported_meanwhile_{number % 1000}"
            if sys.modules.pop(name, None) is None:
                sys.modules[name] = ModuleType(name)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    importer = Thread(target=imports)
    importer.start()
    try:
        for _ in range(300 if runs_all() else 60):
            assert functions.replaced() == ()
    finally:
        stop.set()
        importer.join(PATIENCE_S)
        sys.setswitchinterval(interval)
        for name in [name for name in sys.modules if name.startswith("imported_meanwhile_")]:
            del sys.modules[name]
