"""Strategy pairs differ in one axis, and are judged as any two trials."""

from __future__ import annotations

import fake_records as fake

from rnnbench.results.pairs_of_strategies import strategy_pairs
from rnnbench.results.record import Record
from rnnbench.results.views import Entry, view_runs


def entries(*records: Record) -> list[Entry]:
    return list(view_runs([fake.run(records)]).entries)


def test_strategy_pairs_differ_in_one_axis() -> None:
    found = strategy_pairs(
        entries(
            fake.record(time="looped", state="stitched", bound=1e-4, spread=0.0),
            fake.record(time="unrolled", state="stitched", bound=5e-5, spread=0.0),
            fake.record(time="looped", state="stateful", bound=1.01e-4, spread=0.0),
            fake.record("fakemlir", "linalg", time="unrolled", state="stitched", bound=7e-5),
        )
    )
    assert [(p.target, p.first, p.second, p.common) for p in found] == [
        ("fakelib:ops", "stateful", "stitched", "looped"),
        ("fakelib:ops", "unrolled", "looped", "stitched"),
    ]
    stateful, unrolled = found
    assert stateful.ratios[16].verdict == "SAME"
    assert round(unrolled.ratios[16].ratio, 6) == 0.5
    assert unrolled.ratios[16].verdict == "FASTER"


def test_a_graph_is_paired_with_the_stream_of_its_strategy() -> None:
    records = [
        fake.record(time=time, launch=launch, bound=seconds, spread=0.0)
        for time, launch, seconds in (
            ("looped", "stream", 1e-4),
            ("looped", "graph", 5e-5),
            ("unrolled", "graph", 4e-5),
            ("fused", "stream", 1e-4),
        )
    ]
    found = strategy_pairs(entries(*records))
    assert [(p.first, p.second, p.common, round(p.ratios[16].ratio, 6)) for p in found] == [
        ("fused", "looped", "stitched", 1.0),
        ("graph", "stream", "looped-stitched", 0.5),
        ("unrolled", "looped", "stitched-graph", 0.8),
    ]


def test_a_strategy_pair_is_judged_from_process_to_process() -> None:
    """Both sides drift by a fifth from one process to the next, and differ by a tenth in each."""
    base, quick = (fake.record(time=time, processes=3, spread=0.0) for time in ("looped", "unrolled"))
    drifted = [(1.0, 0.9), (1.2, 1.09), (1.4, 1.25)]
    sides = []
    for record, medians in zip((base, quick), zip(*drifted, strict=True), strict=True):
        bound = record.latency("bound").model_copy(update={"process_medians": tuple(1e-4 * m for m in medians)})
        sides.append(fake.with_latencies(record, bound=bound))
    (pair,) = strategy_pairs(entries(*sides))
    assert pair.ratios[16].verdict == "FASTER"
    low, high = pair.ratios[16].interval
    assert 0.87 < low < 0.9 < high < 0.93


def test_a_strategy_pair_of_single_processes_is_undecided() -> None:
    one, other = (fake.record(time=time, processes=1, spread=0.0) for time in ("looped", "unrolled"))
    (pair,) = strategy_pairs(entries(one, other))
    assert pair.ratios[16].interval is None
    assert pair.ratios[16].verdict == "UNDECIDED"


def test_a_strategy_pair_with_itself_is_called_that() -> None:
    own = fake.record(time="looped", chunk=1)
    shared = fake.record(time="unrolled", chunk=1, bound=None, same_as=own.trial)
    (pair,) = strategy_pairs(entries(own, shared))
    assert pair.ratios[1] is None


def test_a_software_device_is_in_no_pair() -> None:
    played = [fake.record(time=time, device=fake.SOFTWARE_DEVICE) for time in ("looped", "unrolled")]
    assert strategy_pairs(entries(*played)) == []
