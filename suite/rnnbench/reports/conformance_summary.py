"""`rnnbench check` in the terminal: a line for each program and strategy, and every check that fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from rnnbench.reports import units
from rnnbench.reports.coverage import coverage, sentences
from rnnbench.reports.escape import grid, line, print_grid, show
from rnnbench.reports.tables import program
from rnnbench.reports.terminal import print_outcomes
from rnnbench.results import NO_ANSWER, CheckResult, Entry, Record, Run, view_runs, worst_rounding
from rnnbench.spelling import count

WORST_ERROR = "Worst error: as a multiple of the expected rounding error."
TOO_SHORT = "Too short: the time of a check was over too soon to mean anything, in one trial at least."


def print_conformance(run: Run, console: Console) -> None:
    """Backend × strategy × check in short; the report has the whole matrix."""
    shown = view_runs([run])
    table = grid("Conformance")
    for name in ("program", "strategy", "trials", "worst error", "checks"):
        table.add_column(name, justify="right" if name in ("trials", "worst error") else "left", overflow="fold")
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in shown.entries:
        if entry.record.conformance:
            groups.setdefault((program(entry), entry.strategy), []).append(entry)
    for (target, strategy), entries in sorted(groups.items()):
        table.add_row(line(target), line(strategy), str(len(entries)), _worst(entries), _checks(entries))
    if groups:
        print_grid(console, table)
        too_short = any(entry.record.too_short_checks for entry in shown.entries)
        show(console, f"{WORST_ERROR} {TOO_SHORT}" if too_short else WORST_ERROR, style="dim")
    for covered in coverage([entry.record for entry in shown.entries]):
        for sentence in sentences(covered):
            show(console, sentence)
    for sentence in how_far([entry.record for entry in shown.entries]):
        show(console, sentence)
    print_outcomes(shown, console)


def how_far(records: Sequence[Record]) -> Iterator[str]:
    """A sentence for each check whose time was over in some trials before its end.

    How many they are, how far the shortest came, and in how many of them that was too short to mean anything.
    """
    by_check: dict[str, list[CheckResult]] = {}
    for record in records:
        for name, result in record.conformance.items():
            if "planned" in result.figures:
                by_check.setdefault(name, []).append(result)
    for name, results in by_check.items():
        ended = [result for result in results if result.figures["done"] < result.figures["planned"]]
        if not ended:
            continue
        shortest = min(ended, key=lambda result: result.figures["done"] / result.figures["planned"]).figures
        too_short = sum(result.verdict == "too-short" for result in ended)
        sentence = (
            f"check '{name}' ran out of time in {len(ended):,} of {count(len(results), 'trial')}; the shortest "
            f"made {shortest['done']:,.0f} of {shortest['planned']:,.0f} repetitions"
        )
        if too_short:
            sentence += (
                f"; in {too_short:,} of them it was too short to mean anything (below {shortest['least']:,.0f}), "
                f"and these have not passed"
            )
        yield sentence
    yield from _never_begun(records)


def _never_begun(records: Sequence[Record]) -> Iterator[str]:
    """A sentence about checks that did not begin because the time of their trial was over, with one trial's reason."""
    late = [record for record in records if any(result.not_begun for result in record.conformance.values())]
    if not late:
        return
    results = {name: result for record in late for name, result in record.conformance.items() if result.not_begun}
    yield (
        f"{count(len(results), 'check')} did not begin in {len(late):,} of {count(len(records), 'trial')}, "
        f"and these have not passed: {', '.join(results)} ({next(iter(results.values())).detail}). "
        "Give more time, as in --set limits.trial=1200s"
    )


def _worst(entries: Sequence[Entry]) -> str:
    worst = worst_rounding(result for entry in entries for result in entry.record.conformance.values())
    return units.MISSING if worst is None else f"{units.multiple(worst)}×"


def _checks(entries: Sequence[Entry]) -> Text:
    failed: dict[str, int] = {}
    ran: set[str] = set()
    too_short: set[str] = set()
    chaotic: set[str] = set()
    for entry in entries:
        too_short.update(entry.record.too_short_checks)
        for name, figure in entry.record.conformance.items():
            if figure.verdict not in NO_ANSWER:
                ran.add(name)
                failed[name] = failed.get(name, 0) + (figure.verdict == "fail")
                chaotic |= {name} if figure.verdict == "chaotic" else set()
    expected = Counter(f.what for entry in entries for f in entry.record.expected_failures if f.verdict == "failed")
    broken = [f"{name} {count} of {len(entries)}" for name, count in failed.items() if count > expected[name]]
    if broken:
        return line(f"✗ {', '.join(broken)}", style="bold red")
    if xfail := [f"{name} {count} of {len(entries)}" for name, count in failed.items() if count]:
        return line(f"xfail {', '.join(xfail)}", style="yellow")
    passed = ran - too_short
    if not passed:
        return line(f"none passed, {len(too_short)} too short" if too_short else "none ran", style="yellow")
    diverging = ", up to chaos: " + ", ".join(sorted(chaotic & passed)) if chaotic & passed else ""
    if too_short:
        return line(f"✓ {len(passed)}, {len(too_short)} too short{diverging}", style="yellow")
    return line(f"✓ all {len(ran)}{diverging}", style="green")
