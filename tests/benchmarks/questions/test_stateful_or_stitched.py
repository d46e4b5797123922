"""Who carries the state changes little; a core holds streams (minutes; docs/questions/stateful-or-stitched.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from question_pages import run_page

from rnnbench.results import Row

PERIOD_S = 0.010
LEAST_HELD = 2
"""The page: one core holds 2 streams in the runtime that holds the fewest."""
ALIKE = 1.5
"""How far the two kinds of state may be apart in one runtime: both read the weights, which is most of a call."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder: Path = tmp_path_factory.mktemp("stateful-or-stitched")
    return run_page("stateful-or-stitched", folder, "--filter", "backend=iree|onnxruntime|openvino|numpy")


def figure(row: Row, name: str) -> float:
    return float(row[name])  # type: ignore[arg-type]


def test_the_two_kinds_of_state_take_about_as_long(rows: list[Row]) -> None:
    by_target: dict[str, dict[str, float]] = {}
    for row in rows:
        by_target.setdefault(str(row["backend"]), {})[str(row["state"])] = figure(row, "bound_median_s")
    for calls in by_target.values():
        assert 1 / ALIKE < calls["stateful"] / calls["stitched"] < ALIKE


def test_a_core_holds_several_streams_and_no_more_than_calls_fit_into_the_period(rows: list[Row]) -> None:
    for row in rows:
        fit = PERIOD_S / figure(row, "bound_min_s")
        assert LEAST_HELD <= figure(row, "streams_held") <= fit
        assert figure(row, "streams_p99_s") <= PERIOD_S


def test_what_one_core_is_asked_for_waits_in_the_queue_only_a_little(rows: list[Row]) -> None:
    for row in rows:
        assert figure(row, "server_utilisation") < 0.5
        assert figure(row, "server_median_s") < 2 * figure(row, "bound_median_s") + 1e-3
