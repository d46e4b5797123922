"""The clock that imports run under."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator

import pytest
from waiting import join

from rnnbench.measure import ImportClock

now = 0.0
"""What the clock under test shows; the modules below advance it as they are imported."""


@pytest.fixture
def modules(tmp_path, monkeypatch) -> Iterator[None]:
    advance = f"import sys; sys.modules[{__name__!r}].now += "
    (tmp_path / "clocked_inner.py").write_text(advance + "10")
    (tmp_path / "clocked_outer.py").write_text(advance + "1; import clocked_inner")
    (tmp_path / "clocked_broken.py").write_text(advance + "2; raise ValueError('broken')")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("clocked_inner", "clocked_outer", "clocked_broken"):
        sys.modules.pop(name, None)


def shown() -> float:
    return now


def test_an_import_counts_once_with_all_that_it_imports(modules) -> None:
    with ImportClock(shown) as clock:
        importlib.import_module("clocked_outer")
    assert clock.seconds == 11


def test_what_is_imported_already_takes_nothing(modules) -> None:
    importlib.import_module("clocked_outer")
    with ImportClock(shown) as clock:
        importlib.import_module("clocked_outer")
    assert clock.seconds == 0


def test_an_import_that_fails_counts_and_fails_as_it_would(modules) -> None:
    with ImportClock(shown) as clock, pytest.raises(ValueError, match="broken"):
        importlib.import_module("clocked_broken")
    assert clock.seconds == 2


def test_what_another_thread_imports_is_not_waited_for(modules) -> None:
    with ImportClock(shown) as clock:
        thread = threading.Thread(target=importlib.import_module, args=("clocked_outer",))
        thread.start()
        join(thread)
    assert clock.seconds == 0


def test_nothing_of_it_is_left_behind(modules) -> None:
    before = list(sys.meta_path)
    with ImportClock(shown):
        importlib.import_module("clocked_outer")
    assert sys.meta_path == before
    assert not {"create_module", "exec_module"} & vars(sys.modules["clocked_outer"].__loader__).keys()
