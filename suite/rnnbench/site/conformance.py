"""Is a backend conforming: a line for each program, and the pages of support and conformance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rnnbench.reports import (
    conformance_table,
    expected_failures_table,
    findings_table,
    not_believed_table,
    too_short_table,
)
from rnnbench.results import FAILURES
from rnnbench.site.changes import ChangeRow
from rnnbench.site.content import Content, Machine, Shown
from rnnbench.site.page import Folder
from rnnbench.spelling import count

LEVELS = {"native": "✓ native", "emulated": "† emulated", "unsupported": "– unsupported"}


@dataclass(frozen=True)
class Conformance:
    """One program on one machine, in numbers of trials."""

    machine: str
    """Fingerprint of the machine, for anchors."""
    name: str
    """Name of the machine for people."""
    program: str
    conforming: int
    expected: int
    """Fail as expected."""
    wrong: int
    """Fail a check, and not as expected."""
    failed: int
    """Did not get as far: build, run, crash, time, memory; and not as expected."""
    mended: int
    """Pass although they were expected to fail."""
    not_fully_checked: int
    """Pass, but the time of a check was over too soon to mean anything."""
    unsupported: int
    unavailable: int

    @property
    def verdict(self) -> tuple[str, str]:
        """A sign with words, and a class for its colour."""
        if self.wrong:
            return f"✗ {count(self.wrong, 'trial')} wrong", "bad"
        if self.failed:
            return f"! {count(self.failed, 'trial')} failed", "bad"
        if self.mended:
            return f"● {count(self.mended, 'trial')} mended", "note"
        if self.conforming:
            notes = [count(self.expected, "known failure")] if self.expected else []
            if self.not_fully_checked:
                notes.append(f"{count(self.not_fully_checked, 'trial')} not fully checked")
            return ", ".join(["✓ conforms", *notes]), "note" if notes else "good"
        if self.expected:
            return f"◇ {count(self.expected, 'known failure')}", "note"
        return ("– not installed" if self.unavailable else "– unsupported"), "none"


@dataclass(frozen=True)
class SupportCell:
    """What a backend says of one strategy."""

    words: tuple[str, ...]
    """Levels, several where they differ by model or chunk."""
    reasons: tuple[int, ...]
    """Numbers of reasons."""
    page: str


@dataclass(frozen=True)
class SupportMatrix:
    """Programs × strategies of one machine."""

    number: int
    """Number of the machine, for anchors."""
    machine: str
    strategies: tuple[str, ...]
    rows: tuple[tuple[str, tuple[SupportCell | None, ...]], ...]
    reasons: tuple[tuple[str, str], ...]
    """Reason and upstream issue."""


def conformance_of(content: Content) -> list[Conformance]:
    """By machine and program, those with something wrong first."""
    lines = [
        _line(
            machine,
            content.short_name(machine),
            target,
            [s for s in machine.shown.values() if s.entry.target == target],
        )
        for machine in content.machines
        for target in machine.view.targets
    ]
    return sorted(lines, key=lambda c: (-c.wrong, -c.failed, -c.mended, c.machine, c.name, c.program))


def write_conformance(content: Content, folder: Folder, changes: Sequence[ChangeRow]) -> None:
    """`conformance.html`. `changes` are the newest first."""
    folder.page(
        "conformance.html",
        "conformance.html",
        content=content,
        lines=conformance_of(content),
        support=[_support(number, machine) for number, machine in enumerate(content.machines)],
        tables=[
            (
                machine,
                conformance_table(machine.view),
                [
                    expected_failures_table(machine.view),
                    not_believed_table(machine.view),
                    too_short_table(machine.view),
                    findings_table(machine.view),
                ],
            )
            for machine in content.machines
        ],
        mended=[change for change in changes if change.is_mended],
        checks=list({check.backend: check for check in content.checks}.values()),
    )


def _line(machine: Machine, name: str, target: str, shown: Sequence[Shown]) -> Conformance:
    records = [shown_trial.entry.record for shown_trial in shown]
    unexpected = [record for record in records if not record.fails_as_expected]
    return Conformance(
        machine=machine.fingerprint,
        name=name,
        program=target,
        conforming=sum(record.outcome == "ok" for record in records),
        expected=sum(record.fails_as_expected for record in records),
        wrong=sum(record.outcome == "nonconforming" for record in unexpected),
        failed=sum(record.outcome in FAILURES for record in unexpected),
        mended=sum(record.passes_unexpectedly for record in records),
        not_fully_checked=sum(record.outcome == "ok" and bool(record.too_short_checks) for record in records),
        unsupported=sum(record.outcome == "unsupported" for record in records),
        unavailable=sum(record.outcome == "unavailable" for record in records),
    )


def _support(number: int, machine: Machine) -> SupportMatrix:
    shown = list(machine.shown.values())
    strategies = tuple(sorted({shown_trial.entry.strategy for shown_trial in shown}))
    reasons: dict[tuple[str, str], int] = {}
    rows = []
    for target in machine.view.targets:
        of_target = [shown_trial for shown_trial in shown if shown_trial.entry.target == target]
        cells = [_cell([s for s in of_target if s.entry.strategy == name], reasons) for name in strategies]
        rows.append((target, tuple(cells)))
    return SupportMatrix(number, machine.name, strategies, tuple(rows), tuple(reasons))


def _cell(shown: Sequence[Shown], reasons: dict[tuple[str, str], int]) -> SupportCell | None:
    if not shown:
        return None
    answers = [shown_trial.entry.record.support for shown_trial in shown]
    numbers = [
        reasons.setdefault((answer.reason, answer.upstream), len(reasons) + 1)
        for answer in answers
        if answer.reason or answer.upstream
    ]
    words = tuple(LEVELS[level] for level in LEVELS if any(answer.level == level for answer in answers))
    return SupportCell(words, tuple(dict.fromkeys(numbers)), shown[0].page)
