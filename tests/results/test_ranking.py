"""Places: within an origin and a chunk, shared where noise decides, and none for what computes something else."""

from __future__ import annotations

from dataclasses import replace

import fake_records as fake

from rnnbench.results.ranking import Ranking, rank, strategy_pairs
from rnnbench.results.record import Record
from rnnbench.results.views import Entry, view_runs


def entries(*records: Record) -> list[Entry]:
    return list(view_runs([fake.run(records)]).entries)


def places(ranking: Ranking) -> list[tuple[int, bool, str]]:
    return [(place.number, place.tied, place.entry.strategy) for place in ranking.places]


def test_origins_and_chunks_are_ranked_apart() -> None:
    rankings = rank(
        entries(
            fake.record("fakekernel", "tir", bound=1e-6),
            fake.record("fakemlir", "onnx", bound=9e-6),
            fake.record("fakelib", "ops", bound=5e-6),
            fake.record("fakelib", "ops", bound=3e-6, chunk=1),
        )
    )
    assert [(r.origin, r.chunk) for r in rankings] == [
        ("library", 1),
        ("library", 16),
        ("imported", 16),
        ("authored", 16),
    ]
    assert all(len(r.places) == 1 and r.places[0].number == 1 for r in rankings)


def test_whole_sequences_are_ranked_apart_from_streams() -> None:
    rankings = rank(entries(fake.record(state="none", bound=1e-6), fake.record(state="stitched", bound=2e-6)))
    assert [(r.streams, len(r.places)) for r in rankings] == [(True, 1), (False, 1)]


def test_overlapping_processes_share_a_place_and_the_next_place_counts_them() -> None:
    level = [fake.record(time=t, bound=1e-4, spread=0.0) for t in ("looped", "unrolled")]
    slower = fake.record(time="fused", bound=2e-4, spread=0.0)
    (ranking,) = rank(entries(slower, *level))
    assert places(ranking) == [
        (1, True, "looped-stitched"),
        (1, True, "unrolled-stitched"),
        (3, False, "fused-stitched"),
    ]
    assert len(ranking.leaders) == 2


def test_single_processes_are_level_within_what_layout_alone_can_do() -> None:
    near = [fake.record(time=t, bound=b, processes=1, spread=0.0) for t, b in (("looped", 1e-4), ("fused", 1.03e-4))]
    far = fake.record(time="unrolled", bound=1.1e-4, processes=1, spread=0.0)
    (ranking,) = rank(entries(*near, far))
    assert [(place.number, place.tied) for place in ranking.places] == [(1, True), (1, True), (3, False)]


def test_a_shared_measurement_has_no_place_of_its_own() -> None:
    own = fake.record(time="unrolled", chunk=1, bound=1e-4)
    shared = fake.record(time="looped", chunk=1, bound=None, same_as=own.trial)
    slower = fake.record(time="fused", chunk=1, bound=3e-4)
    (ranking,) = rank(entries(shared, own, slower))
    assert places(ranking) == [(1, False, "unrolled-stitched"), (2, False, "fused-stitched")]
    assert [e.strategy for e in ranking.places[0].sharing] == ["looped-stitched"]


def test_what_does_not_conform_has_no_place_and_nor_has_what_shares_it() -> None:
    wrong = fake.record(outcome="nonconforming", bound=1e-9)
    shared = fake.record(time="unrolled", bound=None, same_as=wrong.trial)
    (ranking,) = rank(entries(wrong, shared, fake.record(time="fused")))
    assert places(ranking) == [(1, False, "fused-stitched")]


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
    (ranking,) = rank(entries(*records))
    assert places(ranking)[0] == (1, False, "unrolled-stitched-graph")


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


def test_trials_of_two_nodes_are_in_two_rankings_and_in_one_picture():
    of_trials = (("a", "linalg", "looped"), ("a", "onnx", "looped"), ("b", "linalg", "unrolled"))
    records = [fake.record("fakemlir", route, time=time, node=node) for node, route, time in of_trials]
    view = view_runs([fake.run(records)])
    assert [(workload.node, len(entries)) for workload, entries in view.workloads.items()] == [("a", 2), ("b", 1)]
    assert "on node b" in str(list(view.workloads)[1])
    ((of_family,),) = (family.values() for family in view.families.values())
    assert len(of_family) == 3


def test_a_software_device_is_in_no_ranking_and_no_pair() -> None:
    played = [fake.record(time=time, device=fake.SOFTWARE_DEVICE) for time in ("looped", "unrolled")]
    assert rank(entries(*played)) == []
    assert strategy_pairs(entries(*played)) == []
    real = fake.record(device=replace(fake.SOFTWARE_DEVICE, software=False))
    assert [place.number for place in rank(entries(real))[0].places] == [1]


def test_places_are_by_the_median_and_not_by_the_mean() -> None:
    level = {
        time: fake.record(time=time, bound=bound, spread=0.0) for time, bound in (("looped", 1e-4), ("fused", 2e-4))
    }
    slow_at_times = level["looped"].timing.latency["bound"].model_copy(update={"mean": 9e-4})
    (ranking,) = rank(entries(level["fused"], fake.with_latencies(level["looped"], bound=slow_at_times)))
    assert [strategy for _, _, strategy in places(ranking)] == ["looped-stitched", "fused-stitched"]


def test_a_program_is_level_with_the_leader_of_its_place_and_not_with_its_neighbour() -> None:
    ranges = {"looped": (1.0, 1.1), "unrolled": (1.05, 1.2), "fused": (1.15, 1.3)}
    level = [
        fake.with_latencies(record, bound=bound.model_copy(update={"median": sum(ends) / 2, "process_medians": ends}))
        for time, ends in ranges.items()
        for record in [fake.record(time=time)]
        for bound in [record.timing.latency["bound"]]
    ]
    (ranking,) = rank(entries(*level))
    assert [(place.number, place.tied) for place in ranking.places] == [(1, True), (1, True), (3, False)]


def test_what_differs_in_batch_dtype_or_threads_is_another_workload() -> None:
    record = fake.record()
    others = [
        record.model_copy(
            update={"trial": f"{record.trial}-{key}", "params": record.params.model_copy(update={key: value})}
        )
        for key, value in {"batch": 8, "dtype": "float16", "threads": 2}.items()
    ]
    assert len({entry.workload for entry in entries(record, *others)}) == 4


def test_single_processes_are_level_in_either_direction() -> None:
    """Each may be off by what its layout does: the faster one upwards, the slower one downwards."""
    near = [fake.record(time=t, bound=b, processes=1, spread=0.0) for t, b in (("looped", 1e-4), ("fused", 1.039e-4))]
    far = [fake.record(time=t, bound=b, processes=1, spread=0.0) for t, b in (("looped", 1e-4), ("fused", 1.05e-4))]
    for records, number in ((near, 1), (far, 2)):
        (ranking,) = rank(entries(*records))
        assert [place.number for place in ranking.places] == [1, number]


def test_after_a_shared_place_the_next_number_counts_all_before_it() -> None:
    times = {"looped": 1e-4, "unrolled": 1e-4, "fused": 2e-4, "unrolled:2": 3e-4}
    (ranking,) = rank(entries(*(fake.record(time=time, bound=bound, spread=0.0) for time, bound in times.items())))
    assert [(place.number, place.tied) for place in ranking.places] == [(1, True), (1, True), (3, False), (4, False)]
