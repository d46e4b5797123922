"""Pairs of strategies of one backend that differ in one axis, with the ratios of their bound latencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rnnbench.results.ranking import judge_bound
from rnnbench.results.verdict import Judgement
from rnnbench.results.views import Entry

BASES = {"time": "looped", "state": "stitched", "launch": "stream"}
"""The axes, and the value with which each other value is compared. `none` is compared with no state."""


@dataclass(frozen=True)
class StrategyPair:
    """Two strategies of one backend on one workload that differ in one axis."""

    target: str
    first: str
    second: str
    common: str
    """The values of the axes in which they are equal. `stream` is not said."""
    ratios: dict[int, Judgement | None]
    """By chunk: the first's bound latency over the second's; None where both are one program, measured once."""


def strategy_pairs(entries: Sequence[Entry]) -> list[StrategyPair]:
    """Pairs of one workload: each time against `looped`, `stateful` against `stitched`, `graph` against `stream`."""
    ranked = {(entry.target, *_strategy(entry).values(), entry.chunk): entry for entry in entries if entry.ranked}
    pairs: dict[tuple[str, str, str, str], dict[int, Judgement | None]] = {}
    for entry in ranked.values():
        for axis, base in _partners(strategy := _strategy(entry)):
            partner = ranked.get((entry.target, *(strategy | {axis: base}).values(), entry.chunk))
            if partner is None:
                continue
            same = [value for name, value in strategy.items() if name != axis and value != BASES["launch"]]
            is_one_program = entry.measured == partner.measured
            ratios = pairs.setdefault((entry.target, strategy[axis], base, "-".join(same)), {})
            ratios[entry.chunk] = None if is_one_program else judge_bound(entry, partner)
    return [StrategyPair(*key, ratios) for key, ratios in sorted(pairs.items())]


def _strategy(entry: Entry) -> dict[str, str]:
    """The values of the axes in BASES, in its order."""
    return {axis: getattr(entry.record.params, axis) for axis in BASES}


def _partners(strategy: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The axes in which another strategy is a partner of this one, each with the partner's value."""
    return ((axis, base) for axis, base in BASES.items() if strategy[axis] not in (base, "none"))
