"""The parts of pages: commands, figures in data files, drawings, documents, addresses."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import fake_records as fake
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnbench.results import CheckResult, LatencyFloor, Run, read_run, view_runs
from rnnbench.site.anatomy import FLOOR, ONCE, ONE_PROCESS, call_parts, distribution, preparation_parts, span_of
from rnnbench.site.content import command_of
from rnnbench.site.fastest import level
from rnnbench.site.method import html_of, slug_of
from rnnbench.site.numbers import Numbered, scaled, scaled_each, whole
from rnnbench.site.page import issue_address, script_json, with_whole_figures
from rnnbench.site.sparkline import HEIGHT, sparkline
from rnnbench.site.trial_page import check_words

FIGURES = st.lists(st.none() | st.floats(1e-9, 1e6), max_size=6)


def entry_and_run(tmp_path, *command: str):
    run: Run = read_run(fake.write_run(tmp_path / "run", [fake.record()], command=command))
    return view_runs([run]).entries[0], run


def test_the_command_of_a_trial_has_the_file_and_the_settings_of_its_run(tmp_path):
    entry, run = entry_and_run(tmp_path, "rnnbench", "run", "a/fake_case.yaml", "b.yaml", "--set", "x=1 2", "--set=y=3")
    digits = entry.record.trial.rpartition("-")[2]
    command = f"rnnbench run a/fake_case.yaml --set 'x=1 2' --set=y=3 --backend=fakelib:ops --only={digits}"
    assert command_of(entry, run) == command


def test_a_build_of_an_earlier_run_has_its_day():
    record = fake.record()
    earlier = record.timing.model_copy(update={"built": "2026-11-01T02:03:04Z"})
    assert preparation_parts(record)[0].name == "build"
    assert preparation_parts(record.model_copy(update={"timing": earlier}))[0].name == "build, 2026-11-01"


def test_a_time_without_an_interval_says_why():
    record = fake.record(floor=LatencyFloor(nbytes=1, operations=1, weights=1, hoisted=None, level="L2", seconds=1e-6))
    of_calls = {part.name: part.why_none for part in call_parts(record)}
    assert of_calls == {"latency floor": FLOOR, "bound": ONE_PROCESS, "public": ONE_PROCESS}
    assert {part.why_none for part in preparation_parts(record)} == {ONCE}


@pytest.mark.parametrize(
    ("verdict", "detail", "words"),
    [
        ("pass", "503 of 4,000 kept outputs in its 0.03 s", "503 of 4,000 kept outputs in its 0.03 s; a pass needs 17"),
        ("fail", "output 3 changed", "output 3 changed; 503 of 4,000 repetitions; a pass needs 17"),
    ],
)
def test_a_check_says_its_repetitions_once(verdict, detail, words):
    figures = {"done": 503.0, "planned": 4000.0, "least": 17.0}
    assert check_words(CheckResult(verdict=verdict, detail=detail, figures=figures)) == words
    assert check_words(CheckResult(verdict="fail", figures={"growth": 0.25})) == "growth 0.250"


def test_the_command_of_a_case_that_the_run_does_not_name_guesses_its_file(tmp_path):
    entry, run = entry_and_run(tmp_path, "rnnbench", "run", "cases/")
    assert command_of(entry, run).startswith("rnnbench run cases/fake_case.yaml --backend=")


@given(FIGURES, FIGURES)
def test_integers_with_a_scale_keep_four_digits_of_every_figure(first, second):
    power, columns = scaled(first, second)
    for column, values in zip(columns, (first, second), strict=True):
        for integer, value in zip(column, values, strict=True):
            assert (integer is None) == (value is None)
            if value is not None and integer is not None:
                assert math.isclose(integer * 10.0**power, value, rel_tol=1e-4)


@given(st.lists(st.tuples(FIGURES, FIGURES), max_size=4))
def test_groups_of_columns_are_scaled_as_if_each_were_alone(groups):
    assert scaled_each(groups) == [scaled(*columns) for columns in groups]


def test_data_files_keep_each_figure_of_a_record():
    values = [9.72496e-6, 1 / 3, 0.01295022398699075]
    assert json.loads(script_json(values)) == values
    assert whole([104_857_600.0, None, math.inf]) == (0, [[104_857_600, None, None]])


def test_figures_that_are_none_are_none_in_data_files():
    assert scaled([math.nan, 1.0, None, math.inf]) == (-4, [[None, 10_000, None, None]])
    assert scaled([1e-320, -1e308]) == (-300, [[0, None]])
    assert json.loads(script_json([math.nan, 1.0, math.inf])) == [None, 1.0, None]


def test_data_files_hold_any_text_as_text():
    text = "</script>\u2028\ud800\x00\u202e"
    written = script_json({text: [text]})
    assert written.isascii()
    assert "<" not in written
    assert json.loads(written)[text] == ["</script> \\ud800\\x00\\u202e"]


def test_no_line_ends_between_a_number_and_its_unit():
    page = "<p>7.7 % of 3.2 µs, 16 steps, 4 GiB</p><pre>5 % 3</pre> 1 ms"
    assert with_whole_figures(page) == "<p>7.7\xa0% of 3.2\xa0µs, 16 steps, 4\xa0GiB</p><pre>5 % 3</pre> 1\xa0ms"


def test_texts_are_numbered_once():
    numbered = Numbered()
    assert [numbered(text) for text in ("b", "a", "b")] == [0, 1, 0]
    assert numbered.values == ["b", "a"]


@pytest.mark.parametrize(
    ("upstream", "address"),
    [
        ("onnx/onnx#7", "https://github.com/onnx/onnx/issues/7"),
        ("https://github.com/llvm/torch-mlir/pull/3447", "https://github.com/llvm/torch-mlir/pull/3447"),
        ("javascript:alert(1)", ""),
        ('https://x.example/" onclick="a', ""),
        ("http://plain.example/a", ""),
        ("", ""),
    ],
)
def test_only_issues_and_https_addresses_become_links(upstream, address):
    assert issue_address(upstream) == address


def test_a_distribution_is_drawn_in_order_and_within_its_axis():
    drawn = distribution("bound", fake.latency(1e-4).model_copy(update={"interval": (9.5e-5, 1.05e-4)}))
    assert drawn is not None
    places = [mark.at for mark in drawn.marks]
    assert places == sorted(places)
    assert [mark.name for mark in drawn.marks] == ["min", "median", "p90", "p99", "max"]
    assert 0 < places[0] < places[-1] < 100
    assert drawn.interval
    assert drawn.interval[0].at < places[1] < drawn.interval[1].at


@given(st.lists(st.floats(1e-6, 1e-2), min_size=5, max_size=5).map(sorted))
def test_names_of_a_distribution_do_not_touch_and_its_ends_and_median_are_named(values):
    figures = dict(zip(("min", "median", "p90", "p99", "max"), values, strict=True))
    drawn = distribution("bound", fake.latency(1e-4).model_copy(update={**figures, "process_medians": ()}))
    assert drawn is not None
    for height in (14, 29):
        row = sorted((mark for mark, y in drawn.names if y == height), key=lambda mark: mark.at)
        assert all(span_of(before)[1] < span_of(after)[0] for before, after in pairwise(row))
    assert {"min", "median"} <= {mark.name for mark, _ in drawn.names}


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_a_distribution_that_cannot_be_is_not_drawn(value):
    assert distribution("bound", fake.latency(1e-4).model_copy(update={"min": value})) is None


def test_p99_is_drawn_of_enough_samples_only():
    drawn = distribution("bound", fake.latency(1e-4).model_copy(update={"count": 99}))
    assert drawn
    assert "p99" not in [mark.name for mark in drawn.marks]


def test_parts_of_a_call_are_those_that_were_measured():
    parts = call_parts(fake.record(bound=1e-4))
    assert [part.name for part in parts] == ["bound", "public"]
    assert parts[1].width == pytest.approx(100)
    assert call_parts(fake.record(outcome="unsupported")) == []


def test_colours_change_at_the_ratios_of_the_legend():
    assert [level(times) for times in (1.0, 1.03, 1.2, 1.25, 3.0, 100.0)] == [0, 1, 1, 2, 3, 5]


def test_a_sparkline_needs_two_values_and_says_their_range():
    assert sparkline([1.0, None]) is None
    made = sparkline([1.0, None, 3.0, 2.0])
    assert made is not None
    assert made[1:] == [1.0, 3.0]
    assert len(str(made[0]).split()) == 3


def test_a_sparkline_fills_its_height_and_one_that_does_not_move_lies_in_its_middle():
    heights = [int(point.split(",")[1]) for point in str((sparkline([1.0, 3.0, 2.0]) or [""])[0]).split()]
    assert heights == [HEIGHT - 1, 1, HEIGHT // 2]
    level = [int(point.split(",")[1]) for point in str((sparkline([2.0, 2.0]) or [""])[0]).split()]
    assert level == [HEIGHT // 2, HEIGHT // 2]


def test_noise_of_one_per_cent_is_a_sparkline_that_is_almost_flat():
    heights = [int(point.split(",")[1]) for point in str((sparkline([1.0, 1.01, 1.0]) or [""])[0]).split()]
    assert max(heights) - min(heights) <= 1


def test_a_cell_without_text_is_no_heading_of_a_column() -> None:
    html = str(html_of("| | a |\n|---|---|\n| b | c |", set()))
    assert "<td></td>\n<th>a</th>" in html


def test_documents_show_html_as_text_and_link_to_pages_of_the_site_only():
    html = str(html_of("# A b\n\n<b>x</b> [in](history.md#a) [out](../suite/x.py) ![p](x.png)\n\n## A b", {"history"}))
    assert '<h1 id="a-b">' in html
    assert '<h2 id="a-b-1">' in html
    assert "&lt;b&gt;x" in html
    assert '<a href="method-history.html#a">in</a> out [p]' in html


def test_anchors_are_those_of_github():
    assert slug_of("The `flat` row, and more") == "the-flat-row-and-more"
