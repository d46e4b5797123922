"""`rnnbench backends`: what is here with its versions, how to get what is not, and what each route supports."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rnnbench.backends.base import Support
from rnnbench.backends.survey import MODELS, STATES, TIMES, Survey
from rnnbench.cases.trial import Target

_STYLES = {"native": "green", "emulated": "yellow", "unsupported": "dim"}
_FIRST = next(iter(MODELS))


def print_survey(survey: Survey, console: Console) -> None:
    """Two tables, of backends and of strategies, and below them the reasons and where other models differ."""
    console.print(_backends(survey))
    reasons: dict[str, int] = {}
    console.print(_strategies(survey, reasons))
    for reason, number in reasons.items():
        console.print(f"[dim]{number:>3}  {escape(reason)}[/dim]", highlight=False)
    for line in _differences(survey):
        console.print(escape(line), highlight=False)


def _backends(survey: Survey) -> Table:
    table = Table("backend", "routes", "versions, or how to get it", title="Backends", title_justify="left")
    for name, probe in survey.probes.items():
        versions = ", ".join(f"{package} {version}" for package, version in probe.versions.items())
        for route, lack in probe.lacking.items():
            versions += f"\n[yellow]{name}:{route}: {escape(lack.reason)}[/yellow]\n{escape(lack.install)}"
        missing = f"[yellow]{escape(probe.reason)}[/yellow]\n{escape(probe.install)}"
        table.add_row(name, " ".join(probe.routes), versions if probe.available else missing)
    return table


def _strategies(survey: Survey, reasons: dict[str, int]) -> Table:
    title = f"Strategies, for {_FIRST}: time across, states in each place (numbers: see below)"
    table = Table("target", *TIMES, title=title, title_justify="left", show_lines=True)
    for target in survey.targets:
        table.add_row(str(target), *(_states(survey, target, time, reasons) for time in TIMES))
    return table


def _states(survey: Survey, target: Target, time: str, reasons: dict[str, int]) -> str:
    """One mark where all states are answered alike, else one for each answer with its states."""
    by_mark: dict[str, list[str]] = {}
    for state in STATES:
        mark = _mark(survey.support[target, _FIRST, f"{time}-{state}"], reasons)
        by_mark.setdefault(mark, []).append(state)
    if len(by_mark) == 1:
        return next(iter(by_mark))
    return "\n".join(f"{mark}: {', '.join(states)}" for mark, states in by_mark.items())


def _mark(support: Support, reasons: dict[str, int]) -> str:
    word = "—" if support.level == "unsupported" else support.level
    text = f"{support.reason} ({support.upstream})" if support.upstream else support.reason
    number = f" {reasons.setdefault(text, len(reasons) + 1)}" if text else ""
    return f"[{_STYLES[support.level]}]{word}{number}[/]"


def _differences(survey: Survey) -> Iterator[str]:
    """Where another model is not supported as the first is, by target and reason."""
    for target in survey.targets:
        apart: dict[tuple[str, str], list[str]] = {}
        for kind in MODELS:
            for strategy in (f"{time}-{state}" for time in TIMES for state in STATES):
                there, here = survey.support[target, kind, strategy], survey.support[target, _FIRST, strategy]
                if there.level != here.level:
                    apart.setdefault((kind, f"{there.level}: {there.reason}"), []).append(strategy)
        for (kind, answer), strategies in apart.items():
            yield f"{target}, {kind}, {' '.join(strategies)}: {answer}"
