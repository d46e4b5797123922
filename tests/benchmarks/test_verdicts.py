"""Planted slowdowns are found, and where there is none, none is seen (minutes; docs/verdicts.md).

Repetitions are drawn from each of the pools that are kept in `data/` (`verdict_pool`): each takes pairs of processes in
an order of its own, without replacement, as many as its verdict needs. Where nothing was planted the sides of every
pair change places by chance, since they are exchangeable. Repetitions from one pool share pairs, so that beside them
stand verdicts that share none. RNNBENCH_POOL=N collects N pairs anew, three to four seconds each, and judges those.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import other_tools
import pytest
import verdict_pool
from scipy import stats

from rnnbench.results.looks import LOOKS
from rnnbench.results.verdict import Judgement, judge_pairs, pair_ratio, pair_scatter

REPETITIONS = 1000
FOUND_AT_LEAST = 0.95
WRONG_AT_MOST = 0.01
Judge = Callable[[np.ndarray], str]


ASKED = os.environ.get("RNNBENCH_POOL")


@pytest.fixture(scope="module", params=["new"] if ASKED else verdict_pool.KEPT)
def pool(request: pytest.FixtureRequest) -> verdict_pool.Pool:
    if ASKED:
        return verdict_pool.collect(int(ASKED), seed=0)
    return verdict_pool.read(verdict_pool.DATA / f"{request.param}.npz")


def test_the_pool_is_large_enough(pool: verdict_pool.Pool) -> None:
    processes = 2 * len(pool.blocks)
    print(f"\npool: {processes} processes, {pool.wall.sum():.0f} s to collect")
    for slowdown in pool.slowdowns:
        logs = np.log(_pairs(pool, slowdown)[:, 0])
        calls = pool.blocks[:, pool.slowdowns.index(slowdown), ..., verdict_pool.STATS.index("count")]
        print(
            f"  {slowdown:2d} %: ratio {np.exp(logs.mean()):.4f}, pairs scatter by {logs.std(ddof=1):.2%}, "
            f"{np.median(pool.medians(slowdown)) * 1e6:.0f} µs a call, {calls.mean():.0f} calls a block"
        )
    assert processes >= 200


def test_three_per_cent_is_found_and_nothing_is_not(pool: verdict_pool.Pool) -> None:
    heads = {**_WIDTHS, "processes": 11, "most": 6, "seconds": 9}
    print(f"\n{'':8}" + "".join(f"{head:>{width}}" for head, width in heads.items()) + "  sharing none")
    found = {}
    for slowdown in pool.slowdowns:
        pairs, chance = _pairs(pool, slowdown), np.random.default_rng(slowdown)
        drawn = [_verdict(_shuffled(pairs, slowdown, chance)) for _ in range(REPETITIONS)]
        counts = found[slowdown] = Counter(verdict for verdict, _ in drawn)
        processes = [2 * taken for _, taken in drawn]
        seconds = np.mean(processes) / 2 * _seconds_of_a_pair(pool)
        apart = Counter(_disjoint(_shuffled(pairs, slowdown, chance)))
        print(
            f"{slowdown:6d} %"
            + "".join(f"{counts[verdict]:{width}d}" for verdict, width in _WIDTHS.items())
            + f"{np.mean(processes):11.1f}{max(processes):6d}{seconds:9.1f}  "
            + ", ".join(f"{count} {verdict}" for verdict, count in apart.most_common())
        )
    wrong = found[0]["FASTER"] + found[0]["SLOWER"]
    bound = stats.binomtest(wrong, REPETITIONS, alternative="less").proportion_ci(0.95, method="exact").high
    print(f"at 0 %: {wrong} of {REPETITIONS} wrong, at most {bound:.2%} by its upper 95 % bound")
    assert found[3]["SLOWER"] >= FOUND_AT_LEAST * REPETITIONS
    assert bound <= WRONG_AT_MOST


def test_what_other_tools_say_of_the_same_processes(pool: verdict_pool.Pool) -> None:
    tools: dict[str, tuple[int, Judge]] = {
        "rnnbench ab": (LOOKS[-1], _rnnbench),
        "pytest-benchmark min:3%": (1, other_tools.pytest_benchmark("min:3%")),
        "pytest-benchmark mean:3%": (1, other_tools.pytest_benchmark("mean:3%")),
        "pytest-benchmark min:1%": (1, other_tools.pytest_benchmark("min:1%")),
        "pytest-benchmark mean:1%": (1, other_tools.pytest_benchmark("mean:1%")),
        "pyperf compare_to": (20, other_tools.pyperf_compare),
        "asv compare --factor 1.1": (2, other_tools.asv_compare(1.1)),
        "asv compare --factor 1.03": (2, other_tools.asv_compare(1.03)),
        "asv compare --factor 1.01": (2, other_tools.asv_compare(1.01)),
    }
    print(f"\nsaid to be slower (at 0 %: slower or faster), of {REPETITIONS}")
    print(f"{'':28}{'processes':>10}" + "".join(f"{slowdown:6d} %" for slowdown in pool.slowdowns))
    for name, (pairs, judge) in tools.items():
        shares = []
        for slowdown in pool.slowdowns:
            chance = np.random.default_rng(slowdown)
            said = Counter(judge(_drawn(pool, slowdown, pairs, chance)) for _ in range(REPETITIONS))
            shares.append(said["SLOWER"] + (said["FASTER"] if slowdown == 0 else 0))
        shown = f"≤ {2 * pairs}" if judge is _rnnbench else str(2 * pairs)
        print(f"{name:28}{shown:>10}" + "".join(f"{share / REPETITIONS:8.1%}" for share in shares))


_WIDTHS = {"FASTER": 8, "SLOWER": 8, "SAME": 8, "UNDECIDED": 11}


def _pairs(pool: verdict_pool.Pool, slowdown: int) -> np.ndarray:
    """[pairs, 2]: the ratio that each pair of processes shows, and the scatter of its rounds."""
    return np.array([_ratio_and_scatter(rounds) for rounds in pool.medians(slowdown)])


def _ratio_and_scatter(rounds: np.ndarray) -> tuple[float, float]:
    """Of the medians [rounds, sides] of one pair."""
    return pair_ratio(rounds[:, 0], rounds[:, 1]), pair_scatter(rounds[:, 0], rounds[:, 1])


def _shuffled(pairs: np.ndarray, slowdown: int, chance: np.random.Generator) -> np.ndarray:
    """The pairs in an order of chance; where nothing was planted, each with its sides as they are or exchanged."""
    order = chance.permutation(pairs)
    if slowdown == 0:
        order[:, 0] **= chance.choice([-1, 1], len(order))
    return order


def _verdict(pairs: np.ndarray) -> tuple[str, int]:
    """The verdict on pairs that come in this order, and how many it took."""
    judged: Judgement | None = None
    most = min(len(pairs), LOOKS[-1])
    for taken in range(LOOKS[0], most + 1):
        now = judge_pairs(pairs[:taken, 0], scatters=pairs[:taken, 1])
        if now.observations in LOOKS and (judged is None or now.observations > judged.observations):
            judged = now
            if judged.verdict != "UNDECIDED":
                return judged.verdict, taken
    return "UNDECIDED", most


def _disjoint(pairs: np.ndarray) -> Iterator[str]:
    """Verdicts one after the other, each on pairs of its own, until the pool ends before a verdict does."""
    while len(pairs) >= LOOKS[0]:
        verdict, taken = _verdict(pairs)
        if verdict == "UNDECIDED" and taken < LOOKS[-1]:
            return
        yield verdict
        pairs = pairs[taken:]


def _drawn(pool: verdict_pool.Pool, slowdown: int, pairs: int, chance: np.random.Generator) -> np.ndarray:
    """Blocks [pairs, rounds, sides, STATS] of pairs drawn without replacement; at 0 %, sides exchanged by chance."""
    blocks = pool.blocks[chance.choice(len(pool.blocks), pairs, replace=False), pool.slowdowns.index(slowdown)]
    if slowdown == 0:
        exchanged = chance.random(pairs) < 0.5
        blocks[exchanged] = blocks[exchanged][:, :, ::-1]
    return blocks


def _rnnbench(blocks: np.ndarray) -> str:
    medians = blocks[..., verdict_pool.STATS.index("median")]
    verdict, _ = _verdict(np.array([_ratio_and_scatter(rounds) for rounds in medians]))
    return verdict


def _seconds_of_a_pair(pool: verdict_pool.Pool) -> float:
    """Wall seconds of one pair that samples one trial's bound latency: the pool's pairs sample all slowdowns."""
    rounds, slowdowns = pool.blocks.shape[2], len(pool.slowdowns)
    return float(pool.wall.mean() - (slowdowns - 1) * rounds * 2 * pool.paced)
