"""The tables of a comparison of two runs, for the terminal and the page: what changed, latencies, measures."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rnnbench.reports import units
from rnnbench.reports.escape import Markdown
from rnnbench.reports.tables import NOT_BELIEVED, Table
from rnnbench.results import (
    COSTS,
    ERROR_RATE,
    FAIL_ON,
    FALLS,
    RISES,
    Comparison,
    CostChange,
    Fact,
    FactChange,
    LatencyChange,
    Verdict,
    scatter_of,
)
from rnnbench.spelling import count

VERDICTS: tuple[Verdict, ...] = ("SLOWER", "FASTER", "UNDECIDED", "SAME")
UNCHANGED = frozenset({"SAME", "within"})
DIRECTIONS = {"worse": "WORSE", "neutral": "changed", "better": "better"}
FACTS: tuple[Fact, ...] = ("outcome", "failed_checks", "believed", "measured", "support", "lowered")
"""In the order in which they are told."""
PAIRED = (
    "Processes of the two sides were sampled in turn, pair by pair, until there was a verdict or the budget was "
    "spent. The interval is corrected for the number of looks at it. A pair whose rounds scatter far more than those "
    "of the other pairs is left out. SAME excludes a change as large as the threshold on each side with 99 %; the "
    "interval excludes both at once and may reach a little further."
)
RATIO_OF_PAIRS = (
    "the mean of pairs that were sampled in turn. It may differ from the quotient of the two latencies, which are "
    "medians of all calls and move with the machine: the verdict is on the ratio"
)
RATIO_OF_PROCESSES = (
    "of the two latencies, each the geometric mean of its processes' medians. In a report a latency is the median of "
    "all calls"
)
APART = (
    "The runs were not sampled in turn: a drift of the machine between them is part of the ratio. `rnnbench ab` "
    "samples in turn."
)
SIDES_APART = (
    "The two runs are the sides of one `rnnbench ab`, which sampled them in turn and judged pair by pair. Its verdicts "
    "count; they are in the comparison.md of its report. Those here take each side by itself."
)
TWO_MACHINES = "*"
"""Mark of a result on two machines."""
COST_RESULTS = (
    "MORE, LESS: counts, which compare exactly. above, below: one measurement in each run, held against its threshold. "
    "That is no verdict, since one measurement has no interval."
)


@dataclass(frozen=True)
class TargetSummary:
    """What became of the latencies of one target."""

    target: str
    counts: tuple[int, ...]
    """How often each of `VERDICTS` was given, in their order."""
    ratio: float
    """Median over its latencies."""


def mark(comparison: Comparison) -> str:
    """The sign behind each result of runs of two machines; empty for one machine."""
    return TWO_MACHINES if comparison.two_machines else ""


def headline(comparison: Comparison) -> str:
    """Whether anything regressed, and what, in one sentence; in a second one what was found and does not count."""
    counted = [FAIL_ON[name].words(count) for name, count in comparison.found.items() if name in comparison.fail_on]
    others = [FAIL_ON[name].words(count) for name, count in comparison.found.items() if name not in comparison.fail_on]
    also = f" Found too, and not counted (--fail-on): {', '.join(others)}." if others else ""
    if comparison.two_machines:
        result = f"differs on another machine: {', '.join(counted)}" if counted else "nothing that counts differs"
        return f"TWO MACHINES, {result}.{also}"
    return (f"REGRESSED: {', '.join(counted)}." if counted else _nothing_counted(comparison)) + also


def _nothing_counted(comparison: Comparison) -> str:
    """That nothing regressed; of latencies without a verdict it is not known."""
    undecided = comparison.count("UNDECIDED")
    if not undecided:
        return "No regression."
    verdicts = count(len(comparison.latencies), "latency verdict")
    in_turn = comparison.paired or comparison.of_ab
    remedy = "a larger --budget of `rnnbench ab`" if in_turn else "`rnnbench ab`, which samples both in turn,"
    return f"No regression was found, and {undecided:,} of {verdicts} are UNDECIDED: {remedy} may decide."


def counts(comparison: Comparison) -> str:
    """How much was compared, and how often each verdict was given."""
    verdicts = [f"{comparison.count(verdict):,} {verdict}" for verdict in VERDICTS]
    vanished, appeared = (
        sum(c.fact == "measured" and c.new == measured for c in comparison.facts) for measured in ("false", "true")
    )
    one_sided = [f"{n:,} {word}" for n, word in ((vanished, "vanished"), (appeared, "new")) if n]
    trials = ", ".join([f"{count(comparison.trials, 'trial')} in both runs", *one_sided])
    not_believed = len({record.trial for record in comparison.not_believed})
    without = f" Without verdict: {count(not_believed, 'trial')} not believed." if not_believed else ""
    return f"{trials}. {count(len(comparison.latencies), 'latency verdict')}: {', '.join(verdicts)}.{without}"


def comparison_tables(comparison: Comparison) -> Iterator[Table]:
    """The tables that have rows, what is no number first."""
    tables = (
        _fact_table(comparison),
        _not_believed_table(comparison),
        _latency_table(comparison),
        _cost_table(comparison),
    )
    yield from (table for table in tables if table.rows)


def by_target(comparison: Comparison) -> list[TargetSummary]:
    """The latencies of each target, the one with the most SLOWER first."""
    groups: dict[str, list[LatencyChange]] = {}
    for change in comparison.latencies:
        groups.setdefault(_target(change.trial), []).append(change)
    summaries = [
        TargetSummary(
            target,
            tuple(sum(c.verdict == verdict for c in group) for verdict in VERDICTS),
            statistics.median(c.ratio for c in group),
        )
        for target, group in groups.items()
    ]
    return sorted(summaries, key=lambda one: ([-count for count in one.counts[:2]], one.target))


def ordered_facts(facts: Sequence[FactChange]) -> list[FactChange]:
    """Worse ones first; of each direction, outcomes first."""
    directions = list(DIRECTIONS)
    return sorted(facts, key=lambda c: (directions.index(c.direction), FACTS.index(c.fact), c.trial))


def ordered_latencies(latencies: Sequence[LatencyChange]) -> list[LatencyChange]:
    """SLOWER first; of each verdict, the largest change first."""
    return sorted(latencies, key=lambda c: (VERDICTS.index(c.verdict), -abs(c.ratio - 1), c.trial, c.path))


def ordered_costs(costs: Sequence[CostChange]) -> list[CostChange]:
    """The costs that changed, exact ones first; of each result, the largest change first."""
    changed = [change for change in costs if change.result not in UNCHANGED]
    results = ["MORE", "above", "LESS", "below"]
    return sorted(changed, key=lambda c: (results.index(c.result), -abs((c.ratio or 0.0) - 1), c.trial, c.measure))


def amount(change: CostChange, value: float) -> str:
    """A value of a cost in its unit: seconds, bytes or a count."""
    if change.cost.unit == "seconds":
        return units.seconds(value)
    return units.nbytes(value) if change.cost.unit == "bytes" else f"{value:,.0f}"


def ratio_of(change: CostChange) -> str:
    return units.MISSING if change.ratio is None else f"{change.ratio:.3f}"


def how_sampled(comparison: Comparison) -> str:
    """A sentence on how the two sides were sampled."""
    apart = SIDES_APART if comparison.of_ab else APART
    sentence = PAIRED if comparison.paired else apart
    return f"{sentence} {TWO_MACHINES}: of two machines." if comparison.two_machines else sentence


def interval_of(change: LatencyChange) -> str:
    """The interval of the ratio new / base."""
    interval = change.judged.interval
    return "one process" if interval is None else "–".join(map(units.end_of_ratio, interval))


def _target(trial: str) -> str:
    """`backend:route` of a trial's id."""
    parts = trial.split("/")
    return parts[1] if len(parts) > 1 else trial


def _fact_table(comparison: Comparison) -> Table:
    rows = [
        (Markdown(DIRECTIONS[c.direction] + mark(comparison)), c.trial, c.sentence)
        for c in ordered_facts(comparison.facts)
    ]
    return Table("What appeared, vanished or changed", ("", "trial", "what happened"), tuple(rows), text=3)


def _not_believed_table(comparison: Comparison) -> Table:
    rows = [(NOT_BELIEVED, c.trial, c.run, c.reason) for c in comparison.not_believed]
    return Table("Not believed: no verdict", ("", "trial", "run", "reason"), tuple(rows), text=4)


def _latency_table(comparison: Comparison) -> Table:
    base, new = _sides(comparison)
    rows = [
        (
            Markdown(c.verdict + mark(comparison)),
            c.trial,
            c.path,
            units.seconds(c.base),
            units.seconds(c.new),
            f"{c.ratio:.3f}",
            interval_of(c),
            str(c.judged.observations),
        )
        for c in ordered_latencies(comparison.latencies)
    ]
    return Table(
        f"Latency per call, {new} against {base}",
        ("verdict", "trial", "path", base, new, "ratio", f"{100 * (1 - ERROR_RATE):.0f} %", "n"),
        tuple(rows),
        text=3,
        note=Markdown(latency_note(comparison)),
    )


def latency_note(comparison: Comparison) -> str:
    """What the columns of the latencies mean, and how they were sampled."""
    base, new = _sides(comparison)
    return (
        f"The smallest change that matters is {_thresholds(comparison)}. Ratio: {new} over {base}, "
        f"{RATIO_OF_PAIRS if comparison.paired else RATIO_OF_PROCESSES}. "
        f"{100 * (1 - ERROR_RATE):.0f} %: its interval. n: processes of each side. {how_sampled(comparison)}"
    )


def _sides(comparison: Comparison) -> tuple[str, str]:
    """What the base and the new run are called."""
    return ("A", "B") if comparison.paired or comparison.of_ab else ("base", "new")


def _thresholds(comparison: Comparison) -> str:
    different = sorted({change.threshold for change in comparison.latencies})
    return " or ".join(f"{100 * threshold:.3g} %" for threshold in different) + (
        ", as the case says" if len(different) > 1 else ""
    )


def _cost_table(comparison: Comparison) -> Table:
    base, new = _sides(comparison)
    rows = [
        (
            Markdown(c.result + mark(comparison)),
            c.trial,
            f"{c.cost.title} ({c.detail})" if c.detail else c.cost.title,
            amount(c, c.base),
            amount(c, c.new),
            ratio_of(c),
            f"{100 * c.threshold:.3g} %",
        )
        for c in ordered_costs(comparison.costs)
    ]
    return Table(
        "Build time, memory, size and operations beyond their thresholds",
        ("result", "trial", "measure", base, new, "ratio", "threshold"),
        tuple(rows),
        text=3,
        note=Markdown(" ").join([COST_RESULTS, *_scatter(comparison)]),
    )


def _scatter(comparison: Comparison) -> Iterator[str]:
    """What one measurement is worth: how far its ratio scatters over all trials."""
    for cost in COSTS.values():
        if cost.basis == "one measurement" and (scatter := scatter_of(comparison.costs, cost.name)):
            yield (
                f"{cost.title.capitalize()}: half of the ratios of {scatter.trials:,} trials lie between "
                f"{scatter.low:.3f} and {scatter.high:.3f}."
            )


def rises(costs: Sequence[CostChange]) -> list[CostChange]:
    """The costs that rose by more than their threshold."""
    return [change for change in ordered_costs(costs) if change.result in RISES]


def falls(costs: Sequence[CostChange]) -> list[CostChange]:
    """The costs that fell by more than their threshold."""
    return [change for change in ordered_costs(costs) if change.result in FALLS]
