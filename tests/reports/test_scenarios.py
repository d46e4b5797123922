"""Tables of scenarios: streams with their bounds, requests at random, and the best of several batches."""

from __future__ import annotations

import sys
from pathlib import Path

import fake_records as fake
import pytest
from rich.console import Console

from rnnbench.reports.panels import stream_tests
from rnnbench.reports.plots import draw
from rnnbench.reports.scenarios import offline_table, server_table, streams_answer, streams_table
from rnnbench.reports.terminal import print_summary
from rnnbench.results.damage import without_impossible
from rnnbench.results.record import Record
from rnnbench.results.timing import Server, Streams, StreamTest
from rnnbench.results.views import Entry, view_runs


def holding(held: int, failed: int | None, state: str = "stitched", backend: str = "fakelib") -> Record:
    test = StreamTest(process=0, streams=max(1, held), frames=300, missed=2, median=4e-3, p99=9e-3)
    streams = Streams(
        period=0.01,
        held=held,
        held_by_all=max(0, held - 1),
        failed=failed,
        frames=600,
        missed=2,
        median=4e-3,
        p99=9e-3,
        tests=(test,),
    )
    server = Server(rate=200, requests=800, unserved=5, median=1e-4, p99=held * 1e-3, utilisation=0.25)
    return with_timing(fake.record(backend, state=state), streams=streams, server=server)


def with_timing(record: Record, **changes: object) -> Record:
    return record.model_copy(update={"timing": record.timing.model_copy(update=changes)})


def entries(*records: Record) -> list[Entry]:
    return [Entry(record, record) for record in records]


def cells(table) -> list[dict[str, str]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_without_scenarios_there_are_no_tables() -> None:
    plain = entries(fake.record())
    assert streams_table(plain).rows == server_table(plain).rows == offline_table(plain).rows == ()
    assert streams_answer(plain) == ""


def test_streams_stand_with_their_bounds_most_first() -> None:
    shown = entries(holding(40, 43), holding(64, None, "stateful"))
    first, second = cells(streams_table(shown))
    assert (first["streams"], first["bounds"]) == ("64", "63 or more")
    assert (second["streams"], second["bounds"], second["frames"], second["missed"]) == ("40", "39 to 43", "600", "2")
    assert (
        "looped-stateful at chunk 16 holds the most real-time streams on its core: 64 (63 or more); "
        in streams_answer(shown)
    )
    assert "the fewest" not in streams_answer(shown[:1])


def test_where_no_program_holds_a_stream_the_answer_says_so() -> None:
    none = entries(holding(0, 6), holding(0, 2, "stateful"))
    assert streams_answer(none) == "No program held a real-time stream on its core."


def test_a_program_that_holds_no_stream_is_the_one_with_the_fewest() -> None:
    answer = streams_answer(entries(holding(40, 43), holding(0, 2, "stateful")))
    assert "its core: 40 (39 to 43); " in answer
    assert "looped-stateful at chunk 16 the fewest: 0 (0 to 2)." in answer


def test_the_answer_says_which_other_programs_may_hold_as_many() -> None:
    near = entries(holding(40, 43), holding(38, 44, "stateful"), holding(20, 30, backend="fakeslow"))
    assert "its core: 40 (39 to 43), which the bounds of 1 other reach; " in streams_answer(near)
    assert "reach" not in streams_answer(near[1:])


def test_requests_at_random_stand_with_the_shortest_p99_first() -> None:
    first, second = cells(server_table(entries(holding(40, 43), holding(20, 21, "stateful"))))
    assert (first["p99"], first["utilisation"], first["unserved"]) == ("20.0 ms", "25 %", "5")
    assert second["p99"] == "40.0 ms"


def test_the_best_batch_is_that_with_the_most_steps_a_second() -> None:
    records = [fake.record(bound=seconds, spread=0.0, chunk=16) for seconds in (1e-4, 2e-4, 9e-4)]
    records = [
        record.model_copy(update={"params": record.params.model_copy(update={"batch": batch})})
        for record, batch in zip(records, (1, 8, 32), strict=True)
    ]
    (row,) = cells(offline_table(entries(*records)))
    assert (row["best batch"], row["steps/s"], row["of batch 1"]) == ("8", "640,000", "4.00×")


def test_the_terminal_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(fake.run((holding(40, 43),)), Console(width=100, file=sys.stdout))
    printed = capsys.readouterr().out
    assert "Real-time streams, a frame every 10.0 ms" in printed
    assert "Requests at random, 200 a second" in printed


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("streams", {"held": -1}),
        ("streams", {"held": 3, "held_by_all": 4}),
        ("streams", {"missed": 601}),
        ("streams", {"p99": float("nan")}),
        ("streams", {"tests": (StreamTest(process=0, streams=1, frames=300, missed=2, median=-1.0, p99=9e-3),)}),
        ("server", {"utilisation": 1.5}),
        ("server", {"median": 0.0}),
    ],
)
def test_figures_that_cannot_be_are_left_out(part: str, changes: dict[str, object]) -> None:
    record = holding(40, 43)
    damaged = with_timing(record, **{part: getattr(record.timing, part).model_copy(update=changes)})
    cleaned, names = without_impossible(damaged)
    assert names == (f"timing.{part}",)
    assert getattr(cleaned.timing, part) is None


def test_a_picture_has_the_frames_of_every_number_of_streams(tmp_path: Path) -> None:
    run = fake.run((holding(40, 43), holding(30, 31, "stateful")))
    stems = [picture.stem for picture in draw(view_runs([run]), tmp_path)]
    (stem,) = [stem for stem in stems if stem.startswith("streams-")]
    assert {path.suffix for path in tmp_path.glob(f"{stem}.*")} == {".png", ".svg"}


def test_a_test_that_its_misses_ended_is_not_drawn() -> None:
    record = holding(40, 43)
    assert record.timing.streams is not None
    failed = StreamTest(process=0, streams=64, frames=4, missed=4, median=2e-2)
    streams = record.timing.streams.model_copy(update={"tests": (*record.timing.streams.tests, failed)})
    (entry,) = entries(with_timing(record, streams=streams))
    assert [test.streams for test in stream_tests(entry)] == [40]


def test_numbers_that_double_and_the_one_that_is_held_are_drawn() -> None:
    """The search tries many numbers close to the one that it finds. Their marks would hide each other."""
    record = holding(40, 43)
    assert record.timing.streams is not None
    (held,) = record.timing.streams.tests
    tried = (1, 2, 4, 8, 16, 32, 64, 48, 40, 44, 42, 39)
    tests = tuple(held.model_copy(update={"streams": number}) for number in tried)
    (entry,) = entries(with_timing(record, streams=record.timing.streams.model_copy(update={"tests": tests})))
    assert [test.streams for test in stream_tests(entry)] == [1, 2, 4, 8, 16, 32, 40]
