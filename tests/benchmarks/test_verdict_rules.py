"""Rules that stop pairs of processes: what each costs, how often it is wrong (minutes; docs/verdicts.md).

Pairs come from the pools of real processes that are kept in `data/`, and from random numbers where pools have no such
thing. All rules see the same pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import verdict_pool
import verdict_rules
from verdict_rules import MOST, Outcomes

REPETITIONS = 1000
WORLD_SERIES = 10_000
Pairs = tuple[np.ndarray, np.ndarray]
"""[repetitions, MOST]: logarithms of ratios, and the scatters of their rounds."""
MORE_ROUNDS = {0: (0, 1, 2, 3), 1: (1, 0, 2, 3), 3: (3, 2, 1, 0)}
"""By slowdown, the sessions of the same processes whose rounds are taken as more rounds, each less its own median."""


@pytest.fixture(scope="module", params=verdict_pool.KEPT)
def pool(request: pytest.FixtureRequest) -> verdict_pool.Pool:
    return verdict_pool.read(verdict_pool.DATA / f"{request.param}.npz")


@pytest.mark.parametrize("smallest", [0.03, 0.01])
def test_rules_side_by_side(pool: verdict_pool.Pool, smallest: float) -> None:
    slowdowns = pool.slowdowns if smallest == 0.03 else (0, 1, 2, 3)
    drawn: dict[int | str, Pairs] = {slowdown: _drawn(_rounds(pool, slowdown), slowdown) for slowdown in slowdowns}
    logs, scatters = drawn[0]
    drawn["shifted"] = logs + math.log1p(smallest), scatters
    print(f"\nthreshold {smallest:.0%}: mean processes, mean seconds [% SLOWER or FASTER, % UNDECIDED]")
    print(f"planted {slowdowns} %, and 0 % with all ratios {smallest:.0%} larger")
    for rule in verdict_rules.rules():
        outcomes = {slowdown: verdict_rules.apply(rule, *pairs, smallest) for slowdown, pairs in drawn.items()}
        print(f"{rule.name:26}" + " ".join(_cell(each, _seconds(pool, 8)) for each in outcomes.values()))
    if smallest == 0.03:
        assert outcomes[0].percent("SLOWER", "FASTER") == 0
        assert outcomes[3].percent("SLOWER") >= 95


@pytest.mark.parametrize("latencies", [1, 12])
def test_rounds_of_a_pair(pool: verdict_pool.Pool, latencies: int) -> None:
    rule = verdict_rules.rules()[-1]
    print(f"\nrounds of a pair, {latencies} latencies in its processes; at 0, 1 and 3 %")
    for rounds in (4, 6, 8, 12, 16, 24):
        cells = []
        for slowdown in MORE_ROUNDS:
            outcome = verdict_rules.apply(rule, *_drawn(_rounds(pool, slowdown)[:, :rounds], slowdown), 0.03)
            cells.append(_cell(outcome, _seconds(pool, rounds, latencies)))
        print(f"{rounds:26}" + " ".join(cells))
    cells = []
    for slowdown in MORE_ROUNDS:
        logs, scatters, rounds_of = _adapted(_rounds(pool, slowdown))
        order = _order(len(logs), slowdown)
        seen = _with_exchanged_sides(logs[order], slowdown), scatters[order]
        outcome = verdict_rules.apply(rule, *seen, 0.03)
        taken = np.arange(MOST) < outcome.pairs[:, None]
        mean_rounds = float(rounds_of[order][taken].mean())
        cells.append(_cell(outcome, _seconds(pool, mean_rounds, latencies)) + f" ({mean_rounds:.1f} rounds)")
    print(f"{'8 to 24, adaptively':26}" + " ".join(cells))


@pytest.mark.parametrize("smallest", [0.03, 0.01])
def test_lengths_of_a_block(smallest: float) -> None:
    """What the first part of each block shows by itself: the turns of blocks that are shorter lie closer together."""
    pool = verdict_pool.read(verdict_pool.DATA / f"{verdict_pool.WITH_PARTS}.npz")
    rule = verdict_rules.rules()[-1]
    print(f"\nthreshold {smallest:.0%}, blocks of so many ms; at 0 %, and with all ratios that much larger")
    for part, share in {"median": 1.0, **verdict_pool.PARTS}.items():
        medians = pool.medians(0, part)
        logs, scatters = _drawn(np.log(medians[:, :, 1] / medians[:, :, 0]), 0)
        cells = []
        for latencies in (1, 2, 12):
            seconds = _seconds(pool, share * medians.shape[1], latencies)
            outcomes = [
                verdict_rules.apply(rule, logs + shift, scatters, smallest) for shift in (0, math.log1p(smallest))
            ]
            cells += [_cell(outcome, seconds) for outcome in outcomes]
        print(f"{1000 * share * pool.paced:4.0f} ms {logs.std():.2%} " + " ".join(cells))


WORLDS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "normal 0.5 %": lambda chance: 0.005 * chance.standard_normal((WORLD_SERIES, MOST)),
    "normal 2 %": lambda chance: 0.02 * chance.standard_normal((WORLD_SERIES, MOST)),
    "normal 20 %": lambda chance: 0.2 * chance.standard_normal((WORLD_SERIES, MOST)),
    "t(3), 1 %": lambda chance: 0.01 * chance.standard_t(3, (WORLD_SERIES, MOST)),
    "t(2), 1 %": lambda chance: 0.01 * chance.standard_t(2, (WORLD_SERIES, MOST)),
    "two layouts, 2 % apart": lambda chance: _layouts(0.02, chance),
    "two layouts, 4 % apart": lambda chance: _layouts(0.04, chance),
}


def test_how_often_rules_are_wrong_in_made_up_worlds() -> None:
    """Rounds scatter by a factor of their own in each pair (lognormal), whatever the ratios do."""
    print("\nwrong of 100: a change at 0 %, SAME or FASTER at 3 %; any interval; processes at 0 and 3 %")
    rules = verdict_rules.rules()
    for name, world in WORLDS.items():
        chance = np.random.default_rng(0)
        logs, scatters = world(chance), np.exp(chance.standard_normal((WORLD_SERIES, MOST)))
        for rule in (rules[0], rules[-3], rules[-1]):
            none = verdict_rules.apply(rule, logs, scatters, 0.03)
            planted = verdict_rules.apply(rule, logs + math.log1p(0.03), scatters, 0.03)
            missed = verdict_rules.apply(rule, logs, scatters, 1e-9).percent("SLOWER", "FASTER")
            wrong = none.percent("SLOWER", "FASTER"), planted.percent("SAME", "FASTER")
            print(
                f"{name:24}{rule.name:26}{wrong[0]:6.2f}{wrong[1]:6.2f}{missed:6.2f}"
                f"{2 * none.pairs.mean():7.1f}{2 * planted.pairs.mean():6.1f}"
            )
            if not name.startswith("two layouts"):
                assert max(*wrong, missed) <= 1 + 4 * math.sqrt(100 / WORLD_SERIES)


def _layouts(apart: float, chance: np.random.Generator) -> np.ndarray:
    """Each process has one of two layouts, and beside that pairs scatter by 0.5 %."""
    a, b = chance.integers(0, 2, (2, WORLD_SERIES, MOST))
    return apart * (b - a) + 0.005 * chance.standard_normal((WORLD_SERIES, MOST))


def _rounds(pool: verdict_pool.Pool, slowdown: int) -> np.ndarray:
    """[pairs, rounds]: logarithms of the ratios of the rounds, of this slowdown first."""
    found: list[np.ndarray] = []
    for session in MORE_ROUNDS.get(slowdown, (slowdown,)):
        medians = pool.medians(session)
        logs = np.log(medians[:, :, 1] / medians[:, :, 0])
        shift = np.median(np.median(logs, axis=1))
        found.append(logs if not found else logs - shift + np.median(np.median(found[0], axis=1)))
    return np.concatenate(found, axis=1)


def _observed(rounds: np.ndarray) -> Pairs:
    """[pairs]: what each pair shows, as `pair_ratio` and `pair_scatter` have it."""
    logs = np.median(rounds, axis=1)
    return logs, np.median(np.abs(rounds - logs[:, None]), axis=1)


def _adapted(rounds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What pairs show that take 8 rounds more, twice at most, where their median has a standard error over 0.75 %."""
    logs, scatters = _observed(rounds[:, :8])
    taken = np.full(len(rounds), 8)
    for more in (16, 24):
        error = 1.4826 * 1.2533 * scatters / np.sqrt(taken)
        goes_on = (error > 0.0075) & (taken == more - 8)
        new_logs, new_scatters = _observed(rounds[:, :more])
        logs, scatters = np.where(goes_on, new_logs, logs), np.where(goes_on, new_scatters, scatters)
        taken[goes_on] = more
    return logs, scatters, taken


def _drawn(rounds: np.ndarray, slowdown: int) -> Pairs:
    logs, scatters = _observed(rounds[:, :8] if rounds.shape[1] == 32 else rounds)
    order = _order(len(logs), slowdown)
    return _with_exchanged_sides(logs[order], slowdown), scatters[order]


def _order(pairs: int, slowdown: int) -> np.ndarray:
    """[REPETITIONS, MOST]: which pairs each repetition draws, without replacement."""
    chance = np.random.default_rng(slowdown)
    return np.stack([chance.permutation(pairs)[:MOST] for _ in range(REPETITIONS)])


def _with_exchanged_sides(logs: np.ndarray, slowdown: int) -> np.ndarray:
    """Where nothing was planted, with the sides of each pair exchanged by chance."""
    return logs if slowdown else logs * np.random.default_rng(1).choice([-1, 1], logs.shape)


def _seconds(pool: verdict_pool.Pool, rounds: float, latencies: int = 1) -> float:
    """Wall seconds of a pair for each of the latencies that share its processes: their start, and the rounds."""
    start = float(pool.wall.mean()) - pool.blocks.shape[2] * len(pool.slowdowns) * 2 * pool.paced
    return start / latencies + rounds * 2 * pool.paced


def _cell(outcome: Outcomes, seconds: float) -> str:
    changed, open_ = outcome.percent("SLOWER", "FASTER"), outcome.percent("UNDECIDED")
    return f"{2 * outcome.pairs.mean():6.1f} {seconds * outcome.pairs.mean():5.1f} s [{changed:5.1f} {open_:4.1f}]"
