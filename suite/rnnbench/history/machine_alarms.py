"""False alarms by machine: what A/A comparisons said of environments that were compared with themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rnnbench.history.comparisons import ComparisonEntry
from rnnbench.history.store import History
from rnnbench.optional import require
from rnnbench.results import visible
from rnnbench.spelling import percents

CONFIDENCE = 0.95
LEGEND = (
    "A/A: one environment was compared with itself, so each SLOWER and FASTER is wrong. The share is that of wrong "
    "verdicts among all, with its exact 95 % interval (Clopper and Pearson). Verdicts of one comparison share their "
    "pairs of processes: the share of comparisons with a wrong verdict has its own interval.",
)
NOT_MEASURED = "False alarms: not measured. The history has no A/A comparison; `rnnbench night` makes one a night."


@dataclass(frozen=True)
class Share:
    """So many of so many."""

    count: int
    of: int

    @property
    def interval(self) -> tuple[float, float]:
        """The exact binomial interval of Clopper and Pearson (1934). Needs SciPy."""
        quantile = require("scipy.special", "report", "an interval of a share").betaincinv
        count, others = self.count, self.of - self.count
        low = quantile(count, others + 1, (1 - CONFIDENCE) / 2) if count else 0.0
        high = quantile(count + 1, others, (1 + CONFIDENCE) / 2) if others else 1.0
        return float(low), float(high)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.count} of {self.of}, {percents(self.count / self.of)} ({percents(low)} to {percents(high)})"


@dataclass(frozen=True)
class MachineAlarms:
    """The A/A verdicts of one machine."""

    machine: str
    """Fingerprint."""
    cpu: str
    first: str
    last: str
    """Days of the first and the last comparison."""
    verdicts: Share
    """The wrong ones of all."""
    comparisons: Share
    """The comparisons with a wrong verdict, of all."""
    same: int
    undecided: int


def false_alarms(history: History) -> tuple[MachineAlarms, ...]:
    """The A/A verdicts of each machine that has any. Where none was measured, nothing."""
    by_machine: dict[str, list[ComparisonEntry]] = {}
    for entry in history.comparisons:
        if entry.same and entry.verdicts:
            by_machine.setdefault(entry.machine, []).append(entry)
    return tuple(_of_machine(machine, entries) for machine, entries in sorted(by_machine.items()))


def false_alarm_lines(alarms: Sequence[MachineAlarms]) -> Iterator[str]:
    """A paragraph for each machine; or that nothing was measured."""
    for alarm in alarms:
        yield visible(f"Machine {alarm.machine} ({alarm.cpu}), {alarm.first} to {alarm.last}")
        yield f"  wrong verdicts: {alarm.verdicts}; {alarm.same} SAME, {alarm.undecided} UNDECIDED"
        yield f"  comparisons with a wrong verdict: {alarm.comparisons}"
    yield from LEGEND if alarms else (NOT_MEASURED,)


def _of_machine(machine: str, entries: Sequence[ComparisonEntry]) -> MachineAlarms:
    counts = Counter(verdict.verdict for entry in entries for verdict in entry.verdicts)
    wrong = counts["SLOWER"] + counts["FASTER"]
    spoiled = sum(any(comparison.verdict in ("SLOWER", "FASTER") for comparison in entry.verdicts) for entry in entries)
    return MachineAlarms(
        machine,
        entries[-1].machine_cpu or "processor not recorded",
        entries[0].started[:10],
        entries[-1].started[:10],
        Share(wrong, counts.total()),
        Share(spoiled, len(entries)),
        counts["SAME"],
        counts["UNDECIDED"],
    )
