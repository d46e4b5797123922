"""What the pictures of latencies show: chunks or times, in a unit that fits, and the fastest program where it was."""

from __future__ import annotations

from typing import Any

import fake_records as fake
import pytest

from rnnbench.reports.canvas import BEST, Canvas
from rnnbench.reports.drawing import PALETTE
from rnnbench.reports.panels import arrange
from rnnbench.reports.plots import draw_latencies
from rnnbench.results.record import Record
from rnnbench.results.views import Entry

matplotlib = pytest.importorskip("matplotlib.figure") and pytest.importorskip("matplotlib")


def drawn(*records: Record) -> tuple[Canvas, Any]:
    """The canvas, and its one panel."""
    entries = [Entry(record, record) for record in records]
    targets = sorted({entry.target for entry in entries})
    canvas = Canvas(matplotlib, arrange({128: entries}), dict(zip(targets, PALETTE, strict=False)), ("A title",))
    draw_latencies(canvas, "bound")
    (axis,) = canvas.axes.values()
    return canvas, axis


def numbers(axis: Any) -> list[str]:
    return [text.get_text() for text in axis.get_xticklabels()]


def test_several_chunks_are_an_axis() -> None:
    _, axis = drawn(*(fake.record(chunk=chunk) for chunk in (1, 16)))
    assert numbers(axis) == ["1", "16"]


def test_with_one_chunk_the_times_are_columns_that_no_two_programs_share_a_place_in() -> None:
    kinds = [(time, state) for time in ("looped", "unrolled") for state in ("stitched", "stateful")]
    canvas, axis = drawn(*(fake.record(chunk=1, time=time, state=state) for time, state in kinds))
    assert numbers(axis) == ["looped", "unrolled"]
    assert canvas._figure.get_supxlabel() == "how time advances in a call of 1 step"
    marks = [x for line in axis.lines if line.get_marker() in ("o", "s") for x in line.get_xdata()]
    assert len(set(marks)) == 4
    assert sorted(round(x) for x in marks) == [0, 0, 1, 1]


@pytest.mark.parametrize(("bound", "label"), [(100e-6, "µs per step"), (20e-3, "ms per step")])
def test_latencies_have_a_unit_that_fits(bound: float, label: str) -> None:
    canvas, _ = drawn(*(fake.record(chunk=1, bound=bound, time=time) for time in ("looped", "unrolled")))
    assert canvas._figure.get_supylabel() == label


def test_the_fastest_stream_of_a_single_chunk_is_marked_there_alone() -> None:
    _, axis = drawn(fake.record(chunk=1), fake.record(chunk=16, state="none"))
    (best,) = [line for line in axis.lines if line.get_color() == BEST["color"]]
    assert max(best.get_xdata()) < 2


def test_a_legend_has_the_fastest_stream_where_there_is_one() -> None:
    for state, is_there in (("stitched", True), ("none", False)):
        canvas, _ = drawn(fake.record(chunk=1, state=state))
        texts = [text.get_text() for text in canvas._figure.legends[0].get_texts()]
        assert ("fastest but kernels" in texts) is is_there
