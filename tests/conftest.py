"""Puts the fake backend's distribution on the path, and makes what tests see the same wherever they run.

Hypothesis draws the same examples every time, with no limit of time for one: a failure is then of the change that it
comes with. `pytest --hypothesis-profile=explore` draws others, and more of them where a test does not say how many.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

FAKE = str(Path(__file__).parent / "fake")

sys.path.insert(0, FAKE)
from cores_in_turn import take_cores_in_turn  # noqa: E402 it lies in FAKE
from quick_tests import EXAMPLES, left_out, runs_all  # noqa: E402

os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [FAKE, os.environ.get("PYTHONPATH")]))

STRANGERS = (
    *("CI", "BUILD_NUMBER", "PYTEST_ADDOPTS", "COLUMNS", "LINES", "TERM", "COLORTERM"),
    *("NO_COLOR", "FORCE_COLOR", "PY_COLORS", "CLICOLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
)
"""Variables of a terminal or a CI service, by which pytest, rich and click choose width, colour and length."""
for name in STRANGERS:
    os.environ.pop(name, None)

HASTY = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
"""What Hypothesis is not to fail for: a slow machine, and fixtures that examples may share."""
settings.register_profile("explore", max_examples=125, deadline=None, suppress_health_check=HASTY)
settings.register_profile(
    "suite", settings.get_profile("explore"), max_examples=EXAMPLES, derandomize=True, database=None
)
settings.load_profile("suite")

providers._get_local_constants = lambda: providers._local_constants
"""None. Hypothesis would read the source of each module of the suite for constants, again in each process, and draw
other examples wherever other modules are imported.
"""

os.environ["RNNBENCH_CACHE"] = os.path.join(tempfile.gettempdir(), "rnnbench-tests-have-no-cache")
os.environ["RNNBENCH_CACHE_SIZE"] = "0"
"""Runs of tests build all that they use, and leave the user's cache alone. Tests of the cache set their own."""

take_cores_in_turn()

os.fsync = lambda descriptor: None
"""Each takes 5 to 15 ms of the disk, and no test ends the power. Commands in processes of their own call the real one.

A test of what is on the disk when a call returns has a function of its own in its place.
"""

gc.disable()
"""Until all tests are collected. What is imported for them stays, and the collector would visit it again and again."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without RNNBENCH_TEST_ALL=1, no test that is for a proof alone. The backends choose those of a job before."""
    if not runs_all():
        left = left_out(items)
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]


def pytest_collection_finish() -> None:
    gc.enable()


@pytest.fixture(scope="module")
def forked_workers() -> Iterator[None]:
    """Workers of this module's tests are forked, and import nothing: see `fake/forked_workers.py`."""
    from forked_workers import fork_workers

    with pytest.MonkeyPatch.context() as patch:
        fork_workers(patch)
        yield


@pytest.fixture(scope="module")
def few_checks(forked_workers: None) -> Iterator[None]:
    """Workers of this module's tests are forked, and make a few of the checks: see `fake/few_checks.py`."""
    from few_checks import make_few_checks

    with pytest.MonkeyPatch.context() as patch:
        make_few_checks(patch)
        yield


@pytest.fixture
def own_segments(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of shared memory that this process takes for the machine's: a neighbour makes its segments elsewhere."""
    from rnnbench.measure import SharedSegments, descendants, memory

    with tempfile.TemporaryDirectory(prefix="rnnbench-test-", dir=descendants._SEGMENTS) as folder:
        monkeypatch.setattr(descendants, "_SEGMENTS", Path(folder))
        segments = SharedSegments()
        monkeypatch.setattr(descendants, "SEGMENTS", segments)
        monkeypatch.setattr(memory, "SEGMENTS", segments)
        yield Path(folder)


atexit.register(gc.unfreeze)
"""Tests and commands freeze objects of this process, which extension modules would report as leaks.

Not before its end: pytest's last collections would visit all of a framework, half a second of the processor."""
