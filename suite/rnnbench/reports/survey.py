"""`rnnbench backends`: what is here with its versions, how to get what is not, and what each route supports."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from rnnbench.backends.base import Support
from rnnbench.backends.support_matrix import MODELS, STATES, TIMES, SupportMatrix
from rnnbench.cases.trial import Target

_STYLES = {"native": "green", "emulated": "yellow", "unsupported": "dim"}
_FIRST = next(iter(MODELS))


def print_survey(survey: SupportMatrix, console: Console) -> None:
    """What is here, the strategies of a first model with numbered reasons, and where other models differ."""
    console.print(_backends(survey))
    reasons: dict[str, int] = {}
    console.print(_strategies(survey, reasons))
    numbered = Table.grid(Column(justify="right"), "", padding=(0, 1))
    for reason, number in reasons.items():
        numbered.add_row(str(number), escape(reason))
    console.print(numbered, highlight=False)
    if (others := _others(survey)).row_count:
        console.print(others)


def _backends(survey: SupportMatrix) -> Table:
    table = Table("backend", "routes", "versions, or how to get it", title="Backends", title_justify="left")
    for name, probe in survey.probes.items():
        versions = ", ".join(f"{package} {version}" for package, version in probe.versions.items())
        for route, lack in probe.lacking.items():
            versions += f"\n[yellow]{name}:{route}: {escape(lack.reason)}[/yellow]\n{escape(lack.install)}"
        missing = f"[yellow]{escape(probe.reason)}[/yellow]\n{escape(probe.install)}"
        table.add_row(name, " ".join(probe.routes), versions if probe.available else missing)
    return table


def _strategies(survey: SupportMatrix, reasons: dict[str, int]) -> Table:
    title = f"Strategies, for {_FIRST}: time across; states where one differs (numbers: see below)"
    table = Table(Column("target", no_wrap=True), *TIMES, title=title, title_justify="left", show_lines=True)
    for target in survey.targets:
        table.add_row(str(target), *(_states(survey, target, time, reasons) for time in TIMES))
    return table


def _states(survey: SupportMatrix, target: Target, time: str, reasons: dict[str, int]) -> str:
    """The mark of most states, and below it those that are answered otherwise."""
    by_mark: dict[str, list[str]] = {}
    for state in STATES:
        mark = _mark(survey.support[target, _FIRST, f"{time}-{state}"], reasons)
        by_mark.setdefault(mark, []).append(state)
    most = max(by_mark, key=lambda mark: len(by_mark[mark]))
    return "\n".join([most, *(f"{', '.join(by_mark[mark])}: {mark}" for mark in by_mark if mark != most)])


def _mark(support: Support, reasons: dict[str, int]) -> str:
    word = "—" if support.level == "unsupported" else support.level
    text = _because(support)
    number = f" {reasons.setdefault(text, len(reasons) + 1)}" if text else ""
    return f"[{_STYLES[support.level]}]{word}{number}[/]"


def _because(support: Support) -> str:
    """The reason with the upstream issue behind it, or what there is of the two."""
    upstream = f"({support.upstream})" if support.reason else support.upstream
    return " ".join(part for part in (support.reason, upstream) if part.strip("()"))


def _others(survey: SupportMatrix) -> Table:
    """Where another model is not answered as the first is; targets with one answer stand together."""
    title = f"Models that are not answered as {_FIRST} is"
    table = Table(
        Column("model", no_wrap=True), "strategies: answer, and whose it is", title=title, title_justify="left"
    )
    for kind in MODELS:
        found: dict[str, list[str]] = {}
        for target in survey.targets:
            for answer, strategies in _apart(survey, target, kind).items():
                found.setdefault(f"{', '.join(strategies)}: {answer}", []).append(str(target))
        for answer, targets in found.items():
            table.add_row(kind, f"{escape(answer)}\n[dim]{', '.join(targets)}[/dim]")
    return table


def _apart(survey: SupportMatrix, target: Target, kind: str) -> dict[str, list[str]]:
    """The strategies whose answer is not the first model's, by the answer; a time alone stands for all its states."""
    found: dict[str, list[str]] = {}
    for time in TIMES:
        by_answer: dict[str, list[str]] = {}
        asked = [state for state in STATES if (target, kind, f"{time}-{state}") in survey.support]
        for state in asked:
            there, here = (survey.support[target, model, f"{time}-{state}"] for model in (kind, _FIRST))
            if there.level != here.level:
                by_answer.setdefault(f"{there.level}: {_because(there)}", []).append(state)
        for answer, states in by_answer.items():
            names = [time] if states == asked else [f"{time}-{state}" for state in states]
            found.setdefault(answer, []).extend(names)
    return found
