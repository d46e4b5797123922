"""Calls until a compile pays off, against the first to start and against the fastest library, from planted records."""

from __future__ import annotations

import fake_records as fake

from rnnbench.reports.payoff import library_payoff_table, payoff_table
from rnnbench.reports.tables import Table
from rnnbench.results.views import Entry


def entry(backend: str, route: str, build: float, bound: float, *, time: str = "looped", load: float = 0.0) -> Entry:
    record = fake.record(backend, route, time=time, bound=bound, spread=0.0)
    timing = record.timing.model_copy(update={"build_s": build, "load_s": load, "build_origin": "cold"})
    timed = record.model_copy(update={"timing": timing})
    return Entry(timed, timed)


def by_strategy(table: Table) -> dict[str, str]:
    return {row[1]: row[2] for row in table.rows}


def test_the_extra_seconds_of_build_and_load_are_divided_by_those_that_a_call_saves() -> None:
    quick = entry("fakemlir", "linalg", 0.1, 200e-6)
    slow = entry("fakemlir", "linalg", 0.6, 100e-6, time="unrolled", load=0.5)
    dear = entry("fakemlir", "linalg", 2.0, 300e-6, time="fused")
    assert by_strategy(payoff_table([quick, slow, dear])) == {
        "looped-stitched": "starts first",
        "unrolled-stitched": "10,000",
        "fused-stitched": "never",
    }


def test_the_second_reference_is_the_fastest_library() -> None:
    entries = [
        entry("fakemlir", "linalg", 0.0, 50e-6),
        entry("fakelib", "ops", 0.1, 200e-6, time="fused"),
        entry("fakelib", "ops", 0.1, 300e-6),
        entry("fakemlir", "linalg", 1.1, 100e-6, time="unrolled"),
    ]
    assert {(row[0], row[1]): row[2] for row in library_payoff_table(entries).rows} == {
        ("fakelib:ops", "fused-stitched"): "fastest library",
        ("fakelib:ops", "looped-stitched"): "never",
        ("fakemlir:linalg", "looped-stitched"): "at once",
        ("fakemlir:linalg", "unrolled-stitched"): "10,000",
    }


def test_a_library_that_a_compiler_builds_for_long_is_no_reference() -> None:
    entries = [
        entry("fakelib", "ops", 0.1, 200e-6),
        entry("fakelib", "ops", 9.0, 100e-6, time="fused"),
    ]
    assert by_strategy(library_payoff_table(entries)) == {
        "looped-stitched": "fastest library",
        "fused-stitched": "89,000",
    }


def test_without_a_library_there_is_no_second_table() -> None:
    assert not library_payoff_table([entry("fakemlir", "linalg", 0.1, 200e-6)]).rows


def test_a_shared_measurement_has_no_row_of_its_own() -> None:
    first = entry("fakemlir", "linalg", 0.1, 200e-6)
    shares = first.record.model_copy(update={"trial": "shares", "same_as": first.record.trial})
    other = entry("fakemlir", "linalg", 0.6, 100e-6, time="unrolled")
    shown = by_strategy(payoff_table([first, Entry(shares, first.record), other]))
    assert shown == {"looped-stitched": "starts first", "unrolled-stitched": "5,000"}
