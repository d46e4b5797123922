"""Releases of the committed backfill: changes are said, releases are drawn, and figures lead to their rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("duckdb")

from rnnbench.history import History, release_changes, release_series
from rnnbench.site import write_site
from rnnbench.site.content import Content, read_content
from rnnbench.site.releases import MARGIN, backfills_of, release_charts

HISTORY = Path(__file__).parents[2] / "results" / "releases"


@pytest.fixture(scope="module")
def content() -> Content:
    return read_content([], History(HISTORY))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("site")
    write_site([], History(HISTORY), root)
    return root


def test_what_changed_is_what_the_history_says(content):
    told = [news for backfill in backfills_of(content) for news in backfill.news]
    changes = list(release_changes(release_series(History(HISTORY))))
    assert len(told) == len(changes) > 0
    assert {(news.release, news.trial) for news in told} == {(step.after, series.trial) for series, step in changes}
    said = re.compile(r"latency [-+]\d+\.\d % \([-+]\d+\.\d % to [-+]\d+\.\d %\) against")
    assert all(said.search(each.sentence) for each in told)


def test_packages_with_a_change_come_first_and_what_was_not_measured_has_its_reason(content):
    backfills = backfills_of(content)
    assert [bool(backfill.news) for backfill in backfills] == sorted((bool(b.news) for b in backfills), reverse=True)
    openvino = next(backfill for backfill in backfills if backfill.package == "openvino")
    assert ("2024.0.0", "build-failed: the wheel of this OpenVINO has no C library (libs/libopenvino_c.*)") in (
        openvino.missing
    )


def test_intervals_are_drawn_in_order_and_within_their_drawing(content):
    charts = release_charts(content.releases)
    places = [row.places for chart in charts for row in chart.rows if row.places]
    assert len(places) > 100
    assert all(0 <= low <= at <= high <= 100 for low, at, high in places)
    for chart in charts:
        if at := [chart.one, *(place for row in chart.rows if row.places for place in row.places)]:
            assert min(at) == pytest.approx(MARGIN)
            assert max(at) == pytest.approx(100 - MARGIN) or chart.high < 1.02 * chart.low


def test_trials_of_a_backfill_have_pages_and_stand_in_no_ranking(content):
    assert content.machines == ()
    assert {shown.entry.record.backend for m in content.backfills for shown in m.shown.values()} == {
        "jax",
        "onnxruntime",
        "openvino",
    }


def test_the_page_of_a_trial_has_every_release_and_leads_to_their_rows(content, site):
    for (machine, trial), series in content.releases_of.items():
        page = content.pages[machine, trial]
        text = (site / "trials" / f"{page}.html").read_text(encoding="utf-8")
        assert all(point.version in text for each in series for point in each.points)
        assert "its 99.0\N{NO-BREAK SPACE}% interval over pairs of processes" in text
        rows = json.loads((site / "records" / f"{page}-releases.json").read_text())
        assert {row["trial"] for row in rows} == {trial}
        assert len(rows) >= len(series[0].points)


def test_pages_without_runs_say_so(site):
    for name in ("compare", "chooser", "conformance", "index"):
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        assert re.search(r"made without runs|No program was ranked", text), name
