"""What pictures of latencies show: chunks or programs, in a unit that fits, and the fastest program where it was."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import fake_records as fake
import pytest

from rnnbench.reports.canvas import BEST, Canvas
from rnnbench.reports.drawing import PALETTE
from rnnbench.reports.markdown import page
from rnnbench.reports.panels import arrange, by_chunk, by_column, columns_of, legible, named_chunks, targets_of
from rnnbench.reports.plots import draw, draw_latencies
from rnnbench.results.record import Record
from rnnbench.results.store import Run
from rnnbench.results.views import Entry, view_runs

matplotlib = pytest.importorskip("matplotlib.figure") and pytest.importorskip("matplotlib")
STATES = ("stitched", "stateful")


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


def test_with_one_chunk_each_program_has_a_column_with_its_name() -> None:
    """No colour has to be told apart. The states of a program stand side by side."""
    kinds = [(name, time, state) for name in ("fakea", "fakeb") for time in ("looped", "unrolled") for state in STATES]
    canvas, axis = drawn(*(fake.record(name, time=time, state=state, chunk=1) for name, time, state in kinds))
    assert numbers(axis) == ["fakea:ops, looped", "fakeb:ops, looped", "fakea:ops, unrolled", "fakeb:ops, unrolled"]
    assert canvas._figure.get_supxlabel() == "program, and how time advances in a call of 1 step"
    places = [x for line in marks(axis) for x in line.get_xdata()]
    assert len(set(places)) == len(kinds)
    assert sorted(round(x) for x in places) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_program_has_the_same_column_in_all_panels() -> None:
    records = [fake.record("fakemlir", "linalg", chunk=1), fake.record(chunk=1), fake.record("fakezero", chunk=1)]
    panels = arrange({128: [Entry(record, record) for record in records]})
    columns = columns_of(panels)
    at = {line.target: place[1] for lines in panels.values() for line, place in by_column(lines, columns)}
    assert len(panels) > 1
    assert [at[target] for _, target in columns] == [0, 1, 2]


def test_names_of_columns_lie_within_the_figure_and_do_not_touch() -> None:
    canvas, axis = drawn(*(fake.record(f"fake{number:02d}", "r" * 60, chunk=1) for number in range(20)))
    canvas._figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axis.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert min(box.y0 for box in boxes) >= 0
    assert axis.get_window_extent().height > 150


@pytest.mark.parametrize(("bound", "label"), [(100e-6, "µs per step, log scale"), (20e-3, "ms per step, log scale")])
def test_latencies_have_a_unit_that_fits(bound: float, label: str) -> None:
    canvas, _ = drawn(*(fake.record(chunk=1, bound=bound, time=time) for time in ("looped", "unrolled")))
    assert canvas._figure.get_supylabel() == label


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


def test_a_picture_says_how_many_programs_are_left_out_and_no_two_of_it_look_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Canvas] = []
    monkeypatch.setattr(Canvas, "save", lambda self, folder, stem: made.append(self))
    draw(view_runs([Run(tmp_path, fake.info(), tuple(many_programs()))]), tmp_path)
    for canvas in made:
        assert "5 slowest programs" in " ".join(canvas._figure.get_suptitle().split())
        looks = [canvas.look(line) for lines in canvas.panels.values() for line in lines]
        assert len({(look["color"], "path_effects" in look) for look in looks}) == 20
    assert made


@pytest.mark.first(2)
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


def marks(axis: Any) -> list[Any]:
    return [line for line in axis.lines if line.get_marker() in ("o", "s")]


@pytest.mark.parametrize(("count", "calls", "end"), [(99, 1, "p90"), (100, 1, "p99"), (100, 2, None)])
def test_a_thin_line_ends_at_p99_or_at_the_bar_where_samples_are_few(count: int, calls: int, end: str | None) -> None:
    """No bar stands apart from its mark. Several calls that are timed at once have neither."""
    record = fake.record()
    bound = record.latency("bound")
    assert bound is not None
    sampling = bound.sampling.model_copy(update={"calls_per_sample": calls})
    bound = bound.model_copy(update={"count": count, "sampling": sampling})
    _, axis = drawn(fake.with_latencies(record, bound=bound))
    (thin,) = [line for line in axis.lines if line.get_linewidth() == 0.8]
    seconds = getattr(bound, end) if end else math.nan
    assert thin.get_ydata()[1] == pytest.approx(seconds / record.params.chunk * 1e6, nan_ok=True)


def test_many_lines_are_spread_wider_than_few_and_stay_nearer_to_their_chunk_than_to_the_next() -> None:
    spreads = []
    for number in (2, 40):
        names = [f"fake{index:02d}" for index in range(number // 2)]
        records = [fake.record(name, state=state, chunk=c) for name in names for state in STATES for c in (1, 16)]
        panels = arrange({128: [Entry(record, record) for record in records]})
        ((_, lines),) = panels.items()
        places = [math.log2(of_chunk[1]) for _, of_chunk in by_chunk(lines, (1, 16))]
        spreads.append(max(places) - min(places))
    few, many = spreads
    assert few < many < 2


def test_marks_are_larger_where_no_line_shows_their_colour() -> None:
    sizes = []
    for chunks in ((1, 16), (1,)):
        _, axis = drawn(*(fake.record(chunk=chunk) for chunk in chunks))
        sizes.append({line.get_markersize() for line in marks(axis)})
    assert max(sizes[0]) < min(sizes[1])


def test_each_picture_says_of_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of several networks has as many pictures of one title."""
    monkeypatch.setattr(Canvas, "save", lambda self, folder, stem: None)
    records = [fake.record(name) for name in ("fakea", "fakeb")]
    records += [r.model_copy(update={"case": "another_case", "trial": f"another{r.trial}"}) for r in records]
    view = view_runs([Run(tmp_path, fake.info(), tuple(records))])
    pictures = draw(view, tmp_path)
    text = page(view, pictures)
    for family in view.families:
        assert f"\n### {family}\n\n#### Latency per step by program, bound path\n" in text
    assert len({(picture.title, picture.subject) for picture in pictures}) == len(pictures)


def test_a_single_latency_has_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Canvas, "save", lambda self, folder, stem: None)
    one, two = ([fake.record(name) for name in names] for names in (("fakea",), ("fakea", "fakeb")))
    assert draw(view_runs([Run(tmp_path, fake.info(), tuple(one))]), tmp_path) == []
    assert draw(view_runs([Run(tmp_path, fake.info(), tuple(two))]), tmp_path)


def test_a_strategy_of_a_single_chunk_shows_its_time_beside_one_of_several() -> None:
    _, axis = drawn(*(fake.record(chunk=chunk) for chunk in (1, 16)), fake.record(chunk=16, time="unrolled"))
    assert len(axis.texts) == 1
