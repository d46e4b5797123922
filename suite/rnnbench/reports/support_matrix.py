"""`rnnbench backends`: installed backends with versions, how to install the others, and what each route supports."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from rnnbench.devices import Device
from rnnbench.reports.escape import line, print_grid, show

_STYLES = {"native": "green", "emulated": "yellow", "unsupported": "dim"}
_MEANINGS = {
    "emulated": "emulated: something stands in for what the runtime lacks",
    "unsupported": "—: unsupported",
}
"""Meanings of the words of a cell that need one, by level."""


class Probe(Protocol):
    """What is installed of a backend."""

    @property
    def routes(self) -> tuple[str, ...]: ...
    @property
    def versions(self) -> Mapping[str, str]: ...
    @property
    def available(self) -> bool: ...
    @property
    def reason(self) -> str: ...
    @property
    def install(self) -> str: ...
    @property
    def lacking(self) -> Mapping[str, Lack]: ...
    @property
    def devices(self) -> Mapping[str, Device | Any]:
        """By kind: the device that is here, or a Lack."""
        ...


class Lack(Protocol):
    """What one route lacks."""

    @property
    def reason(self) -> str: ...
    @property
    def install(self) -> str: ...


class Support(Protocol):
    """A backend's answer to one strategy and model."""

    @property
    def level(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def upstream(self) -> str: ...


Target = TypeVar("Target", bound=Hashable)


class SupportMatrix(Protocol[Target]):
    """What is installed and what it supports."""

    @property
    def probes(self) -> Mapping[str, Probe]:
        """By backend."""
        ...

    @property
    def support(self) -> Mapping[tuple[Target, str, str], Support]:
        """By target, kind of model, and strategy written `time-state`. Others are compared with the first model."""
        ...


@dataclass(frozen=True)
class _Answers(Generic[Target]):
    """The answers of a matrix, and the parts of their keys in the order in which they first come."""

    support: Mapping[tuple[Target, str, str], Support]
    targets: tuple[Target, ...]
    models: tuple[str, ...]
    times: tuple[str, ...]
    states: tuple[str, ...]

    @property
    def first(self) -> str:
        """The model that all others are compared with."""
        return self.models[0]

    @classmethod
    def of(cls, matrix: SupportMatrix[Target]) -> _Answers[Target]:
        strategies = _distinct(strategy for _, _, strategy in matrix.support)
        return cls(
            matrix.support,
            targets=_distinct(target for target, _, _ in matrix.support),
            models=_distinct(model for _, model, _ in matrix.support),
            times=_distinct(strategy.rpartition("-")[0] for strategy in strategies),
            states=_distinct(strategy.rpartition("-")[2] for strategy in strategies),
        )


Part = TypeVar("Part", bound=Hashable)


def _distinct(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(dict.fromkeys(parts))


def print_support_matrix(matrix: SupportMatrix[Target], console: Console) -> None:
    """The backends, the strategies of the first model with numbered reasons, and the models that differ from it."""
    print_grid(console, _backends(matrix))
    reasons: dict[str, int] = {}
    answers = _Answers.of(matrix)
    print_grid(console, _strategies(answers, reasons))
    if meanings := _meanings(answers):
        show(console, meanings, style="dim")
    numbered = Table.grid(Column(justify="right"), "", padding=(0, 1))
    for reason, number in reasons.items():
        numbered.add_row(str(number), line(reason))
    console.print(numbered, highlight=False)
    if (others := _others(answers)).row_count:
        print_grid(console, others)


def _lines(*lines: Text) -> Text:
    """One cell. Nothing in it is parsed as Rich's markup."""
    return Text("\n").join(lines)


def _backends(matrix: SupportMatrix[Target]) -> Table:
    columns = (Column(name, overflow="fold") for name in ("backend", "routes", "versions, or how to install it"))
    table = Table(*columns, title="Backends", title_justify="left")
    for name, probe in matrix.probes.items():
        lines = [line(", ".join(f"{package} {version}" for package, version in probe.versions.items()))]
        for route, lack in probe.lacking.items():
            lines += _lack_lines(f"{name}:{route}", lack)
        lines += _devices(name, probe)
        if not probe.available:
            lines = [line(probe.reason, style="yellow"), line(probe.install)]
        table.add_row(line(name), line(" ".join(probe.routes)), _lines(*lines))
    return table


def _devices(name: str, probe: Probe) -> list[Text]:
    """A line for each device beside the processor, or what is missing for one."""
    lines = []
    for kind, found in probe.devices.items():
        if isinstance(found, Device) and kind != "cpu":
            software = "; a software device: the processor emulates it" if found.software else ""
            lines.append(line(f"{name} on {kind}: {found.name}, {found.driver}, {found.capability}{software}"))
        elif not isinstance(found, Device):
            lines += _lack_lines(f"{name} on {kind}", found)
    return lines


def _lack_lines(what: str, lack: Lack) -> list[Text]:
    """Why something is not here, and how to install it."""
    return [line(f"{what}: {lack.reason}", style="yellow"), *([line(lack.install)] if lack.install else [])]


def _strategies(answers: _Answers[Target], reasons: dict[str, int]) -> Table:
    title = f"Strategies of {answers.first}: time across; states where one differs (numbers: see below)"
    columns = (Column(line(time), overflow="fold") for time in answers.times)
    table = Table(Column("target", no_wrap=True), *columns, title=line(title), title_justify="left", show_lines=True)
    for target in answers.targets:
        table.add_row(line(str(target)), *(_states(answers, target, time, reasons) for time in answers.times))
    return table


def _meanings(answers: _Answers[Target]) -> str:
    """What the words in the table of strategies mean; empty where all of them are native."""
    strategies = [f"{time}-{state}" for time in answers.times for state in answers.states]
    levels = {answers.support[target, answers.first, how].level for target in answers.targets for how in strategies}
    meanings = [meaning for level, meaning in _MEANINGS.items() if level in levels]
    return f"{'. '.join(meanings)}. A number is that of its reason:" if meanings else ""


def _states(answers: _Answers[Target], target: Target, time: str, reasons: dict[str, int]) -> Text:
    """The mark of most states, and below it those that are answered otherwise."""
    by_mark: dict[tuple[str, str], list[str]] = {}
    for state in answers.states:
        mark = _mark(answers.support[target, answers.first, f"{time}-{state}"], reasons)
        by_mark.setdefault(mark, []).append(state)
    most = max(by_mark, key=lambda mark: len(by_mark[mark]))
    return _lines(line(most), *(line(f"{', '.join(by_mark[mark])}: ", mark) for mark in by_mark if mark != most))


def _mark(support: Support, reasons: dict[str, int]) -> tuple[str, str]:
    """The level as a word, with the number of its reason; and its style."""
    word = "—" if support.level == "unsupported" else support.level
    text = _because(support)
    number = f" {reasons.setdefault(text, len(reasons) + 1)}" if text else ""
    return f"{word}{number}", _STYLES[support.level]


def _because(support: Support) -> str:
    """The reason with the upstream issue behind it, or what there is of the two."""
    upstream = f"({support.upstream})" if support.reason else support.upstream
    return " ".join(part for part in (support.reason, upstream) if part.strip("()"))


def _others(answers: _Answers[Target]) -> Table:
    """Where support for another model differs from that for the first. Targets with one answer stand together."""
    title = f"Models whose support differs from that of {answers.first}"
    columns = (Column("model", no_wrap=True), "strategies: support, and the targets")
    table = Table(*columns, title=line(title), title_justify="left")
    for kind in answers.models:
        rows: dict[str, list[str]] = {}
        for target in answers.targets:
            for answer, strategies in _apart(answers, target, kind).items():
                rows.setdefault(f"{', '.join(strategies)}: {answer}", []).append(str(target))
        for answer, targets in rows.items():
            table.add_row(line(kind), _lines(line(answer), line(", ".join(targets), style="dim")))
    return table


def _apart(answers: _Answers[Target], target: Target, kind: str) -> dict[str, list[str]]:
    """Strategies whose support differs from the first model's, by answer; a time alone stands for all its states."""
    differing: dict[str, list[str]] = {}
    for time in answers.times:
        by_answer: dict[str, list[str]] = {}
        states = [state for state in answers.states if (target, kind, f"{time}-{state}") in answers.support]
        for state in states:
            there, here = (answers.support[target, model, f"{time}-{state}"] for model in (kind, answers.first))
            if there.level != here.level:
                by_answer.setdefault(f"{there.level}: {_because(there)}", []).append(state)
        for answer, answered in by_answer.items():
            names = [time] if answered == states else [f"{time}-{state}" for state in answered]
            differing.setdefault(answer, []).extend(names)
    return differing
