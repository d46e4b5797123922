"""Who has which trial next, where trials take turns in workers."""

from __future__ import annotations

from dataclasses import replace

from harness_trials import make_trial

from rnnbench.run.prepare import Findings, examine
from rnnbench.run.turns import Waiting, shared_by


def findings(route: str, chunks: int, slow: tuple[str, ...] = ()) -> list[Findings]:
    """Of one route, which has an environment and so workers of its own."""
    found = [examine(make_trial(f"fake:{route}", chunk=chunk)) for chunk in range(1, chunks + 1)]
    return [replace(one, probe=replace(one.probe, slow=slow)) for one in found]


def test_a_group_is_served_to_its_end_and_the_largest_comes_first() -> None:
    small, large = findings("honest", 1), findings("wrong-bound", 2)
    waiting, served, shared = Waiting([*small, *large]), [], None
    while (found := waiting.next(shared)) is not None:
        served.append(found)
        shared = shared_by(found)
    assert served == [*large, *small]


def test_slow_builds_do_not_come_last() -> None:
    slow, large = findings("honest", 1, slow=("honest",)), findings("wrong-bound", 3)
    assert Waiting([*large, *slow]).next(None) == slow[0]


def test_who_comes_when_each_group_is_served_helps_with_the_longest() -> None:
    small, large = findings("honest", 2), findings("wrong-bound", 4)
    waiting = Waiting([*small, *large])
    assert waiting.next(None) == large[0]
    assert waiting.next(None) == small[0]
    assert waiting.next(None) == large[1]
