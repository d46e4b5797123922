"""The end of a run in the terminal, in 100 columns: latencies by origin and chunk, outcomes, what failed and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from rnnbench.reports import findings, units
from rnnbench.reports.devices import crossing_tables, devices_sentence
from rnnbench.reports.energy import energy_table
from rnnbench.reports.escape import grid, line, print_grid, show
from rnnbench.reports.expected_failures import XPASS, expected_failures_table
from rnnbench.reports.latencies import places, software_device_table
from rnnbench.reports.paths import narrow_path_table, plain_path_answer
from rnnbench.reports.reliability import measurement_warnings, reliability_sentences
from rnnbench.reports.scenarios import offline_table, server_table, streams_table
from rnnbench.reports.tables import NOT_BELIEVED, SHARED, legend, per_call_and_step, print_table, program, strategy
from rnnbench.results import FAILURES, Entry, Ranking, Run, View, Workload, rank, view_runs
from rnnbench.spelling import count

STYLES = {
    "ok": "green",
    "nonconforming": "bold red",
    "unsupported": "dim",
    "unavailable": "dim",
    NOT_BELIEVED: "bold red",
}
WIDE = 96
"""Columns of a terminal from which public latencies are shown too; the report always has them."""
WIDEST_REASON = 200
"""Characters of a reason; the record has the whole of it."""


def print_summary(run: Run, console: Console) -> None:
    """What `rnnbench run` prints at its end."""
    shown = view_runs([run])
    wide = console.width >= WIDE
    for workload, entries in shown.workloads.items():
        if latencies := _latencies(workload, entries, wide):
            print_grid(console, latencies)
        if (software := software_device_table(entries)).rows:
            print_table(software, console, folds=False)
            show(console, software.note, style="dim")
        if (further_paths := narrow_path_table(entries)).rows:
            print_table(further_paths, console, folds=False)
            show(console, plain_path_answer(entries))
        for further in (streams_table(entries), server_table(entries), energy_table(entries)):
            if further.rows:
                print_table(further, console, folds=False)
                show(console, further.note, style="dim")
    for title, contents in crossing_tables(shown):
        for content in filter(lambda table: table.rows, contents):
            print_table(replace(content, title=f"{title}: {content.title.lower()}"), console, folds=False)
    if (offline := offline_table(shown.entries)).rows:
        print_table(offline, console, folds=False)
        show(console, offline.note, style="dim")
    if any(entry.ranked for entry in shown.entries):
        show(console, f"Medians, ranked by bound latency. {places(shown.entries)} {_legend(shown, wide)}", style="dim")
    for text in _not_fully_checked(shown):
        console.print(text, highlight=False)
    print_outcomes(shown, console)
    for sentence in reliability_sentences(shown):
        show(console, sentence)
    for warning in (*shown.warnings, *measurement_warnings(shown)):
        show(console, f"warning: {warning}", style="yellow")


def _legend(shown: View, wide: bool) -> str:
    """The signs that the tables of latencies use, and what the group of kernels is."""
    rankings = [ranking for entries in shown.workloads.values() for ranking in rank(entries)]
    return legend(cell for ranking in rankings for row, _ in _rows(ranking, wide) for cell in row)


def print_outcomes(shown: View, console: Console) -> None:
    """Why trials are not `ok`, and how many ended how."""
    for text in (*_reasons(shown), *_not_believed(shown), *_expected(shown)):
        console.print(text, highlight=False)
    console.print(_outcomes(shown), highlight=False)
    if sentence := devices_sentence(shown):
        show(console, sentence)


def _latencies(workload: Workload, entries: Sequence[Entry], wide: bool) -> Grid | None:
    rankings = rank(entries)
    if not rankings:
        return None
    public = ("public\n/call", "\n/step") if wide else ()
    names = ("program", "strategy", "chunk", "place", "bound\n/call", "\n/step", *public, "build")
    several = any(place.entry.chunk_label != "1" for ranking in rankings for place in ranking.places)
    # Where every call is one step, its latency per step would stand twice.
    kept = [index for index, name in enumerate(names) if several or name != "\n/step"]
    shown = grid(str(workload))
    for index in kept:
        shown.add_column(
            names[index],
            justify="left" if index < 2 else "right",
            no_wrap=index > 0,
            overflow="fold" if index == 0 else "ellipsis",
        )
    previous = ""
    for ranking in rankings:
        if ranking.origin != previous:
            shown.add_section()
            shown.add_row(f"[bold]{ranking.origin}[/bold]")
            previous = ranking.origin
        for row, style in _rows(ranking, wide):
            shown.add_row(*(line(row[index]) for index in kept), style=style)
    return shown


def _rows(ranking: Ranking, wide: bool) -> Iterator[tuple[list[str], str]]:
    """Cells and style of each row."""
    for place in ranking.places:
        yield list(_row(place.entry, str(place), wide)), ""
        for entry in place.sharing:
            yield list(_row(entry, SHARED, wide)), "dim"


def _row(entry: Entry, place: str, wide: bool) -> Iterator[str]:
    yield program(entry)
    yield strategy(entry)
    yield entry.chunk_label
    yield place
    yield from per_call_and_step(entry.bound, entry.chunk)
    if wide:
        yield from per_call_and_step(entry.public, entry.chunk)
    yield units.seconds(entry.measured.timing.build_s if entry.measured else None)


def _reasons(shown: View) -> Iterator[Text]:
    for outcome, stage, target, how, at, trials, reason, upstream in findings.not_run_table(shown).rows:
        if outcome.endswith("as expected"):
            continue
        issue = "" if upstream == units.MISSING else f" ({upstream})"
        when = "" if stage == units.MISSING or outcome == "unsupported" else f" at {stage}"
        where = _where(target, how, at, trials)
        yield line((f"{outcome}{when}", STYLES.get(outcome, "red")), f" {where}: {_shortened(reason)}{issue}")


def _not_believed(shown: View) -> Iterator[Text]:
    for mark, target, how, at, trials, reason in findings.not_believed_table(shown).rows:
        yield line((mark, STYLES[mark]), f" {_where(target, how, at, trials)}: {_shortened(reason)}")


def _not_fully_checked(shown: View) -> Iterator[Text]:
    """A line for each reason. Which trials they are is in the report."""
    rows = findings.too_short_table(shown).rows
    for reason in dict.fromkeys(why for *_, why, _ in rows):
        trials = sum(int(number) for *_, number, why, _ in rows if why == reason)
        checks = dict.fromkeys(name for *_, why, names in rows if why == reason for name in names.split(", "))
        yield line(
            ("not fully checked", "yellow"),
            f" {count(trials, 'trial')}, {reason}: {_shortened(', '.join(checks))}; the report says which",
        )


def _expected(shown: View) -> Iterator[Text]:
    for verdict, target, how, what, trials, reason, upstream in expected_failures_table(shown).rows:
        style = "bold red" if verdict == XPASS else "dim"
        yield line((verdict, style), f" {_where(target, how, what, trials)}: {reason} ({upstream})")


def _where(target: str, strategies: str, at: str, trials: str) -> str:
    """Which trials a row of findings is about, and how many, where it is more than one."""
    return f"{target} {strategies}, {at}" + (f" ({trials} trials)" if trials != "1" else "")


def _shortened(reason: str) -> str:
    short = reason if len(reason) <= WIDEST_REASON else f"{reason[:WIDEST_REASON]}…"
    return " ".join(short.split())


def _outcomes(shown: View) -> Text:
    counts = findings.outcome_counts(shown)
    if not counts:
        return line(f"{count(len(shown.entries), 'trial')}: no trial was recorded")
    parts: list[str | tuple[str, str]] = []
    for name, number in counts:
        style = "dim" if name.endswith("as expected") else STYLES.get(name, "red")
        parts += [", " if parts else f"{count(len(shown.entries), 'trial')}: ", (f"{number} {name}", style)]
    failed = sum(number for name, number in counts if name in FAILURES)
    if failed:
        parts += ["; ", (f"{failed} failed", "red")]
    if not_believed := findings.not_believed_count(shown):
        parts += ["; ", (f"{not_believed} {NOT_BELIEVED}", STYLES[NOT_BELIEVED])]
    return line(*parts)
