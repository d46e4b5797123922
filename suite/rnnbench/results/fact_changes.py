"""What changed of the trials of two runs that is no number: which came and went, outcomes, checks, support, forms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rnnbench.results.fact_words import Direction, Fact, fact_direction, fact_sentence
from rnnbench.results.record import Record
from rnnbench.results.run import Run


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact of one trial that is another in the new run."""

    trial: str
    fact: Fact
    base: str
    new: str
    detail: str = ""
    """The reason that the record gives."""
    not_answered: tuple[str, ...] = ()
    """The checks that failed in the base, and in the new run did not run or were too short to mean anything."""

    @property
    def direction(self) -> Direction:
        if self.not_answered:
            return "neutral"
        return fact_direction(self.fact, self.base, self.new)

    @property
    def sentence(self) -> str:
        """What happened, without its subject: "no longer conforms: y differs by 0.3"."""
        if self.not_answered:
            return f"may still fail the checks: {', '.join(self.not_answered)} (they did not run, or were too short)"
        return fact_sentence(self.fact, self.base, self.new, self.detail)


@dataclass(frozen=True, slots=True)
class NotBelieved:
    """A trial whose figures are not believed in a run."""

    trial: str
    run: str
    reason: str


def fact_changes(base: Run, new: Run) -> Iterator[FactChange]:
    """Every fact that changed: trials that vanished, then those of both runs, then those that are new."""
    for trial in base.by_trial:
        if trial not in new.by_trial:
            yield FactChange(trial, "measured", "true", "false")
    for trial, record in new.by_trial.items():
        if (before := base.by_trial.get(trial)) is not None:
            yield from _changes(before, record, base, new)
    for trial, record in new.by_trial.items():
        if trial not in base.by_trial:
            detail = "" if record.outcome == "ok" else f"{record.outcome}: {record.reason}"
            yield FactChange(trial, "measured", "false", "true", detail)


def not_believed_of(run: Run, record: Record) -> str:
    """Why the figures of a record are not believed, its own or those that it shares; empty where they are."""
    measured = run.measured(record)
    return record.not_believed or (measured.not_believed if measured else "")


def _changes(old: Record, young: Record, base: Run, new: Run) -> Iterator[FactChange]:
    trial = young.trial
    not_answered = young.not_answered_again(old.failed_checks)
    if old.outcome != young.outcome:
        open_checks = not_answered if young.outcome == "ok" else ()
        yield FactChange(trial, "outcome", old.outcome, young.outcome, young.reason, open_checks)
    elif (before := old.failed_checks) != (after := young.failed_checks):
        yield FactChange(trial, "failed_checks", ", ".join(before), ", ".join(after))
    if (level := old.support.level) != young.support.level and "unsupported" not in (level, young.support.level):
        yield FactChange(trial, "support", level, young.support.level, young.support.reason)
    if old.artifact and young.artifact and old.artifact.lowered != young.artifact.lowered:
        yield FactChange(trial, "lowered", old.artifact.lowered, young.artifact.lowered)
    reasons = not_believed_of(base, old), not_believed_of(new, young)
    if bool(reasons[0]) != bool(reasons[1]) and {old.outcome, young.outcome} <= {"ok", "nonconforming"}:
        before_and_after = ("true", "false") if reasons[1] else ("false", "true")
        yield FactChange(trial, "believed", *before_and_after, reasons[1])
