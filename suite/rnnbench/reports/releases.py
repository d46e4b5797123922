"""The tables of a backfill (releases against trials, and each trial's releases with their intervals), and its page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rnnbench.disk import write_text
from rnnbench.history import ReleasePoint, ReleaseSeries, ReleaseStep, release_versions
from rnnbench.reports import units
from rnnbench.reports.errors import unwritable_folder
from rnnbench.reports.escape import Markdown, paragraph
from rnnbench.reports.tables import Table, markdown_table
from rnnbench.results import ERROR_RATE, SMALLEST, short_names

PAGE = "releases.md"
SIGNS = {"SLOWER": "▲", "FASTER": "▼"}
RELEASE_LEGEND = (
    "A figure is the latency over that of the reference release, which was sampled in turn with it. "
    "▲ slower, ▼ faster than the measured release before it; a dash was not measured. "
    "The reference stands beside itself, too: how far that is from 1 is noise. "
    f"All verdicts of one trial and path hold together with a chance of {100 * (1 - ERROR_RATE):.0f} %."
)


def release_tables(series: Sequence[ReleaseSeries], smallest: float = SMALLEST) -> list[Table]:
    """The releases against the trials, then for each trial every release with its interval.

    A table of the first kind has one latency path, one reference release and one machine.
    """
    names = short_names(each.trial for each in series)
    measured = [each for each in series if any(point.ratios for point in each.points)]
    several_machines = len({each.machine for each in measured}) > 1
    several_references = len({each.reference for each in measured}) > 1

    def machine(each: ReleaseSeries) -> str:
        return f", machine {each.machine}" if several_machines else ""

    groups: dict[tuple[str, str, str], list[ReleaseSeries]] = {}
    for each in measured:
        groups.setdefault((each.path, each.reference, machine(each)), []).append(each)
    overviews = [
        _overview(f"{path} latency over that of {reference}{on_machine}", of_group, names, smallest)
        for (path, reference, on_machine), of_group in groups.items()
    ]
    details = []
    for each in measured:
        over = f" over {each.reference}" if several_references else ""
        details.append(_detail(f"{each.trial}, {each.path}{over}{machine(each)}", each, smallest))
    return [*overviews, *details]


def _overview(title: str, series: Sequence[ReleaseSeries], names: dict[str, str], smallest: float) -> Table:
    versions = release_versions(series)
    columns = []
    for each in series:
        signs = {step.after: SIGNS.get(step.judged.verdict, "") for step in each.steps(smallest)}
        by_version = {point.version: point for point in each.points}
        columns.append([_ratio(by_version.get(version), signs.get(version, "")) for version in versions])
    rows = zip(versions, *columns, strict=True)
    heads = (names.get(each.trial, each.trial) for each in series)
    return Table(title, ("release", *heads), tuple(rows))


def _detail(title: str, series: ReleaseSeries, smallest: float) -> Table:
    steps = {step.after: step for step in series.steps(smallest)}
    rows = []
    for point in series.points:
        judged = point.judged
        rows.append(
            (
                point.version,
                point.released,
                _against(steps.get(point.version)) if judged else point.outcome,
                f"{judged.ratio:.3f}" if judged else units.MISSING,
                _interval(judged.interval) if judged else units.MISSING,
                str(judged.observations) if judged else units.MISSING,
            )
        )
    columns = ("release", "day", "against the release before", "ratio to the reference", "interval", "pairs")
    return Table(title, columns, tuple(rows), text=3)


def _against(step: ReleaseStep | None) -> str:
    return f"{step.judged.verdict} {step.judged.ratio:.3f} {_interval(step.judged.interval)}" if step else ""


def _interval(interval: tuple[float, float] | None) -> str:
    return f"({interval[0]:.3f} to {interval[1]:.3f})" if interval else "(one pair)"


def _ratio(point: ReleasePoint | None, sign: str) -> str:
    judged = point.judged if point else None
    return f"{sign}{judged.ratio:.3f}" if judged else units.MISSING


def write_release_page(title: str, sentences: Sequence[str], tables: Sequence[Table], folder: Path) -> Path:
    """Write the page into `folder` and return it. Raises ReportError."""
    parts: list[str] = [Markdown("# {}").format(title)]
    parts.append(Markdown("\n").join(Markdown("- {}").format(sentence.strip()) for sentence in sentences))
    for content in tables:
        parts += [Markdown("## {}").format(content.title), markdown_table(content)]
        if content.note:
            parts.append(content.note)
    page = folder / PAGE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(page, "\n\n".join(map(paragraph, parts)) + "\n")
    except OSError as error:
        raise unwritable_folder(folder, error) from error
    return page
