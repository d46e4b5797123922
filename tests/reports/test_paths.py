"""The latency paths that a case asks for, and steps per second: columns, and sentences on which programs keep up."""

from __future__ import annotations

import sys

import fake_records as fake
import pytest
from rich.console import Console

from rnnbench.devices import Device
from rnnbench.measure import PATHS
from rnnbench.reports.paths import path_answer, path_table, plain_path_answer
from rnnbench.reports.terminal import print_summary
from rnnbench.results.record import Record
from rnnbench.results.views import Entry


def streamed(
    call: float = 1e-3, cold: float = 3.0, misses: int = 0, steps_per_s: float | None = None, chunk: int = 16
) -> Entry:
    """A trial whose bound call takes `call` seconds, `cold` times that with cold caches; called every 10 ms."""
    entry: Record = fake.record(chunk=chunk)
    bound = fake.latency(call, chunk, spread=0.0)
    if steps_per_s is not None:
        bound = bound.model_copy(update={"figures": {"steps_per_s": steps_per_s}})
    pace = {"period": 0.01, "real_time_factor": call / 0.01, "deadline_misses": misses}
    paced = bound.model_copy(update={"figures": {**bound.figures, **pace}})
    entry = fake.with_latencies(entry, bound=bound, paced=paced, cold=fake.latency(cold * call, chunk, spread=0.0))
    return Entry(entry, entry)


def test_without_cold_paced_or_batched_latencies_there_is_no_table_of_them() -> None:
    plain = fake.record()
    assert path_table([Entry(plain, plain)]).rows == ()
    assert path_answer([Entry(plain, plain)]) == ""


def test_cold_paced_and_batched_latencies_have_their_columns() -> None:
    table = path_table([streamed(misses=30, steps_per_s=12345.6)])
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["cold ÷ bound"], row["paced ÷ bound"], row["steps/s"]) == ("3.00×", "1.00×", "12,300")
    assert (row["period"], row["real-time factor"], row["deadlines missed"]) == (
        "10.0 ms",
        "0.100",
        "30 of 3,000 (1.00 %)",
    )
    for name in ("cold", "paced"):
        assert f"{name.capitalize()}: {PATHS[name].meaning}" in table.note


def test_the_answer_names_who_keeps_up_who_misses_most_and_what_cold_caches_cost() -> None:
    answer = path_answer([streamed(), streamed(chunk=64), streamed(12e-3, cold=1.5, misses=2900, chunk=128)])
    assert "called every 10.0 ms. By their median, 2 of 3 keep up; 2 missed no deadline." in answer
    assert "`fakelib:ops` looped-stitched at chunk 128 missed the most: 2900 of 3,000 (96.67 %)" in answer
    assert "takes 1.50× (`fakelib:ops` looped-stitched at chunk 128) to 3.00×" in answer


def test_a_terminal_of_80_columns_has_every_ratio_whole(capsys: pytest.CaptureFixture[str]) -> None:
    records = (streamed(misses=30, steps_per_s=12345.6).record, streamed(chunk=1).record)
    print_summary(fake.run(records), Console(width=80, file=sys.stdout))
    printed = capsys.readouterr().out
    assert "fakelib:ops looped-stitched 16 3.00× 1.00× 0.100 1.00 % 12,300" in " ".join(printed.split())
    assert "…" not in printed
    assert "`" not in printed


def test_where_all_keep_up_that_is_all_there_is_to_say() -> None:
    assert "all 2 keep up; no program missed a deadline." in path_answer([streamed(), streamed(chunk=1)])


def test_a_software_device_is_in_no_answer() -> None:
    played = streamed(steps_per_s=54321.0, misses=3).record
    played = played.model_copy(update={"device": Device("a player", software=True)})
    assert path_answer([Entry(played, played)]) == plain_path_answer([Entry(played, played)]) == ""


def test_of_a_batch_the_answer_has_the_most_steps_a_second() -> None:
    answer = path_answer([streamed(steps_per_s=1000.0), streamed(steps_per_s=54321.0, chunk=1)])
    assert (
        "`fakelib:ops` looped-stitched at chunk 1 computes the most steps per second, kernels left out: 54,300"
        in answer
    )


def test_a_kernel_is_left_out_of_the_most_steps_a_second() -> None:
    kernel = streamed(steps_per_s=99999.0).record
    kernel = kernel.model_copy(update={"artifact": kernel.artifact.model_copy(update={"origin": "kernel"})})
    answer = path_answer([streamed(steps_per_s=1000.0, chunk=1), Entry(kernel, kernel)])
    assert "at chunk 1 computes the most steps per second, kernels left out: 1,000" in answer


def test_who_missed_most_is_known_by_the_share_of_its_calls() -> None:
    few = streamed(misses=300).record
    paced = few.latency("paced")
    many = streamed(misses=400, chunk=1).record
    longer = many.latency("paced").model_copy(update={"count": 100 * paced.count})
    answer = path_answer([Entry(one, one) for one in (few, fake.with_latencies(many, paced=longer))])
    assert "at chunk 16 missed the most: 300 of 3,000 (10.00 %)" in answer
