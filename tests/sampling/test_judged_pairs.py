"""Pairs of processes are added until everything is judged, and no longer. Both sides of a pair are sampled alike."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from harness_trials import check_trial, context_in, make_trial
from quick_tests import for_proof

from rnnbench.cases import Target
from rnnbench.measure import PATHS, Block, WarmUp
from rnnbench.measure.clocks import Clock
from rnnbench.pipeline import record_of
from rnnbench.plan import examine
from rnnbench.results import Judgement
from rnnbench.results.looks import LOOKS
from rnnbench.sampling import groups, judged_pairs, pair_sampling
from rnnbench.sampling.judged_pairs import NO_ROOF, JudgedTrial, PairBudget, decide, judge_trials, verdict_cost
from rnnbench.sampling.pair_sampling import BLOCK_S, COMPARED, SMALL_CHANGE, PairSampling, PairTurn, TrialPair
from rnnbench.sampling.path_sampling import PathBlocks
from rnnbench.sampling.started_ahead import StartedAhead
from rnnbench.sampling.trial_sampling import TrialSampling
from rnnbench.stages import Built, Checked, Failure, Sampled

pytest.importorskip("scipy")

pytestmark = pytest.mark.usefixtures("few_checks")

ENDLESS = PairBudget(seconds=1e9, smallest_change=0.03)


def planned_pair(change: float, spread: float, seed: int = 0) -> tuple[TrialPair, list[float]]:
    """A trial on two sides, and the ratios that its pairs of processes are to show."""
    ratios = np.exp(np.random.default_rng(seed).normal(np.log1p(change), spread, LOOKS[-1]))
    a, b = (TrialSampling(examine(make_trial())) for _ in range(2))
    return TrialPair(a, b, paths=("bound",)), list(ratios)


def sampler(planned: dict[int, list[float]], requests: list[list[int]]) -> Callable[[Sequence[TrialPair], int], None]:
    """A sampler that notes the planned ratios, and in `requests` which trials it was asked for."""

    def sample(trials: Sequence[TrialPair], number: int) -> None:
        requests.append([id(pair) for pair in trials])
        for pair in trials:
            pair.ratios.setdefault("bound", []).append(planned[id(pair)][number])

    return sample


def judged_trial(pair: TrialPair) -> JudgedTrial:
    a, b = (Sampled(Checked(Built(sampling.examined))) for sampling in pair.sides)
    return JudgedTrial((a, b), pair.judgements, pair.ratios, pair.scatters, pair.seconds, pair.mean_judgements)


def test_a_trial_that_is_decided_has_no_more_pairs_and_the_others_go_on() -> None:
    (clear, clear_ratios), (noisy, noisy_ratios) = planned_pair(0.10, 0.002), planned_pair(0.0, 0.05)
    requests: list[list[int]] = []
    decide([clear, noisy], ENDLESS, sampler({id(clear): clear_ratios, id(noisy): noisy_ratios}, requests))
    assert clear.judgements["bound"].verdict == "SLOWER"
    assert len(clear.ratios["bound"]) == LOOKS[0]
    assert all(id(noisy) in ids for ids in requests)
    assert len(noisy.ratios["bound"]) > LOOKS[3]


def test_a_trial_with_too_much_noise_ends_undecided_at_the_last_look() -> None:
    pair, ratios = planned_pair(0.0, 0.5)
    decide([pair], ENDLESS, sampler({id(pair): ratios}, []))
    judgement = pair.judgements["bound"]
    assert (judgement.verdict, judgement.observations) == ("UNDECIDED", LOOKS[-1])
    assert verdict_cost([judged_trial(pair)]).startswith(f"A verdict took {2 * LOOKS[-1]} processes")


def test_a_pair_that_was_disturbed_is_left_out_and_pays_for_no_second_look() -> None:
    pair, _ = planned_pair(0.0, 0.0)
    planned = [1.0, 0.98, 1.02, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0]
    looks: list[Judgement | None] = []

    def sample(trials: Sequence[TrialPair], number: int) -> None:
        looks.append(pair.judgements.get("bound"))
        sampler({id(pair): planned}, [])(trials, number)
        pair.scatters.setdefault("bound", []).append(0.3 if planned[number] == 0.5 else 0.01)

    decide([pair], ENDLESS, sample)
    assert looks[:4] == [None] * 4
    assert looks[5] is looks[4], "the fifth pair added nothing to look at"
    assert pair.judgements["bound"].observations == len(pair.ratios["bound"]) - 1
    assert "2 processes were disturbed and left out" in verdict_cost([judged_trial(pair)])


def test_before_the_first_look_there_is_a_judgement_only_where_the_budget_ends() -> None:
    pair, ratios = planned_pair(0.10, 0.0001)
    seen: list[bool] = []

    def sample(trials: Sequence[TrialPair], number: int) -> None:
        seen.append(bool(pair.judgements))
        sampler({id(pair): ratios}, [])(trials, number)

    decide([pair], ENDLESS, sample)
    assert seen == [False] * LOOKS[0]


def test_a_fixed_number_of_pairs_is_sampled_whatever_they_show() -> None:
    (clear, clear_ratios), (noisy, noisy_ratios) = planned_pair(0.10, 0.002), planned_pair(0.0, 0.05)
    budget = replace(ENDLESS, pairs=7)
    decide([clear, noisy], budget, sampler({id(clear): clear_ratios, id(noisy): noisy_ratios}, []))
    assert [len(pair.ratios["bound"]) for pair in (clear, noisy)] == [7, 7]
    assert clear.judgements["bound"].verdict == "SLOWER"


def test_without_a_verdict_there_is_no_cost() -> None:
    pair, _ = planned_pair(0.0, 0.5)
    assert verdict_cost([judged_trial(pair)]) == "No verdict was reached."


def test_a_budget_that_is_spent_ends_with_a_judgement_of_what_was_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    pair, ratios = planned_pair(0.0, 0.5)
    clock = SimpleNamespace(monotonic=iter(range(0, 10_000, 10)).__next__)
    monkeypatch.setattr(judged_pairs, "time", clock)
    decide([pair], PairBudget(30.0, 0.03), sampler({id(pair): ratios}, []))
    assert len(pair.ratios["bound"]) == 3
    assert pair.seconds == 30
    assert pair.judgements["bound"].interval is not None


def test_the_trials_of_a_pair_share_its_time() -> None:
    (one, ratios), (other, others) = planned_pair(0.10, 0.001), planned_pair(0.10, 0.001, 1)
    decide([one, other], ENDLESS, sampler({id(one): ratios, id(other): others}, []))
    assert one.seconds == other.seconds > 0


Checker = Callable[[str], Checked]
SamplePairs = Callable[..., list[TrialPair]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pairs")


@pytest.fixture(scope="module")
def checked(folder: Path) -> Checker:
    """Builds and checks a trial of a target, once."""

    @cache
    def check(target: str) -> Checked:
        one = check_trial(make_trial(target), context_in(folder))
        assert one.failure is None, one.failure
        return one

    return check


PLACES = ("on cores of its own", "in turn")


@pytest.fixture(params=[PLACES[0], *for_proof(PLACES[1])])
def sample_pairs(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> SamplePairs:
    """Samples trials, each given as its two sides, in short blocks. A pair is checked beside the next, or before it."""
    monkeypatch.setattr(pair_sampling, "BLOCK_S", 0.002)
    context = context_in(folder)
    beside = [min(os.sched_getaffinity(0))] if request.param == "on cores of its own" else []

    def sample(*sides: tuple[Checked, Checked], rounds: int, number: int = 1) -> list[TrialPair]:
        trials = [TrialPair(TrialSampling(a.examined), TrialSampling(b.examined)) for a, b in sides]
        with StartedAhead(1, number) as started:
            sampling = PairSampling((context, context), 0, rounds, started, beside)
            for pair in range(number):
                sampling.sample_pair([trial for trial in trials if trial.is_alive], pair)
        return trials

    return sample


def test_both_sides_have_the_latencies_that_are_compared() -> None:
    assert COMPARED == ("bound", "public")


def test_a_pair_of_processes_gives_one_ratio_and_blocks_to_both_sides(checked: Checker, sample_pairs) -> None:
    honest = checked("fake:honest")
    (pair,) = sample_pairs((honest, honest), rounds=3, number=2)
    assert pair.is_alive
    for path in COMPARED:
        assert len(pair.ratios[path]) == len(pair.scatters[path]) == 2
        assert all(ratio > 0 for ratio in pair.ratios[path])
        for sampling in pair.sides:
            assert sampling.paths[path].path is PATHS[path]
            assert [len(blocks) for blocks in sampling.paths[path].processes] == [3, 3]
            assert sampling.sampled(honest, NO_ROOF).is_measured


def test_a_side_that_dies_fails_its_trial_and_spares_the_others(checked: Checker, sample_pairs) -> None:
    honest = checked("fake:honest")
    dying, sound = sample_pairs((honest, checked("fake:sample-segfaults")), (honest, honest), rounds=3)
    assert dying.b.failure is not None
    assert dying.b.failure.outcome == "crashed"
    assert not dying.ratios
    assert sound.is_alive
    assert len(sound.ratios["bound"]) == 1


@pytest.mark.first(1)
@pytest.mark.parametrize("sample_pairs", PLACES, indirect=True)
def test_a_side_that_fails_the_check_has_no_further_pair_and_spares_the_others(checked: Checker, sample_pairs) -> None:
    honest = checked("fake:honest")
    wrong, sound = sample_pairs((honest, checked("fake:wrong-once-timed")), (honest, honest), rounds=3, number=3)
    assert wrong.b.failure is not None
    assert wrong.b.failure.outcome == "nonconforming"
    assert not wrong.ratios
    assert len(sound.ratios["bound"]) == 3


def test_a_pair_that_was_prepared_and_is_not_needed_is_closed(
    checked: Checker, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_sampling, "BLOCK_S", 0.002)
    honest, context = checked("fake:honest"), context_in(folder)
    trial = TrialPair(TrialSampling(honest.examined), TrialSampling(honest.examined))
    with StartedAhead(1, 2) as started:
        sampling = PairSampling((context, context), 0, 1, started, sorted(os.sched_getaffinity(0))[:1])
        sampling.sample_pair([trial], 0)
        prepared = [worker._process.pid for worker in sampling._following]
        assert len(prepared) == 2
        assert all(map(psutil.pid_exists, prepared))
    assert not any(map(psutil.pid_exists, prepared))


@pytest.mark.parametrize(("certain", "prepared"), [(1, []), (2, [1])])
def test_only_a_pair_that_certainly_follows_is_prepared(
    certain: int, prepared: list[int], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = context_in(folder)
    sampling = PairSampling((context, context), 0, 1, StartedAhead(1, certain), [0])
    numbers: list[int] = []
    monkeypatch.setattr(sampling, "_prepared", lambda _, number: numbers.append(number))
    sampling._verify([], [], 0)
    assert numbers == prepared


def test_each_process_warms_up_until_calls_are_stationary_or_the_time_is_spent(checked: Checker, sample_pairs) -> None:
    honest = checked("fake:honest")
    (pair,) = sample_pairs((honest, honest), rounds=1, number=2)
    for sampling in pair.sides:
        for path in COMPARED:
            warmups = sampling.paths[path].warmups
            assert len(warmups) == len(sampling.paths[path].processes) == 2
            assert all(warmup.is_over and warmup.windows for warmup in warmups)
        warmup = record_of(sampling.sampled(honest, NO_ROOF)).latency("bound").sampling.warmup
        assert warmup.calls > 0
        assert 0 <= warmup.stationary <= 2


def test_backends_are_sampled_in_turn_each_in_processes_of_its_own(checked: Checker, sample_pairs) -> None:
    sides = [(one, one) for one in (checked("fake:honest"), checked("numpy:eager"))]
    trials = sample_pairs(*sides, rounds=4)
    assert [len(pair.ratios["bound"]) for pair in trials] == [1, 1]
    first, last = ([f(b.start for b in pair.a.paths["bound"].processes[0]) for pair in trials] for f in (min, max))
    assert max(first) < min(last), "neither was done before the other began"


def test_a_process_without_blocks_is_left_out_of_the_record(checked: Checker, sample_pairs) -> None:
    """Side b cannot be built, so side a is not sampled either."""
    honest = checked("fake:honest")
    broken = replace(honest.examined, trial=replace(honest.trial, target=Target("fake", "build-fails")))
    (pair,) = sample_pairs((honest, replace(honest, built=replace(honest.built, examined=broken))), rounds=1)
    assert pair.b.failure is not None
    sampled = pair.a.sampled(honest, NO_ROOF)
    assert not sampled.paths
    assert record_of(sampled).latency("bound") is None


@pytest.mark.proof
def test_trials_are_judged_in_the_order_given(checked: Checker, folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(pair_sampling, "BLOCK_S", 0.002)
    context = context_in(folder)
    trials = [(one, one) for one in (checked("fake:honest"), checked("numpy:eager"))]
    judged = judge_trials(trials, (context, context), PairBudget(0.1, 0.03), seed=0)
    assert [trial.sides[0].checked for trial in judged] == [a for a, _ in trials]
    for trial in judged:
        assert trial.ratios.keys() == trial.judgements.keys() == set(COMPARED)
        assert trial.seconds > 0
        assert all(side.is_measured and side.roof == NO_ROOF for side in trial.sides)
        assert all(side.common_trial is None for side in trial.sides), "memory holds both trials"


@pytest.mark.proof
def test_pairs_that_memory_does_not_hold_are_split_and_each_side_has_its_common_trial(folder, monkeypatch) -> None:
    monkeypatch.setattr(pair_sampling, "BLOCK_S", 0.002)
    monkeypatch.setattr(groups, "MEMORY_SHARE", 0.0)
    context = context_in(folder)
    trials = [(one, one) for one in (check_trial(make_trial(chunk=chunk), context) for chunk in (1, 2, 3))]
    judged = judge_trials(trials, (context, context), PairBudget(0.1, 0.03), seed=0)
    for side in range(2):
        commons = [trial.sides[side].common_trial for trial in judged]
        assert [common.group for common in commons] == [0, 0, 1]
        assert {common.groups for common in commons} == {2}
        assert {common.trial for common in commons} == {trials[0][0].trial.id}
        assert commons[0].bound == commons[1].bound
        assert commons[0].bound == record_of(judged[0].sides[side]).latency("bound").median


def test_what_is_not_believed_has_its_cost_and_no_verdict() -> None:
    pair, ratios = planned_pair(0.0, 0.001)
    pair.seconds = 3.0
    decide([pair], ENDLESS, sampler({id(pair): ratios}, []))
    disbelieved = replace(judged_trial(pair), judgements={})
    assert verdict_cost([disbelieved]).startswith(f"A verdict took {2 * LOOKS[0]} processes and a trial 3 s")


def test_blocks_are_longer_where_small_changes_matter() -> None:
    pair, _ = planned_pair(0.0, 0.0)
    assert replace(pair, smallest_change=0.01).block_s > replace(pair, smallest_change=0.03).block_s == BLOCK_S


def test_the_smallest_change_is_the_commands_or_the_cases_or_the_default() -> None:
    trial = make_trial()
    of_case = replace(trial, thresholds={"latency": 0.2})
    assert PairBudget(1.0).smallest_change_of(trial) == 0.03
    assert PairBudget(1.0).smallest_change_of(of_case) == 0.2
    assert PairBudget(1.0, 0.05).smallest_change_of(of_case) == 0.05


def blocks_of(sampling: TrialSampling, *seconds: float) -> PathBlocks:
    """A process of the bound latency with a block for each of these."""
    blocks = sampling.paths["bound"] = PathBlocks(PATHS["bound"])
    blocks.begin_process(WarmUp(1.0, 0.01))
    for one in seconds:
        blocks.add(Block(0.0, 0, np.full(3, one)))
    return blocks


def test_a_ratio_is_b_over_a_round_by_round() -> None:
    pair, _ = planned_pair(0.0, 0.0)
    blocks_of(pair.a, 1.0, 2.0, 4.0)
    blocks_of(pair.b, 1.1, 2.2, 4.0)
    pair.note_ratios(["bound"])
    assert pair.ratios["bound"] == [pytest.approx(1.1)]
    assert pair.scatters["bound"] == [pytest.approx(0.0)]


def test_few_slow_calls_are_in_the_ratio_of_the_means_alone() -> None:
    pair, _ = planned_pair(0.0, 0.0)
    for _ in range(LOOKS[0]):
        for sampling, slow in ((pair.a, 1.0), (pair.b, 9.0)):
            blocks = blocks_of(sampling)
            for _ in range(3):
                blocks.add(Block(0.0, 0, np.array([1.0, 1.0, slow, 1.0])))
        pair.note_ratios(["bound"])
    pair.judge()
    assert pair.judgements["bound"].verdict == "SAME"
    assert pair.mean_judgements["bound"].verdict == "SLOWER"
    assert pair.mean_judgements["bound"].ratio == pytest.approx(3.0)


def test_the_ratio_of_a_pair_is_that_of_its_own_processes() -> None:
    pair, _ = planned_pair(0.0, 0.0)
    for sampling, last in ((pair.a, 1.0), (pair.b, 1.2)):
        blocks = blocks_of(sampling, 1.0)
        blocks.begin_process(WarmUp(1.0, 0.01))
        blocks.add(Block(0.0, 0, np.full(3, last)))
    pair.note_ratios(["bound"])
    assert pair.ratios["bound"] == [pytest.approx(1.2)]


@pytest.mark.parametrize("rounds", [8, 7])
def test_either_side_is_the_first_of_half_of_the_rounds(rounds: int) -> None:
    pair, _ = planned_pair(0.0, 0.0)
    blocks_of(pair.a), blocks_of(pair.b)
    pair.calls_per_sample["bound"] = 1
    order: list[TrialSampling] = []

    class Worker:
        def sample(self, sampling: TrialSampling, *_: object) -> Block:
            order.append(sampling)
            return Block(0.0, 0, np.ones(3))

    turn = PairTurn(pair, Worker(), Worker(), random.Random(0), rounds)
    for _ in range(rounds):
        turn.sample("bound")
    of_rounds = list(zip(order[::2], order[1::2], strict=True))
    assert sorted(map(of_rounds.count, [(pair.a, pair.b), (pair.b, pair.a)])) == [rounds // 2, rounds - rounds // 2]


def test_of_a_trial_that_failed_the_empty_process_goes_with_its_warm_up() -> None:
    pair, _ = planned_pair(0.0, 0.0)
    first = blocks_of(pair.a, 1.0)
    second = blocks_of(pair.b)
    first.begin_process(WarmUp(1.0, 0.01))
    pair.b.failure = Failure("sample", "crashed", "died")
    pair.note_ratios(["bound"])
    assert not pair.ratios
    assert [(len(blocks.processes), len(blocks.warmups)) for blocks in (first, second)] == [(1, 1), (0, 0)]


def test_both_sides_time_as_many_calls_at_once_as_the_faster_one_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rnnbench.measure.warmup.measure_clock", lambda: Clock(resolution=1e-9, cost=1e-7))

    class Worker:
        def __init__(self, calls_per_sample: int) -> None:
            self.calls_per_sample = calls_per_sample

        def warm_up(self, sampling: TrialSampling, blocks: PathBlocks, warmup: WarmUp) -> None:
            warmup.windows.append(Block(0.0, 0, np.full(3, 5e-6 / (self.calls_per_sample - 0.5))))

    for numbers in ((3, 7), (7, 3)):
        pair, _ = planned_pair(0.0, 0.0)
        PairTurn(pair, *map(Worker, numbers), random.Random(0), 1).warm_up("bound")
        assert pair.calls_per_sample == {"bound": 7}


@pytest.mark.parametrize(("share", "is_warm"), [(0.4, True), (0.75, False)])
def test_a_pair_is_warm_where_its_windows_agree_to_half_the_precision_of_the_latency(share: float, is_warm) -> None:
    """As in a run: the scatter between processes adds to it."""
    pair, _ = planned_pair(0.0, 0.0)
    found: list[bool] = []

    class Worker:
        def warm_up(self, sampling: TrialSampling, blocks: PathBlocks, warmup: WarmUp) -> None:
            off = share * sampling.trial.measure.precision
            warmup.windows += [Block(0.0, 0, np.full(3, 1e-3 * np.exp(by))) for by in (0.0, off)]
            found.append(warmup.is_stationary)

    PairTurn(pair, Worker(), Worker(), random.Random(0), 1).warm_up("bound")
    assert found == [is_warm] * 2


def test_the_smallest_change_decides_which_changes_are_found() -> None:
    verdicts = []
    for smallest in (0.01, 0.10):
        pair, ratios = planned_pair(0.03, 0.001)
        pair.smallest_change = smallest
        decide([pair], ENDLESS, sampler({id(pair): ratios}, []))
        verdicts.append(pair.judgements["bound"].verdict)
    assert verdicts == ["SLOWER", "SAME"]


def test_a_change_of_two_per_cent_is_no_small_one() -> None:
    pair, _ = planned_pair(0.0, 0.0)
    assert replace(pair, smallest_change=SMALL_CHANGE).block_s == BLOCK_S


def test_the_time_of_a_pair_is_shared_by_the_trials_that_were_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    (clear, clear_ratios), (noisy, noisy_ratios) = planned_pair(0.10, 0.002), planned_pair(0.0, 0.5)
    monkeypatch.setattr(judged_pairs, "time", SimpleNamespace(monotonic=iter(range(0, 10_000, 10)).__next__))
    decide([clear, noisy], ENDLESS, sampler({id(clear): clear_ratios, id(noisy): noisy_ratios}, []))
    assert clear.seconds == 10 / 2 * LOOKS[0]
    assert noisy.seconds == clear.seconds + 10 * (LOOKS[-1] - LOOKS[0])


def test_the_cost_of_verdicts_leaves_out_what_had_none() -> None:
    pair, ratios = planned_pair(0.0, 0.001)
    decide([pair], ENDLESS, sampler({id(pair): ratios}, []))
    pair.seconds = 3.0
    failed, _ = planned_pair(0.0, 0.001)
    failed.seconds = 99.0
    assert "a trial 3 s on average, and 8 processes and 3 s at most" in verdict_cost(
        [judged_trial(pair), judged_trial(failed)]
    )
