"""The verdict that a change deserves comes out, as rarely wrong as the engine says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples

from rnnbench.results.looks import LOOKS
from rnnbench.results.verdict import (
    DISTURBED,
    ERROR_RATE,
    SMALLEST,
    judge_apart,
    judge_once,
    judge_pairs,
    pair_ratio,
    pair_scatter,
    undisturbed,
)

stats = pytest.importorskip("scipy.stats")

positive = st.floats(1e-7, 1.0)
SEEDS = 150
"""Intervals of each kind that are looked at. tests/benchmarks/test_verdicts.py has thousands, from real processes."""


def medians(centre: float, spread: float, processes: int, seed: int) -> list[float]:
    return list(centre * np.exp(np.random.default_rng(seed).normal(0.0, spread, processes)))


def apart(change: float, spread: float, processes: int, trials: int = 100) -> Counter[str]:
    return Counter(
        judge_apart(
            medians(1e-4, spread, processes, 2 * seed), medians(1e-4 * (1 + change), spread, processes, 2 * seed + 1)
        ).verdict
        for seed in range(trials)
    )


def in_turn(change: float, spread: float, seed: int) -> tuple[str, int]:
    """A whole verdict: pairs are added until there is one."""
    ratios = medians(1 + change, spread, LOOKS[-1], seed)
    for pairs in LOOKS:
        judged = judge_pairs(ratios[:pairs])
        if judged.verdict != "UNDECIDED":
            break
    return judged.verdict, pairs


def paired(change: float, spread: float, trials: int = 100) -> Counter[str]:
    return Counter(in_turn(change, spread, seed)[0] for seed in range(trials))


def test_the_numbers_that_decide_are_what_the_documentation_says() -> None:
    assert (0.03, 0.01, range(4, 41), 4) == (SMALLEST, ERROR_RATE, LOOKS, DISTURBED)


@pytest.mark.parametrize("spread", [0.005, 0.02])
def test_three_per_cent_is_found_between_pairs_of_processes_that_differ_by_one_or_two(spread: float) -> None:
    assert paired(0.03, spread)["SLOWER"] >= 98
    assert paired(1 / 1.03 - 1, spread)["FASTER"] >= 98


@pytest.mark.first(1)
@pytest.mark.parametrize("spread", [0.005, 0.02, 0.2])
def test_where_nothing_changed_no_change_is_seen(spread: float) -> None:
    counts = paired(0.0, spread)
    assert counts["SLOWER"] + counts["FASTER"] <= 1, counts


def test_where_nothing_changed_and_noise_allows_it_is_the_same() -> None:
    assert paired(0.0, 0.01)["SAME"] >= 99


def test_noise_that_hides_a_change_gives_undecided_and_not_a_guess() -> None:
    assert paired(0.03, 0.2)["UNDECIDED"] >= 95


def test_more_noise_takes_more_pairs() -> None:
    used = [np.mean([in_turn(0.0, spread, seed)[1] for seed in range(20)]) for spread in (0.002, 0.01, 0.02, 0.04)]
    assert used == sorted(used)
    assert used[0] == LOOKS[0]


def test_the_intervals_of_all_looks_hold_the_truth_together() -> None:
    missed = 0
    for seed in range(SEEDS):
        ratios = medians(1.02, 0.03, LOOKS[-1], seed)
        intervals = [judge_pairs(ratios[:pairs]).interval for pairs in LOOKS]
        missed += any(interval is None or not interval[0] <= 1.02 <= interval[1] for interval in intervals)
    assert missed <= stats.binom.ppf(0.999, SEEDS, ERROR_RATE)


def test_a_disturbed_round_does_not_move_its_pair() -> None:
    assert pair_ratio([1.0, 1.0, 1.0, 9.0], [1.02, 1.02, 1.02, 1.02]) == pytest.approx(1.02)
    assert pair_ratio([1.0, 2.0, 4.0], [1.1, 2.2, 4.4]) == pytest.approx(1.1)


def test_sides_that_are_not_in_turn_need_more_processes() -> None:
    for processes in (3, 5, 10):
        counts = apart(0.0, 0.01, processes)
        assert counts["SLOWER"] + counts["FASTER"] <= 2, counts
    assert apart(0.0, 0.01, 10)["SAME"] >= 95
    assert apart(0.10, 0.01, 3)["SLOWER"] >= 95
    assert apart(-0.10, 0.01, 3)["FASTER"] >= 95
    assert apart(0.0, 0.10, 3)["UNDECIDED"] >= 95


def test_a_change_of_just_what_matters_is_found_and_never_called_the_same() -> None:
    counts = apart(0.03, 0.01, 10)
    assert counts["SLOWER"] >= 95
    assert counts["SAME"] + counts["FASTER"] == 0


def test_a_change_too_small_to_matter_is_the_same_however_sure() -> None:
    assert apart(0.01, 0.002, 10) == {"SAME": 100}
    assert paired(0.01, 0.002) == {"SAME": 100}


def test_the_interval_of_sides_apart_holds_the_truth() -> None:
    missed = 0
    for seed in range(SEEDS):
        judged = judge_apart(medians(1.0, 0.03, 4, 2 * seed), medians(1.1, 0.05, 3, 2 * seed + 1))
        assert judged.interval is not None
        missed += not judged.interval[0] <= 1.1 <= judged.interval[1]
    assert missed <= stats.binom.ppf(0.999, SEEDS, 2 * ERROR_RATE), "Welch's interval is approximate for so few"


def test_one_process_has_no_interval_and_no_verdict() -> None:
    judged = judge_apart([1e-4], [2e-4, 2e-4, 2e-4])
    assert (judged.interval, judged.verdict, judged.observations) == (None, "UNDECIDED", 1)
    assert judged.ratio == pytest.approx(2.0)
    for judged in (judge_pairs([2.0]), judge_once([2.0], 0.95)):
        assert (judged.interval, judged.verdict) == (None, "UNDECIDED")


def test_what_does_not_scatter_is_taken_at_its_word() -> None:
    same = judge_apart([1e-4] * 3, [1e-4] * 3)
    assert (same.interval, same.verdict) == ((1.0, 1.0), "SAME")
    assert judge_apart([1e-4] * 3, [2e-4] * 3).verdict == "SLOWER"
    assert judge_pairs([1.0] * 5).verdict == "SAME"
    assert judge_pairs([0.5] * 5).verdict == "FASTER"


@pytest.mark.parametrize("smallest", [0.0, 1.0, 3])
def test_a_smallest_change_that_is_no_fraction_is_refused(smallest: float) -> None:
    with pytest.raises(ValueError, match=r"0\.03 for 3 %"):
        judge_pairs([1.0, 1.1], smallest)


@given(st.lists(positive, min_size=2, max_size=6), st.lists(positive, min_size=2, max_size=6))
@examples(20)
def test_swapping_the_sides_turns_the_verdict_round(base: list[float], new: list[float]) -> None:
    length = min(len(base), len(new))
    ratios = [b / a for a, b in zip(base[:length], new[:length], strict=True)]
    for forth, back in (
        (judge_apart(base, new), judge_apart(new, base)),
        (judge_pairs(ratios), judge_pairs([1 / ratio for ratio in ratios])),
        (judge_once(ratios, 0.95), judge_once([1 / ratio for ratio in ratios], 0.95)),
    ):
        assert forth.ratio * back.ratio == pytest.approx(1.0)
        turned = {"SLOWER": "FASTER", "FASTER": "SLOWER"}
        assert turned.get(forth.verdict, forth.verdict) == back.verdict
        assert forth.interval is not None
        assert back.interval is not None
        assert forth.interval[0] == pytest.approx(1 / back.interval[1], rel=1e-6)
        assert forth.interval[0] <= forth.ratio * (1 + 1e-9)


def test_same_is_shown_by_two_one_sided_tests_and_a_change_by_one_of_two_sides() -> None:
    """The interval is wider than what SAME asks for: it may reach a little beyond the smallest change."""
    judged = judge_pairs(list(np.exp([0.0, 0.005, 0.01, 0.015])), 0.029)
    assert judged.verdict == "SAME"
    assert judged.interval is not None
    assert 1.029 < judged.interval[1] < 1.033


def test_of_pairs_that_are_looked_at_once_the_interval_is_scipys() -> None:
    ratios = medians(1.01, 0.02, 7, 0)
    expected = stats.ttest_1samp(np.log(ratios), 0.0).confidence_interval(0.95)
    assert judge_once(ratios, 0.95).interval == pytest.approx((np.exp(expected.low), np.exp(expected.high)))


def test_a_pair_whose_rounds_disagree_far_more_than_others_is_left_out() -> None:
    quiet = [1.0, 1.01, 1.0, 0.99, 1.0, 1.01, 0.99, 1.0]
    assert pair_scatter([1.0] * 8, quiet) == pytest.approx(0.005, rel=0.1)
    assert pair_scatter([1.0] * 8, [1.0] * 8) == 0.0
    ratios, scatters = [1.0, 1.01, 0.99, 1.0, 0.7], [0.004, 0.006, 0.005, 0.015, 0.25]
    assert undisturbed(ratios, scatters) == ratios[:4]
    judged = judge_pairs(ratios, 0.03, scatters)
    assert (judged.verdict, judged.observations) == (judge_pairs(ratios[:4]).verdict, 4)
    assert judge_pairs(ratios).verdict == "UNDECIDED"


@given(st.lists(st.tuples(st.floats(0.5, 2.0), st.floats(0.0, 1.0)), min_size=1, max_size=12), st.floats(0.01, 100))
@examples(30)
def test_what_is_left_out_depends_on_neither_the_sides_nor_the_scale(pairs: list, scale: float) -> None:
    ratios, scatters = map(list, zip(*pairs, strict=True))
    kept = undisturbed(ratios, scatters)
    assert 2 * len(kept) > len(ratios) or 2 * len(kept) == len(ratios)
    assert undisturbed([1 / ratio for ratio in ratios], scatters) == [1 / ratio for ratio in kept]
    assert len(undisturbed(ratios, [scatter * 2.0 ** round(scale) for scatter in scatters])) == len(kept)


@pytest.mark.parametrize("error_rate", [ERROR_RATE, 0.2])
def test_the_interval_of_runs_apart_is_scipys(error_rate: float) -> None:
    for seed in range(20):
        base, new = medians(1.0, 0.03, 2 + seed % 4, 2 * seed), medians(1.1, 0.05, 2 + seed % 5, 2 * seed + 1)
        judged = judge_apart(base, new, error_rate=error_rate)
        expected = stats.ttest_ind(np.log(new), np.log(base), equal_var=False).confidence_interval(1 - error_rate)
        assert judged.interval == pytest.approx((np.exp(expected.low), np.exp(expected.high)), rel=1e-9)


def test_a_small_gain_is_the_same_too_and_a_small_loss_needs_both_sides_of_the_interval() -> None:
    assert apart(1 / 1.01 - 1, 0.002, 10) == {"SAME": 100}
    assert paired(1 / 1.01 - 1, 0.002) == {"SAME": 100}
    for turn in (1, -1):
        wide = [float(np.exp(turn * log)) for log in (-0.02, 0.0, 0.02, 0.024)]
        assert judge_pairs(wide).verdict == "UNDECIDED"


def test_the_scatter_of_a_pair_is_that_of_most_rounds() -> None:
    rounds = [1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 9.0]
    assert pair_scatter([1.0] * 8, rounds) == pytest.approx(pair_scatter([1.0] * 7, rounds[:7]), abs=0.01)


def test_one_pair_that_was_disturbed_hides_no_other() -> None:
    assert undisturbed([1.0] * 5, [0.01, 0.01, 0.01, 0.05, 9.0]) == [1.0] * 3


@pytest.mark.parametrize(("smallest", "size"), [(0.03, 0.0149), (0.5, 0.21)])
def test_half_of_what_matters_is_half_of_its_logarithm(smallest: float, size: float) -> None:
    """Of 50 % it is 22 %: the change that is as far from 1 as from 1.5."""
    assert judge_pairs([float(np.exp(size))] * 5, smallest).verdict == "SLOWER"
    assert judge_pairs([float(np.exp(-size))] * 5, smallest).verdict == "FASTER"
    below = np.log1p(smallest) / 2 - 1e-4
    assert judge_pairs([float(np.exp(below))] * 5, smallest).verdict == "SAME"


def test_a_ratio_that_is_nearer_to_what_matters_is_not_the_same_though_its_interval_is_within() -> None:
    """Mean 0.52 of what matters; the interval that SAME asks for ends below it, and the other one holds no change."""
    limit = np.log1p(0.03)
    for turn in (1, -1):
        logs = turn * (0.52 * limit + 0.143 * limit * np.array([1.0, 1.0, -1.0, -1.0]))
        judged = judge_pairs([float(ratio) for ratio in np.exp(logs)], 0.03)
        assert judged.interval is not None
        assert judged.interval[0] < 1 < judged.interval[1]
        assert judged.verdict == "UNDECIDED"


def test_the_ratio_of_pairs_that_are_looked_at_once_is_their_geometric_mean() -> None:
    ratios = [1.0, 1.0, 1.3]
    judged = judge_once(ratios, 0.95)
    assert judged.ratio == pytest.approx(1.3 ** (1 / 3))
    assert judged.interval is not None
    assert judged.interval[0] * judged.interval[1] == pytest.approx(judged.ratio**2)
