"""A comparison of two runs, in the terminal and as Markdown: warnings first, then regressions, then the rest."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from rnnbench.reports import markdown, units
from rnnbench.reports.escape import Markdown, grid, line, paragraph, show
from rnnbench.reports.tables import NOT_BELIEVED, Table
from rnnbench.results import ERROR_RATE, BuildChange, Comparison, LatencyChange, Verdict, short_names

VERDICTS: tuple[Verdict, ...] = ("SLOWER", "FASTER", "UNDECIDED", "SAME")
MOST_ROWS = 40
"""Rows of one table in the terminal; the Markdown has all."""
PAIRED = (
    "Processes of the two sides were sampled in turn, pair by pair, until there was a verdict. The interval is "
    "corrected for the number of looks at it."
)
APART = (
    "The runs were not sampled in turn: a drift of the machine between them is part of the ratio. `rnnbench ab` "
    "samples in turn."
)
TWO_MACHINES = "*"
"""Mark of a verdict on two machines."""
STYLES = {"SLOWER": "bold red", "FASTER": "green", "UNDECIDED": "yellow", "SAME": "dim", NOT_BELIEVED: "bold red"}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """What `rnnbench compare` and `ab` print, with short names; `compare` leaves out what stayed the same."""
    for warning in comparison.warnings:
        show(console, f"warning: {warning}", style="yellow")
    names = short_names(_trials(comparison))
    for content in _tables(comparison):
        shown = grid(content.title)
        for index, name in enumerate(content.columns):
            text = index < content.text
            shown.add_column(name, justify="left" if text else "right", overflow="fold", no_wrap=not text)
        rows = [row for row in content.rows if comparison.paired or row[0].removesuffix(TWO_MACHINES) != "SAME"]
        for row in rows[:MOST_ROWS]:
            shown.add_row(
                *(line(names.get(cell, cell)) for cell in row), style=STYLES.get(row[0].removesuffix(TWO_MACHINES))
            )
        if rows:
            console.print(shown)
        if len(rows) > MOST_ROWS:
            show(console, f"… and {len(rows) - MOST_ROWS} more")
    show(console, summary(comparison), style="bold red" if comparison.regressed else "green")
    if comparison.latencies:
        show(console, _how_sampled(comparison), style="dim")


def comparison_markdown(comparison: Comparison) -> str:
    """The comparison as a page, with every trial."""
    parts: list[str] = [
        Markdown("# {} against {}").format(comparison.new, comparison.base),
        Markdown("**{}**").format(summary(comparison)),
    ]
    parts += comparison.about
    parts += [Markdown("> **Warning:** {}").format(warning) for warning in comparison.warnings]
    for content in _tables(comparison):
        parts += [Markdown("## {}").format(content.title), markdown.table(content)]
        if content.note:
            parts.append(content.note)
    return "\n\n".join(map(paragraph, parts)) + "\n"


def _trials(comparison: Comparison) -> Iterator[str]:
    for changes in (comparison.latencies, comparison.outcomes, comparison.builds):
        yield from (change.trial for change in changes)
    yield from (trial.trial for trial in comparison.not_believed)
    yield from comparison.only_base
    yield from comparison.only_new


def summary(comparison: Comparison) -> str:
    """One sentence: how many of each verdict, and whether anything regressed."""
    counts = ", ".join(f"{comparison.count(verdict)} {verdict}" for verdict in VERDICTS)
    broken = sum(change.regressed for change in comparison.outcomes)
    not_believed = len({trial.trial for trial in comparison.not_believed})
    no_verdict = f"; {units.count(not_believed, 'trial')} not believed, without verdict" if not_believed else ""
    no_longer = f"; {units.count(broken, 'trial')} no longer ok" if broken else ""
    verdict = "REGRESSED" if comparison.regressed else "no regression"
    return f"{verdict}: of {units.count(len(comparison.latencies), 'comparison')} {counts}{no_longer}{no_verdict}"


def _tables(comparison: Comparison) -> Iterator[Table]:
    contents = (
        _outcome_table(comparison),
        _not_believed_table(comparison),
        _latency_table(comparison),
        _build_table(comparison),
        _only_table(comparison),
    )
    yield from (content for content in contents if content.rows)


def _outcome_table(comparison: Comparison) -> Table:
    rows = [
        ("REGRESSED" if c.regressed else "changed", c.trial, f"{c.base} → {c.new}", c.reason)
        for c in comparison.outcomes
    ]
    return Table("Outcomes that changed", ("", "trial", "outcome", "reason"), tuple(sorted(rows)), text=4)


def _not_believed_table(comparison: Comparison) -> Table:
    rows = [(NOT_BELIEVED, c.trial, c.run, c.reason) for c in comparison.not_believed]
    return Table("Not believed: no verdict", ("", "trial", "run", "reason"), tuple(rows), text=4)


def _latency_table(comparison: Comparison) -> Table:
    def order(change: LatencyChange) -> tuple[int, float, str, str]:
        return VERDICTS.index(change.verdict), -abs(change.ratio - 1), change.trial, change.path

    mark = TWO_MACHINES if comparison.two_machines else ""
    rows = [
        (
            Markdown(c.verdict + mark),
            c.trial,
            c.path,
            units.seconds(c.base),
            units.seconds(c.new),
            f"{c.ratio:.3f}",
            *_evidence(c),
        )
        for c in sorted(comparison.latencies, key=order)
    ]
    return Table(
        f"Latency per call, {comparison.new} against {comparison.base}",
        ("verdict", "trial", "path", "base", "new", "ratio", f"{1 - ERROR_RATE:.0%}", "n"),
        tuple(rows),
        text=3,
        note=Markdown(
            f"The smallest change that matters is {comparison.threshold:.1%}. The ratio is new over base, with its "
            f"{1 - ERROR_RATE:.0%} interval over processes, n of each side. {_how_sampled(comparison)}"
        ),
    )


def _how_sampled(comparison: Comparison) -> str:
    sentence = PAIRED if comparison.paired else APART
    return f"{sentence} {TWO_MACHINES}: of two machines." if comparison.two_machines else sentence


def _evidence(change: LatencyChange) -> tuple[str, str]:
    """The interval, and how many processes of each side it rests on."""
    interval = change.judged.interval
    shown = "one process" if interval is None else f"{interval[0]:.3f}–{interval[1]:.3f}"
    return shown, str(change.judged.observations)


def _build_table(comparison: Comparison) -> Table:
    rows = [(c.what, c.trial, _built(c, c.base), _built(c, c.new)) for c in comparison.builds]
    return Table(
        "Build results that changed",
        ("what", "trial", "base", "new"),
        tuple(rows),
        text=2,
        note="A build is timed once, so it has no verdict.",
    )


def _built(change: BuildChange, value: float | int | str) -> str:
    if isinstance(value, str):
        return value
    return units.seconds(value) if change.what == "build" else units.nbytes(value)


def _only_table(comparison: Comparison) -> Table:
    rows = [("base only", trial) for trial in comparison.only_base]
    rows += [("new only", trial) for trial in comparison.only_new]
    return Table("Trials of one run only", ("where", "trial"), tuple(rows), text=2)
