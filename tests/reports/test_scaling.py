"""Growth and the largest chunk, and the anatomy of a call, from planted records."""

from __future__ import annotations

from typing import Any

import fake_records as fake

from rnnbench.reports.call_cost import call_cost_table, stateful_cost_table
from rnnbench.reports.scaling import growth_answer, scaling_table
from rnnbench.results.record import LatencyFloor, Record
from rnnbench.results.timing import DispatchFloor, SideLatency
from rnnbench.results.views import Entry

CHUNKS = (8, 16, 32, 64)


def built(record: Record, seconds: float) -> Record:
    timing = record.timing.model_copy(update={"build_s": seconds, "build_origin": "cold"})
    return record.model_copy(update={"timing": timing})


def entry(chunk: int, build_s: float = 0.1, **given: Any) -> Entry:
    record = built(fake.record(chunk=chunk, **given), build_s)
    return Entry(record, record)


def test_a_quadratic_build_is_called_so() -> None:
    (row,) = scaling_table([entry(chunk, 1e-3 * chunk**2, time="unrolled") for chunk in CHUNKS]).rows
    assert row[2] == "2.00 ± 0.00, quadratic"
    assert row[6] == "64, the largest requested"


def test_the_artifact_grows_without_its_weights() -> None:
    weights = 1 << 20
    floor = LatencyFloor(nbytes=1, operations=1, weights=weights, hoisted=None, level="L2")
    records = []
    for chunk in CHUNKS:
        record = fake.record(chunk=chunk, floor=floor)
        artifact = record.artifact.model_copy(update={"nbytes": weights + 1000 * chunk})
        records.append(record.model_copy(update={"artifact": artifact}))
    (row,) = scaling_table([Entry(record, record) for record in records]).rows
    assert row[3] == "1.00 ± 0.00, linear"


def test_the_first_chunk_that_does_not_build_is_named() -> None:
    failed = fake.record(chunk=128, time="unrolled", outcome="timed-out")
    entries = [*(entry(chunk, time="unrolled") for chunk in CHUNKS), Entry(failed, failed)]
    (row,) = scaling_table(entries).rows
    assert row[6] == "64; 128 timed-out at build"


def test_a_chunk_that_does_not_build_stands_with_the_approximate_program_that_does() -> None:
    failed = fake.record("fakekernel", "tir", chunk=128, time="unrolled", outcome="timed-out")
    entries = [entry(chunk, time="unrolled", backend="fakekernel", route="tir") for chunk in CHUNKS]
    (row,) = scaling_table([*entries, Entry(failed, failed)]).rows
    assert (row[0], row[6]) == ("fakekernel:tir ≈", "64; 128 timed-out at build")


def test_the_answer_has_a_line_for_each_word_the_steepest_first() -> None:
    chunks = (*CHUNKS, 128)
    entries = [entry(chunk, 2 + (chunk / 32) ** 2, time="unrolled") for chunk in chunks]
    failed = fake.record(chunk=256, time="unrolled", outcome="timed-out")
    answer = growth_answer([*entries, Entry(failed, failed), *(entry(chunk) for chunk in chunks)])
    assert answer.splitlines()[2:] == [
        "- **quadratic**: `fakelib:ops` unrolled-stitched (chunk^2.00; 256 timed-out at build)",
        "- **constant**: `fakelib:ops` looped-stitched (chunk^0.00)",
    ]
    assert growth_answer(entries[:4]) == "", "four chunks are too few to tell"


def test_a_fixed_part_is_told_in_the_unit_of_its_cost() -> None:
    (row,) = scaling_table([entry(chunk, 2 + (chunk / 32) ** 2, time="unrolled") for chunk in (*CHUNKS, 128)]).rows
    assert row[2] == "2.00 ± 0.00, quadratic, above 2.00 s"


def test_the_anatomy_is_a_call_and_a_step() -> None:
    entries = [entry(chunk, bound=12e-6 + 2e-6 * chunk, spread=0.0) for chunk in CHUNKS]
    (row,) = call_cost_table(entries).rows
    assert row[2].startswith("12.0 µs ±")
    assert row[3:5] == ("—", "—")
    assert row[5].startswith("2.00 µs ±")
    assert row[7].startswith("40.0 µs ±")


def test_beside_the_fitted_cost_of_a_call_stand_the_measured_floor_of_dispatch_and_the_state_s_copy() -> None:
    floor = DispatchFloor(strategy="unrolled-stitched", seconds=3e-6, interval=(2.9e-6, 3.1e-6), count=100)
    copy = SideLatency(seconds=1.5e-6, count=900)
    entries = []
    for chunk in CHUNKS:
        plain = entry(chunk, bound=12e-6 + 2e-6 * chunk, spread=0.0).record
        record = plain.model_copy(
            update={"timing": plain.timing.model_copy(update={"dispatch_floor": floor, "state_copy": copy})}
        )
        entries.append(Entry(record, record))
    (row,) = call_cost_table(entries).rows
    assert row[2].startswith("12.0 µs ±")
    assert row[3:5] == ("3.00 µs ±3.4 %", "1.50 µs")


def test_what_a_stateful_call_costs_is_a_figure() -> None:
    entries = [
        *(entry(chunk, bound=100e-6, spread=0.0) for chunk in CHUNKS),
        *(entry(chunk, bound=112e-6, spread=0.0, state="stateful") for chunk in CHUNKS),
    ]
    table = stateful_cost_table(entries[::-1])
    assert table.columns[2:] == tuple(f"chunk {chunk}" for chunk in sorted(CHUNKS))
    (row,) = table.rows
    assert row[2:] == ("12.0 µs SLOWER",) * 4


def test_a_stateful_cost_within_the_noise_of_the_processes_is_undecided() -> None:
    entries = [
        entry(8, bound=100e-6, spread=0.2, state=state, seed=seed)
        for seed, state in enumerate(("stitched", "stateful"))
    ]
    (row,) = stateful_cost_table(entries).rows
    assert row[2].endswith(" UNDECIDED")


def test_no_exponent_is_a_negative_zero() -> None:
    """Files and answers that differ in the last bit do not read as different, and no reader looks for a sign."""
    (row,) = scaling_table([entry(chunk, 0.1 - 1e-9 * chunk) for chunk in CHUNKS]).rows
    assert row[2].startswith("0.00 ± 0.00")


def test_a_stateful_call_that_shares_the_measurement_of_the_stitched_one_has_no_cost() -> None:
    stitched = entry(16, bound=100e-6)
    shares = fake.record(chunk=16, state="stateful", same_as=stitched.record.trial)
    assert stateful_cost_table([stitched, Entry(shares, stitched.record)]).rows == ()


def test_the_memory_of_a_build_grows_without_what_the_import_takes() -> None:
    memory = [(chunk, fake.record(chunk=chunk).memory) for chunk in (1, 16, 64, 256)]
    records = [
        fake.record(chunk=chunk, memory=of.model_copy(update={"build_peak": of.imported + (chunk << 20)}))
        for chunk, of in memory
        if of.imported is not None
    ]
    (row,) = scaling_table([Entry(record, record) for record in records]).rows
    assert row[5].startswith("1.00 ± 0.00, linear")


def test_a_build_whose_import_was_not_measured_has_no_growth_of_memory() -> None:
    memory = fake.record().memory.model_copy(update={"imported": None})
    entries = [Entry(record, record) for record in (fake.record(chunk=chunk, memory=memory) for chunk in (1, 16, 64))]
    assert all(row[5] == "—" for row in scaling_table(entries).rows)
