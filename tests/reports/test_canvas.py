"""A picture stays legible however much it shows: numbers on every axis, a legend that ends within the figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import fake_records as fake
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnbench.reports.canvas import GREY, MOST_NUMBERS, MOST_NUMBERS_BESIDE, Canvas, farthest, subdivision
from rnnbench.reports.drawing import PALETTE, drawing
from rnnbench.reports.panels import arrange
from rnnbench.reports.plots import PROGRAM_COLOURS
from rnnbench.results.record import Record
from rnnbench.results.views import Entry

matplotlib = pytest.importorskip("matplotlib.figure") and pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with drawing("tests"):
        yield


def canvas(records: Sequence[Record], latencies: Sequence[float] = (), colours: Sequence[str] = PALETTE) -> Canvas:
    """With a point for each latency on every panel."""
    entries = [Entry(record, record) for record in records]
    targets = sorted({entry.target for entry in entries})
    made = Canvas(matplotlib, arrange({128: entries}), dict(zip(targets, colours, strict=False)), ("A title",))
    for axis in made.axes.values():
        axis.plot(range(1, len(latencies) + 1), latencies)
    return made


def drawn(made: Canvas) -> Any:
    made._figure.draw_without_rendering()
    return made._figure


def test_no_two_programs_of_twenty_look_alike() -> None:
    """The second program of a colour has a white core: in its lines, in its marks and in the legend."""
    records = [fake.record(f"fake{number:02d}", "ops") for number in range(20)]
    made = canvas(records, colours=PROGRAM_COLOURS)
    made.legend("chunk", {})
    handles = made._figure.legends[0].legend_handles[1:21]
    ((key, lines),) = made.panels.items()
    for number, (line, handle) in enumerate(zip(lines, handles, strict=True)):
        cored = number >= len(PROGRAM_COLOURS) // 2
        assert bool(made.look(line).get("path_effects")) is cored
        assert bool(handle.get_path_effects()) is cored
        drawn_before = len(made.axes[key].lines)
        made.mark(made.axes[key], line, [(1.0, 2.0, line.points[0])])
        assert len(made.axes[key].lines) - drawn_before == 1 + cored
    assert len({made.look(line)["color"] for line in lines}) == len(PROGRAM_COLOURS) // 2


def test_each_program_has_its_number_in_each_panel_and_in_the_legend() -> None:
    """Ten colours are a few greys on paper: a number can be read there, and by everybody."""
    records = [fake.record(f"fake{number}", "ops", time=t) for number in range(3) for t in ("looped", "unrolled")]
    made = canvas(records)
    ((key, lines),) = made.panels.items()
    axis = made.axes[key]
    for place, line in enumerate(lines):
        made.mark(axis, line, [(1.0 + place, 2.0, line.points[0])])
    made.number_programs()
    made.legend("chunk", {})
    assert sorted(text.get_text() for text in axis.texts) == ["1", "2", "3"]
    assert [text.get_text() for text in made._figure.legends[0].get_texts()][1:4] == [
        "1  fake0:ops",
        "2  fake1:ops",
        "3  fake2:ops",
    ]


def test_a_number_stands_where_the_marks_are_farthest() -> None:
    marks = np.array([[50.0, 50.0], [150.0, 50.0]])
    around = [np.array(to) for to in ((9.0, 0.0), (0.0, 9.0), (-9.0, 0.0), (0.0, -9.0))]
    mark, _ = farthest(marks, [*marks, *(marks[0] + to for to in around)])
    assert mark == 1
    _, offset = farthest(marks[1:], [*marks, *(marks[1] + to for to in around[:3])])
    assert offset.tolist() == [0.0, -9.0]
    corner, inward = farthest(np.array([[1.0, 1.0]]), [np.array([1.0, 1.0])])
    assert corner == 0
    assert inward.tolist() in ([9.0, 0.0], [0.0, 9.0]), "not outside of the panel"


def test_a_graph_is_another_line_than_its_stream_and_its_marks_are_half_white() -> None:
    made = canvas([fake.record(), fake.record(launch="graph")])
    made.legend("chunk", {})
    assert [text.get_text() for text in made._figure.legends[0].get_texts()][-3:] == ["launch", "graph", "chunk"]
    ((axis, lines),) = [(made.axes[key], lines) for key, lines in made.panels.items()]
    for line in lines:
        made.mark(axis, line, [(1.0, 2.0, line.points[0])])
    assert [
        (line.launch, drawn_line.get_fillstyle()) for line, drawn_line in zip(lines, axis.lines[-2:], strict=True)
    ] == [
        ("graph", "top"),
        ("stream", "full"),
    ]


def test_a_mark_of_a_shared_measurement_is_hollow() -> None:
    measured = fake.record()
    same = fake.record(time="unrolled", bound=None, same_as=measured.trial)
    made = canvas([measured])
    ((key, (line,)),) = made.panels.items()
    points = [(1.0, 2.0, Entry(measured, measured)), (2.0, 2.0, Entry(same, measured))]
    made.mark(made.axes[key], line, points)
    faces = {float(at): marks.get_markerfacecolor() for marks in made.axes[key].lines for at in marks.get_xdata()}
    assert faces == {1.0: PALETTE[0], 2.0: "white"}


def test_a_long_legend_ends_within_the_figure() -> None:
    made = canvas([fake.record(f"fake{index}", "ops") for index in range(16)])
    made.label("x", "y")
    made.legend("chunk", {str(chunk): dict(GREY) for chunk in (8, 16, 32, 64, 128, 256, 512)})
    figure = drawn(made)
    extent = figure.legends[0].get_window_extent()
    assert extent.y0 >= 0
    assert extent.y1 <= figure.bbox.y1


def test_a_long_name_leaves_the_panels_and_the_legend_apart() -> None:
    made = canvas([fake.record("a" * 150, "$_" * 40), fake.record("fake", "ops")], (1.0, 9.0))
    made.label("x", "y")
    made.legend("chunk", {"1": dict(GREY)})
    figure = drawn(made)
    legend = figure.legends[0].get_window_extent()
    assert legend.x1 <= figure.bbox.x1
    for axis in made.axes.values():
        assert axis.get_window_extent().x1 < legend.x0
        assert axis.get_window_extent().width > legend.width / 2


@pytest.mark.first(3)
@pytest.mark.parametrize(
    "latencies",
    [(94.0, 96.0), (85.0, 190.0), (9.0, 45.0), (22.3, 160.0), (1.9, 15.0), (63.0, 330.0), (0.005, 2.0), (1.0, 9e5)],
)
def test_an_axis_has_numbers_whatever_it_spans(latencies: tuple[float, float]) -> None:
    made = canvas([fake.record()], latencies)
    made.label("x", "y")
    figure = drawn(made)
    axis = figure.axes[0]
    low, high = axis.get_ylim()
    shown = [tick for tick in axis.get_yticks() if low <= tick <= high]
    assert 3 <= len(shown) <= MOST_NUMBERS
    assert shown[0] / low < 2 or high / low > 1e4, "the fastest programs lie beside a number"


@given(st.floats(1e-6, 1e6), st.floats(3, 1e3))
def test_a_logarithmic_axis_has_at_least_three_numbers_and_no_more_than_fit(low: float, factor: float) -> None:
    for most in (MOST_NUMBERS, MOST_NUMBERS_BESIDE):
        powers = [10.0**power for power in range(-7, 10)]
        steps = subdivision(low, low * factor, most)
        assert 3 <= sum(low <= step * power <= low * factor for power in powers for step in steps) <= most


def test_the_layout_is_computed_once_for_both_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = canvas([fake.record()], (1.0, 9.0))
    made.label("x", "y")
    layouts: list[Any] = []
    engine = type(made._figure.get_layout_engine())
    execute = engine.execute
    monkeypatch.setattr(engine, "execute", lambda self, figure: (layouts.append(figure), execute(self, figure)))
    made.save(tmp_path, "picture")
    assert layouts == [made._figure]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["picture.png", "picture.svg"]


def test_a_point_that_is_alone_shows_its_time_where_times_differ() -> None:
    for times, pieces in ((("looped", "unrolled"), 2), (("looped", "looped"), 0)):
        made = canvas([fake.record(time=time, hidden=128) for time in times])
        ((key, lines),) = made.panels.items()
        for line in lines:
            made.join(made.axes[key], line, [1.0], [2.0])
        assert len(made.axes[key].texts) == pieces


def test_the_lines_up_to_p99_are_one_path_with_gaps() -> None:
    made = canvas([fake.record()])
    ((key, lines),) = made.panels.items()
    made.reach(made.axes[key], lines[0], [1, 2], [3.0, 4.0], [5.0, 6.0])
    reach = made.axes[key].lines[-1]
    np.testing.assert_array_equal(reach.get_xdata(), [1, 1, np.nan, 2, 2, np.nan])
    np.testing.assert_array_equal(reach.get_ydata(), [3, 5, np.nan, 4, 6, np.nan])


def test_labels_stand_in_the_middle_of_the_panels(tmp_path: Path) -> None:
    made = canvas([fake.record(hidden=hidden) for hidden in (64, 128)], (1.0, 9.0))
    made.label("x", "y")
    made.legend("latency", {})
    made.save_as(tmp_path / "picture.png")
    boxes = [axis.get_position() for axis in made.axes.values()]
    below, beside = made._figure._supxlabel, made._figure._supylabel
    assert below.get_position()[0] == pytest.approx((min(b.x0 for b in boxes) + max(b.x1 for b in boxes)) / 2)
    assert beside.get_position()[1] == pytest.approx((min(b.y0 for b in boxes) + max(b.y1 for b in boxes)) / 2)
