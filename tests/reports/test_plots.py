"""What the pictures of latencies show: chunks or times, in a unit that fits, and the fastest program where it was."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import fake_records as fake
import pytest

from rnnbench.reports.canvas import BEST, Canvas
from rnnbench.reports.drawing import PALETTE
from rnnbench.reports.panels import arrange, legible, named_chunks, targets_of
from rnnbench.reports.plots import draw, draw_latencies
from rnnbench.results.record import Record
from rnnbench.results.store import Run
from rnnbench.results.views import Entry, view_runs

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


@pytest.mark.parametrize(("bound", "label"), [(100e-6, "µs per step, log scale"), (20e-3, "ms per step, log scale")])
def test_latencies_have_a_unit_that_fits(bound: float, label: str) -> None:
    canvas, _ = drawn(*(fake.record(chunk=1, bound=bound, time=time) for time in ("looped", "unrolled")))
    assert canvas._figure.get_supylabel() == label


def test_few_marks_of_a_time_stand_around_its_name() -> None:
    _, axis = drawn(
        *(
            fake.record(chunk=1, time=time, state=state)
            for time in ("looped", "unrolled")
            for state in ("stitched", "stateful")
        )
    )
    marks = [x for line in axis.lines if line.get_marker() in ("o", "s") for x in line.get_xdata()]
    assert max(abs(x - round(x)) for x in marks) <= 0.1


def test_a_legend_has_times_where_lines_are_drawn() -> None:
    for chunks, is_there in (((1,), False), ((1, 16), True)):
        canvas, _ = drawn(*(fake.record(chunk=chunk, time=time) for chunk in chunks for time in ("looped", "unrolled")))
        texts = [text.get_text() for text in canvas._figure.legends[0].get_texts()]
        assert ("time" in texts) is is_there
        assert ("unrolled" in texts) is is_there


def test_the_fastest_stream_of_a_single_chunk_is_marked_there_alone() -> None:
    _, axis = drawn(fake.record(chunk=1), fake.record(chunk=16, state="none"))
    (best,) = [line for line in axis.lines if line.get_color() == BEST["color"]]
    assert max(best.get_xdata()) < 2


def test_a_legend_has_the_fastest_stream_where_there_is_one() -> None:
    for state, is_there in (("stitched", True), ("none", False)):
        canvas, _ = drawn(fake.record(chunk=1, state=state))
        texts = [text.get_text() for text in canvas._figure.legends[0].get_texts()]
        assert ("lowest median, without kernels" in texts) is is_there


def many_programs() -> list[Record]:
    """As many as a run of all routes has, and each a tenth slower than the one before; the last one at one chunk."""
    names = [f"fake{number:02d}" for number in range(25)]
    bounds = [100e-6 * 1.1**number for number in range(25)]
    records = [fake.record(name, bound=bound, spread=0.0) for name, bound in zip(names, bounds, strict=True)]
    return [*records, fake.record(names[-1], chunk=1, bound=1e-6), fake.record(names[0], chunk=1, bound=100e-6)]


def test_of_more_programs_than_colours_the_slowest_are_left_out() -> None:
    """One that is fast at one chunk only is kept."""
    panels, left_out = legible(arrange({128: [Entry(record, record) for record in many_programs()]}), 20)
    assert targets_of(panels) == [*(f"fake{number:02d}:ops" for number in range(19)), "fake24:ops"]
    assert left_out == 5
    few = arrange({128: [Entry(fake.record(), fake.record())]})
    assert legible(few, 20) == (few, 0)


def test_a_picture_says_how_many_programs_are_left_out_and_no_two_of_it_have_one_colour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Canvas] = []
    monkeypatch.setattr(Canvas, "save", lambda self, folder, stem: made.append(self))
    draw(view_runs([Run(tmp_path, fake.info(), tuple(many_programs()))]), tmp_path)
    for canvas in made:
        assert "5 slowest programs" in " ".join(canvas._figure.get_suptitle().split())
        colours = {canvas.look(line)["color"] for lines in canvas.panels.values() for line in lines}
        assert len(colours) == 20
    assert made


@pytest.mark.parametrize("chunks", [(1, 16, 128), (8, 16, 32, 64, 128, 256, 512), (4,), tuple(range(1, 65))])
def test_numbers_of_chunks_do_not_touch(chunks: tuple[int, ...]) -> None:
    canvas, axis = drawn(*(fake.record(chunk=chunk, time=time) for chunk in chunks for time in ("looped", "unrolled")))
    canvas._figure.draw_without_rendering()
    shown = [text for text in axis.get_xticklabels() if text.get_text() and len(chunks) > 1]
    boxes = sorted((text.get_window_extent() for text in shown), key=lambda box: box.x0)
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_the_first_and_the_last_chunk_have_numbers_and_seven_doubling_ones_have_all() -> None:
    assert named_chunks((8, 16, 32, 64, 128, 256, 512)) == {8, 16, 32, 64, 128, 256, 512}
    assert {1, 64} <= named_chunks(tuple(range(1, 65)))
