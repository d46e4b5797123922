"""A comparison of two runs as Markdown, for a pull request's comment: the answer in 40 lines, everything else folded.

GitHub refuses a comment of more than 65,536 characters, so the folded tables are cut where they would be longer, and
say so. They are sorted so that the end, which is cut, is what changed least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from rnnbench.reports import units
from rnnbench.reports.comparison_tables import (
    TWO_MACHINES,
    VERDICTS,
    amount,
    by_target,
    comparison_tables,
    counts,
    falls,
    headline,
    interval_of,
    mark,
    ordered_facts,
    ordered_latencies,
    ratio_of,
    rises,
)
from rnnbench.reports.escape import Markdown, code, paragraph
from rnnbench.reports.tables import Table, markdown_table
from rnnbench.results import Comparison, CostChange, FactChange, LatencyChange, short_names, visible
from rnnbench.spelling import count

COMMENT_CHARACTERS = 65_000
"""Most characters of a comment. GitHub allows 65,536; a job adds the mark by which it finds its comment again."""
VISIBLE_LINES = 40
"""Lines that are not blank and not folded."""
VISIBLE_WARNINGS = 4
VISIBLE_TARGETS = 6
VISIBLE_ABOUT = 4
LONGEST_DETAIL = 160
"""Characters of a reason, and of a warning, that are not folded."""
LEAST_ROW = 30
"""Characters that a row has at least: no table is rendered that cannot fit."""
FEW_LATENCIES = 12
"""Up to so many latencies, the list of changes says it all, and no table by target is shown."""
CUT = "{} rows are left out here: a comment holds 65,536 characters. `rnnbench compare` with `--json` has all of them."


Change = TypeVar("Change", FactChange, LatencyChange, CostChange)


@dataclass(frozen=True)
class _Group:
    """Changes of one sort, a line each."""

    noun: str
    lines: Sequence[Callable[[], Markdown]]


def comparison_markdown(comparison: Comparison, most_characters: int | None = None) -> str:
    """The comparison as a page; with `most_characters`, its tables are cut so that it has no more."""
    head = [Markdown("# {} against {}").format(comparison.new, comparison.base)]
    head.append(Markdown("**{}**").format(headline(comparison)))
    head.append(Markdown("{}").format(counts(comparison)))
    head += [paragraph(_short(sentence)) for sentence in comparison.about[:VISIBLE_ABOUT]]
    if comparison.warnings:
        head.append(_warnings(comparison.warnings))
    if len(comparison.latencies) > FEW_LATENCIES:
        head.append(markdown_table(_target_table(comparison)))
    tables = list(comparison_tables(comparison))
    if len(comparison.warnings) > VISIBLE_WARNINGS or any(len(w) > LONGEST_DETAIL for w in comparison.warnings):
        rows = tuple((warning,) for warning in comparison.warnings)
        tables.append(Table("All warnings", ("warning",), rows))
    left = VISIBLE_LINES - _lines(head) - len(tables) - bool(comparison.two_machines)
    head += _changes(comparison, left)
    if comparison.two_machines:
        head.append(Markdown(f"\\{TWO_MACHINES} Of two machines: it compares the machines too."))
    page = Markdown("\n\n").join(head)
    room = None if most_characters is None else most_characters - len(page) - 2
    return "\n\n".join([page, *_folded(tables, room)]) + "\n"


def _lines(parts: Iterable[str]) -> int:
    return sum(bool(line.strip()) for part in parts for line in part.split("\n"))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_DETAIL else f"{visible(text[:LONGEST_DETAIL])}…"


def _warnings(warnings: Sequence[str]) -> Markdown:
    lines = [Markdown("> **Warning:** {}").format(_short(warning)) for warning in warnings[:VISIBLE_WARNINGS]]
    if (more := len(warnings) - VISIBLE_WARNINGS) > 0:
        lines.append(Markdown(f"> and {count(more, 'more warning')}, below"))
    return Markdown("  \n").join(lines)


def _target_table(comparison: Comparison) -> Table:
    summaries = by_target(comparison)
    rows = [
        (summary.target, *(f"{count:,}" for count in summary.counts), f"{summary.ratio:.3f}")
        for summary in summaries[:VISIBLE_TARGETS]
    ]
    if (more := len(summaries) - VISIBLE_TARGETS) > 0:
        rows.append((f"and {count(more, 'more target')}", *[""] * (len(VERDICTS) + 1)))
    columns = ("latencies of", *(verdict + mark(comparison) for verdict in VERDICTS), "median ratio")
    return Table("Latencies by target", columns, tuple(rows))


@dataclass(frozen=True)
class _Lines:
    """How each sort of change is said in a line."""

    names: dict[str, str]
    mark: str

    @classmethod
    def of(cls, comparison: Comparison) -> _Lines:
        return cls(short_names(_trials(comparison)), mark(comparison))

    def fact(self, change: FactChange) -> Markdown:
        return Markdown("- {} {}{}").format(_name(self.names, change.trial), _short(change.sentence), self.mark)

    def latency(self, change: LatencyChange) -> Markdown:
        return Markdown("- {} {} latency **{}**: {} → {}, ratio {} ({})").format(
            _name(self.names, change.trial),
            change.path,
            change.verdict + self.mark,
            units.seconds(change.base),
            units.seconds(change.new),
            f"{change.ratio:.3f}",
            interval_of(change),
        )

    def cost(self, change: CostChange) -> Markdown:
        result = change.result + self.mark
        exact = change.cost.basis == "exact"
        verdict = Markdown("**{}**").format(result) if exact else f"{result} its threshold (one measurement)"
        detail = f": {change.detail}" if change.detail else ""
        return Markdown("- {} {} {}: {} → {}, ratio {}{}").format(
            _name(self.names, change.trial),
            change.cost.title,
            verdict,
            amount(change, change.base),
            amount(change, change.new),
            ratio_of(change),
            detail,
        )


def _group(noun: str, line: Callable[[Change], Markdown], changes: Iterable[Change]) -> _Group:
    return _Group(noun, [partial(line, change) for change in changes])


def _sections(comparison: Comparison) -> dict[str, list[_Group]]:
    """The groups of each title that have a line: what became worse, other changes, what became better."""
    lines = _Lines.of(comparison)
    facts = ordered_facts(comparison.facts)
    latencies = ordered_latencies(comparison.latencies)

    def of_facts(direction: str) -> list[_Group]:
        some = [change for change in facts if change.direction == direction]
        return [_group(noun, lines.fact, those) for noun, those in _by_fact(some)]

    def of_latencies(verdict: str) -> _Group:
        return _group(verdict, lines.latency, [change for change in latencies if change.verdict == verdict])

    def of_costs(some: Sequence[CostChange]) -> list[_Group]:
        return [_group(noun, lines.cost, those) for noun, those in _by_measure(some)]

    sections = {
        "Worse": [*of_facts("worse"), of_latencies("SLOWER"), *of_costs(rises(comparison.costs))],
        "Changed": of_facts("neutral"),
        "Better": [*of_facts("better"), of_latencies("FASTER"), *of_costs(falls(comparison.costs))],
    }
    with_lines = {title: [group for group in groups if group.lines] for title, groups in sections.items()}
    return {title: groups for title, groups in with_lines.items() if groups}


def _changes(comparison: Comparison, lines: int) -> Iterator[Markdown]:
    """The sections, in so many lines."""
    sections = _sections(comparison)
    for title, groups in sections.items():
        lines -= 1
        # What became worse may take all lines but those that name the rest once.
        later = sum(1 + len(sections[other]) for other in list(sections)[list(sections).index(title) + 1 :])
        groups_shown = list(_fitted(groups, max(lines - later, len(groups))))
        lines -= len(groups_shown)
        yield Markdown("\n").join([Markdown(f"**{title}**\n"), *groups_shown])


def _fitted(groups: Sequence[_Group], lines: int) -> Iterator[Markdown]:
    """The lines of all groups, where there are too many the first ones of each and how many more there are."""

    def needed(most: int) -> int:
        return sum(min(len(group.lines), most) + (len(group.lines) > most) for group in groups)

    most = max(len(group.lines) for group in groups)
    while most > 0 and needed(most) > lines:
        most -= 1
    for group in groups:
        for line in group.lines[:most]:
            yield line()
        if (more := len(group.lines) - most) > 0:
            yield Markdown("- and {} more {}" if most else "- {} {}").format(f"{more:,}", group.noun)


_FACT_NOUNS = {
    ("outcome", ""): "with another outcome",
    ("failed_checks", ""): "with other checks that fail",
    ("believed", "false"): "no longer believed",
    ("believed", "true"): "believed again",
    ("measured", "false"): "vanished",
    ("measured", "true"): "new",
    ("support", ""): "with another support level",
    ("lowered", ""): "lowered to another form",
}
"""What is said of several changes, by their fact and, where it differs, by its new value."""


def _by_fact(changes: Sequence[FactChange]) -> Iterator[tuple[str, list[FactChange]]]:
    for (fact, new), noun in _FACT_NOUNS.items():
        yield noun, [change for change in changes if change.fact == fact and new in ("", change.new)]


def _by_measure(changes: Sequence[CostChange]) -> Iterator[tuple[str, list[CostChange]]]:
    for measure in dict.fromkeys(change.measure for change in changes):
        of_measure = [change for change in changes if change.measure == measure]
        yield f"in {of_measure[0].cost.title}", of_measure


def _name(names: dict[str, str], trial: str) -> Markdown:
    return code(visible(names.get(trial, trial), LONGEST_DETAIL) or trial)


def _trials(comparison: Comparison) -> Iterator[str]:
    for changes in (comparison.latencies, comparison.facts, comparison.costs):
        yield from (change.trial for change in changes)


def _folded(tables: Sequence[Table], room: int | None) -> Iterator[str]:
    """Each table under a line that unfolds it. Where there is no room for all, the longest are cut."""
    if room is None:
        yield from map(_details, tables)
        return
    whole = [_details(table) if len(table.rows) * LEAST_ROW <= room else None for table in tables]
    lengths = [room + 1 if text is None else len(text) + 2 for text in whole]
    share = _share(lengths, room)
    for table, text, length in zip(tables, whole, lengths, strict=True):
        yield text if text is not None and length <= share else _cut(table, share - 2)


def _share(lengths: Sequence[int], room: int) -> int:
    """The length to which the longest are cut so that all fit: shorter ones stay whole."""
    left, number = room, len(lengths)
    for length in sorted(lengths):
        if length * number > left:
            return left // number
        left, number = left - length, number - 1
    return room


def _cut(table: Table, most: int) -> str:
    """The table with as many rows as fit."""
    low, high = 0, min(len(table.rows), most // LEAST_ROW)
    while low < high:
        rows = (low + high + 1) // 2
        low, high = (rows, high) if len(_details(table, rows)) <= most else (low, rows - 1)
    return _details(table, low)


def _details(table: Table, rows: int | None = None) -> str:
    """The table folded, with its first `rows`."""
    shown = table if rows is None else replace(table, rows=table.rows[:rows])
    # GitHub renders no Markdown in a summary, so the titles of these tables hold no text from outside.
    parts = [
        Markdown(f"<details><summary>{table.title} ({count(len(table.rows), 'row')})</summary>"),
        markdown_table(shown),
    ]
    if rows is not None:
        parts.append(Markdown(CUT).format(f"{len(table.rows) - rows:,}"))
    if table.note:
        parts.append(paragraph(table.note))
    return "\n\n".join([*parts, "</details>"])
