"""Places: within an origin and a chunk, by verdicts, and none for what computes something else."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import fake_records as fake
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples

from rnnbench.results.ranking import Ranking, judge_bound, rank
from rnnbench.results.record import CommonTrial, Record
from rnnbench.results.verdict import judge_apart, judge_once
from rnnbench.results.views import Entry, view_runs


def entries(*records: Record) -> list[Entry]:
    return list(view_runs([fake.run(records)]).entries)


def places(ranking: Ranking) -> list[tuple[int, bool, str]]:
    return [(place.number, place.tied, place.entry.strategy) for place in ranking.places]


def of_processes(time: str, *medians: float) -> Record:
    """A record with these medians of its processes, in units of 0.1 ms."""
    seconds = tuple(1e-4 * median for median in medians)
    bound = fake.latency(statistics.median(seconds), chunk=16, spread=0.0)
    return fake.with_latencies(fake.record(time=time), bound=bound.model_copy(update={"process_medians": seconds}))


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


def test_a_launch_is_ranked_beside_the_others_and_named() -> None:
    stream, graph = (fake.record(launch=launch, bound=s) for launch, s in (("stream", 1e-4), ("graph", 5e-5)))
    (ranking,) = rank(entries(stream, graph))
    assert places(ranking)[0] == (1, False, "looped-stitched-graph")


def test_trials_of_two_nodes_are_in_two_rankings_and_in_one_picture():
    of_trials = (("a", "linalg", "looped"), ("a", "onnx", "looped"), ("b", "linalg", "unrolled"))
    records = [fake.record("fakemlir", route, time=time, node=node) for node, route, time in of_trials]
    view = view_runs([fake.run(records)])
    assert [(workload.node, len(entries)) for workload, entries in view.workloads.items()] == [("a", 2), ("b", 1)]
    assert "on node b" in str(list(view.workloads)[1])
    ((of_family,),) = (family.values() for family in view.families.values())
    assert len(of_family) == 3


def test_a_software_device_is_in_no_ranking() -> None:
    played = [fake.record(time=time, device=fake.SOFTWARE_DEVICE) for time in ("looped", "unrolled")]
    assert rank(entries(*played)) == []
    real = fake.record(device=replace(fake.SOFTWARE_DEVICE, software=False))
    assert [place.number for place in rank(entries(real))[0].places] == [1]


def test_places_are_by_the_median_and_not_by_the_mean() -> None:
    level = {
        time: fake.record(time=time, bound=bound, spread=0.0) for time, bound in (("looped", 1e-4), ("fused", 2e-4))
    }
    slow_at_times = level["looped"].timing.latency["bound"].model_copy(update={"mean": 9e-4})
    (ranking,) = rank(entries(level["fused"], fake.with_latencies(level["looped"], bound=slow_at_times)))
    assert [strategy for _, _, strategy in places(ranking)] == ["looped-stitched", "fused-stitched"]


def test_what_differs_in_batch_dtype_or_threads_is_another_workload() -> None:
    record = fake.record()
    others = [
        record.model_copy(
            update={"trial": f"{record.trial}-{key}", "params": record.params.model_copy(update={key: value})}
        )
        for key, value in {"batch": 8, "dtype": "float16", "threads": 2}.items()
    ]
    assert len({entry.workload for entry in entries(record, *others)}) == 4


def test_after_a_shared_place_the_next_number_counts_all_before_it() -> None:
    times = {"looped": 1e-4, "unrolled": 1e-4, "fused": 2e-4, "unrolled:2": 3e-4}
    (ranking,) = rank(entries(*(fake.record(time=time, bound=bound, spread=0.0) for time, bound in times.items())))
    assert [(place.number, place.tied) for place in ranking.places] == [(1, True), (1, True), (3, False), (4, False)]


def test_what_is_not_slower_shares_a_place_and_the_next_place_counts_it() -> None:
    (ranking,) = rank(
        entries(
            of_processes("looped", 1.0, 1.0, 1.0),
            of_processes("unrolled", 1.01, 1.005, 1.012),
            of_processes("unrolled:2", 1.02, 1.4, 1.1),
            of_processes("fused", 1.2, 1.2, 1.21),
        )
    )
    assert [judge_bound(place.entry, ranking.places[0].entry).verdict for place in ranking.places[1:]] == [
        "SAME",
        "UNDECIDED",
        "SLOWER",
    ]
    assert places(ranking) == [
        (1, True, "looped-stitched"),
        (1, True, "unrolled-stitched"),
        (1, True, "unrolled:2-stitched"),
        (4, False, "fused-stitched"),
    ]
    assert [str(place) for place in ranking.places] == ["1=", "1=", "1=", "4"]
    assert len(ranking.leaders) == 3


def test_ranges_that_do_not_overlap_are_no_verdict() -> None:
    (ranking,) = rank(entries(of_processes("looped", 1.0, 1.0, 1.0), of_processes("fused", 1.01, 1.6, 1.3)))
    assert [place.number for place in ranking.places] == [1, 1]


def test_a_drift_that_both_have_hides_no_difference() -> None:
    """The ranges overlap, and each process is a tenth slower."""
    drifting = 1.0, 1.2, 1.4
    (ranking,) = rank(
        entries(of_processes("looped", *drifting), of_processes("fused", *(1.1 * median for median in drifting)))
    )
    assert [place.number for place in ranking.places] == [1, 2]


def test_a_program_is_level_with_the_first_of_its_place_and_not_with_its_neighbour() -> None:
    steps = {"looped": 1.0, "unrolled": 1.012, "fused": 1.024, "unrolled:2": 1.036}
    (ranking,) = rank(entries(*(of_processes(time, *[median] * 3) for time, median in steps.items())))
    assert [str(place) for place in ranking.places] == ["1=", "1=", "3=", "3="]


def test_places_are_in_the_order_of_medians_though_processes_scatter() -> None:
    """The last one is UNDECIDED beside each of the others: it opens no place, and shares the one before."""
    (ranking,) = rank(
        entries(
            of_processes("looped", 1.0, 1.0, 1.0),
            of_processes("unrolled", 1.1, 1.1, 1.1),
            of_processes("fused", 0.9, 1.2, 1.5),
        )
    )
    assert places(ranking) == [
        (1, False, "looped-stitched"),
        (2, True, "unrolled-stitched"),
        (2, True, "fused-stitched"),
    ]


@pytest.mark.parametrize("ratio", [1.01, 10.0])
def test_a_single_process_gives_no_place_below(ratio: float) -> None:
    """However much slower it was: the process may have been disturbed."""
    (ranking,) = rank(entries(of_processes("looped", 1.0), of_processes("fused", ratio)))
    assert [str(place) for place in ranking.places] == ["1=", "1="]


def test_trials_that_were_sampled_in_turn_are_judged_process_by_process_and_others_as_two_runs() -> None:
    medians = (1.0, 1.2, 1.4), (1.1, 1.33, 1.53)
    first, second = (of_processes(time, *of) for time, of in zip(("looped", "fused"), medians, strict=True))
    in_turn = judge_once([b / a for a, b in zip(*medians, strict=True)], 0.95)
    apart = judge_apart(*medians)
    assert (in_turn.verdict, apart.verdict) == ("SLOWER", "UNDECIDED")

    def judged(base: Record, new: Record, runs: tuple[str, str] = ("one", "one")) -> tuple[str, float]:
        view = view_runs([fake.run([base], runs[0]), fake.run([new], runs[1])])
        of_base, of_new = view.entries
        judgement = judge_bound(of_new, of_base)
        return judgement.verdict, judgement.interval[1]

    def in_group(record: Record, group: int) -> Record:
        return record.model_copy(
            update={"common_trial": CommonTrial(trial="common", group=group, groups=2, bound=1e-4)}
        )

    on_gpu = second.model_copy(update={"params": second.params.model_copy(update={"device": "cuda"})})
    assert judged(first, second) == (in_turn.verdict, pytest.approx(in_turn.interval[1]))
    assert judged(in_group(first, 1), in_group(second, 1)) == (in_turn.verdict, pytest.approx(in_turn.interval[1]))
    for others in (
        judged(first, second, ("one", "two")),
        judged(in_group(first, 0), in_group(second, 1)),
        judged(first, on_gpu),
    ):
        assert others == (apart.verdict, pytest.approx(apart.interval[1]))


def test_trials_of_two_runs_are_not_one_measurement() -> None:
    """The second run measured again only the trial that the other one shared."""
    own = of_processes("unrolled", 1.0, 1.0, 1.0)
    shared = fake.record(time="looped", bound=None, same_as=own.trial)
    again = of_processes("unrolled", 2.0, 2.0, 2.0)
    (ranking,) = rank(view_runs([fake.run([own, shared], "one"), fake.run([again], "two")]).entries)
    assert places(ranking) == [(1, False, "looped-stitched"), (2, False, "unrolled-stitched")]
    assert not any(place.sharing for place in ranking.places)


medians = st.lists(st.floats(0.9, 1.3), min_size=1, max_size=4)
programs = st.lists(st.tuples(medians, st.sampled_from(["one", "two"])), min_size=1, max_size=8)


def measured(drawn: list[tuple[list[float], str]]) -> list[Entry]:
    records = [of_processes(f"unrolled:{number + 2}", *of) for number, (of, _) in enumerate(drawn)]
    return [Entry(record, record, run) for record, (_, run) in zip(records, drawn, strict=True)]


@given(programs)
@examples(100)
def test_a_place_begins_with_a_program_that_is_slower_and_is_shared_by_those_that_are_not(
    drawn: list[tuple[list[float], str]],
) -> None:
    (ranking,) = rank(measured(drawn))
    of_place = Counter(place.number for place in ranking.places)
    first = ranking.places[0]
    assert first.number == 1
    for before, place in pairwise(ranking.places):
        verdict = judge_bound(place.entry, first.entry).verdict
        assert (place.number == first.number) is (verdict != "SLOWER")
        assert place.number in (before.number, first.number + of_place[first.number]), "places never decrease"
        assert before.entry.bound.median <= place.entry.bound.median
        first = first if place.number == first.number else place
    assert all(place.tied is (of_place[place.number] > 1) for place in ranking.places)
    assert sum(of_place.values()) == len(drawn)


@given(programs, st.randoms(use_true_random=False))
@examples(50)
def test_neither_the_order_of_the_trials_nor_a_failed_one_changes_a_place(
    drawn: list[tuple[list[float], str]], chance
) -> None:
    ranked = measured(drawn)
    failed = fake.record(time="fused", outcome="crashed")
    wrong = fake.record(time="looped", outcome="nonconforming", bound=1e-9)
    others = [*ranked, *(Entry(record, record, "one") for record in (failed, wrong))]
    chance.shuffle(others)
    assert rank(others) == rank(ranked)
