"""The latency paths that a case asks for, such as cold and paced calls, and the steps per second of a batch.

Columns and words come from `measure.paths.PATHS`, so that a new path shows here without a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from rnnbench.measure import PATHS, LatencyPath, PathFigure
from rnnbench.reports import units
from rnnbench.reports.escape import Markdown, code
from rnnbench.reports.tables import Table, p99, program, strategy
from rnnbench.results import STEPS_PER_S, Entry, Latency

Named = Callable[[Entry], str]
Columns = Mapping[str, Callable[[Entry], str]]
"""By the name of a column, its cell for an entry; empty where the entry has no such figure."""


PACED = {"period", "real_time_factor", "deadline_misses"}
"""Figures of a path that has a period."""


def path_table(entries: Sequence[Entry]) -> Table:
    """The latency paths that the case of one workload asks for; no rows where it asks for none."""
    columns: dict[str, Callable[[Entry], str]] = {}
    notes = []
    for path in requested_paths(entries):
        columns[f"{path.name}/call"] = partial(_median, path.name)
        columns[f"{path.name} ÷ {path.entry}"] = partial(_ratio, path)
        columns[f"{path.name} p99"] = partial(_p99, path.name)
        notes.append(f"{path.name}: {path.meaning}")
        for figure in path.figures:
            columns[figure.title] = partial(_figure, path.name, figure)
            if figure.meaning:
                notes.append(f"{figure.title}: {figure.meaning}")
    columns["steps/s"] = _steps_per_s
    notes.append("÷ bound: over the bound latency of the ranking. steps/s: of all streams of the batch.")
    return _table(entries, columns, " ".join(note[0].upper() + note[1:] for note in notes))


def narrow_path_table(entries: Sequence[Entry]) -> Table:
    """The ratios and shares of `path_table`, for a terminal of 80 columns."""
    columns: dict[str, Callable[[Entry], str]] = {}
    for path in requested_paths(entries):
        columns[_broken(f"{path.name} ÷ {path.entry}")] = partial(_ratio, path)
        for figure in path.figures:
            if figure.unit != "seconds":
                columns[_broken(figure.title)] = partial(_narrow_figure, path.name, figure)
    columns["steps/s"] = _steps_per_s
    return _table(entries, columns, "")


def path_answer(entries: Sequence[Entry]) -> Markdown:
    """Sentences about one workload: which programs keep up, what each path costs, and the most steps per second."""
    return Markdown(_sentences(entries, _as_markdown))


def plain_path_answer(entries: Sequence[Entry]) -> str:
    """The same as text, for a terminal."""
    return _sentences(entries, _named)


def _sentences(entries: Sequence[Entry], named: Named) -> str:
    """Only `named` brings text from outside into them."""
    timed = [entry for entry in _timed(entries) if not entry.shares and not entry.on_software_device]
    return " ".join((*_pace(timed, named), *_slower(timed, named), *_throughput(timed, named)))


def requested_paths(entries: Sequence[Entry]) -> list[LatencyPath]:
    """The paths with a setting that some of these trials were sampled by."""
    paths = (path for path in PATHS.values() if path.setting is not None)
    return [path for path in paths if any(entry.latency(path.name) for entry in entries)]


def _table(entries: Sequence[Entry], columns: Columns, note: str) -> Table:
    timed = _timed(entries)
    cells = {name: [shown(entry) for entry in timed] for name, shown in columns.items()}
    present = {name: column for name, column in cells.items() if any(column)}
    rows = [
        (
            program(entry),
            strategy(entry),
            entry.chunk_label,
            *(column[row] or units.MISSING for column in present.values()),
        )
        for row, entry in enumerate(timed)
    ]
    shown = tuple(rows) if present else ()
    return Table("Further latency paths", ("program", "strategy", "chunk", *present), shown, text=2, note=note)


def _timed(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.measured and entry.conforming]


def _median(path: str, entry: Entry) -> str:
    latency = entry.latency(path)
    return units.seconds(latency.median) if latency else ""


def _ratio(path: LatencyPath, entry: Entry) -> str:
    latency, usual = entry.latency(path.name), entry.latency(path.entry)
    return units.ratio(latency.median / usual.median) if latency and usual else ""


def _p99(path: str, entry: Entry) -> str:
    latency = entry.latency(path)
    seconds = p99(latency) if latency else None
    return "" if seconds is None else units.seconds(seconds)


def _figure(path: str, figure: PathFigure, entry: Entry) -> str:
    latency = entry.latency(path)
    if latency is None or (value := latency.figures.get(figure.name)) is None:
        return ""
    if figure.unit == "count":
        return _share(value, latency)
    return units.seconds(value) if figure.unit == "seconds" else units.digits(value)


def _narrow_figure(path: str, figure: PathFigure, entry: Entry) -> str:
    latency = entry.latency(path)
    if figure.unit == "count" and latency and figure.name in latency.figures:
        return f"{100 * latency.figures[figure.name] / latency.count:.2f} %"
    return _figure(path, figure, entry)


def _broken(title: str) -> str:
    """A title over as many lines as it has words."""
    return title.replace(" ", "\n").replace("-", "-\n")


def _share(value: float, latency: Latency) -> str:
    """`30 of 3,000 (1.00%)`."""
    share = f" ({100 * value / latency.count:.2f} %)" if value else ""
    return f"{value:.0f} of {latency.count:,}{share}"


def _steps_per_s(entry: Entry) -> str:
    rate = entry.bound.figures.get(STEPS_PER_S) if entry.bound else None
    return units.number(rate) if rate else ""


def _pace(entries: Sequence[Entry], named: Named) -> Iterator[str]:
    """For each path that has a period, which programs keep up with it."""
    for path in PATHS:
        latencies = [(entry, latency) for entry in entries if (latency := entry.latency(path))]
        paced = [(entry, latency) for entry, latency in latencies if latency.figures.keys() >= PACED]
        if not paced:
            continue
        misses = {id(entry): latency.figures["deadline_misses"] for entry, latency in paced}
        fast = sum(latency.figures["real_time_factor"] < 1 for _, latency in paced)
        worst, most = max(paced, key=lambda item: misses[id(item[0])] / item[1].count)
        missed = (
            f"{sum(count == 0 for count in misses.values())} missed no deadline. "
            f"{named(worst)} missed the most: {_share(misses[id(worst)], most)}"
            if misses[id(worst)]
            else "no program missed a deadline"
        )
        yield (
            f"Programs were called every {units.seconds(most.figures['period'])}. By their median, "
            f"{'all' if fast == len(paced) else f'{fast} of'} {len(paced)} keep up; {missed}."
        )


def _slower(entries: Sequence[Entry], named: Named) -> Iterator[str]:
    """What each path costs compared with the usual call."""
    for path in requested_paths(entries):
        ratios = [
            (latency.median / usual.median, entry)
            for entry in entries
            if (latency := entry.latency(path.name)) and (usual := entry.latency(path.entry))
        ]
        if ratios:
            (low, fastest), (high, slowest) = (choose(ratios, key=lambda item: item[0]) for choose in (min, max))
            yield (
                f"A {path.name} call takes {units.ratio(low)} ({named(fastest)}) to {units.ratio(high)} "
                f"({named(slowest)}) the time of a {path.entry} call."
            )


def _throughput(entries: Sequence[Entry], named: Named) -> Iterator[str]:
    programs = [entry for entry in entries if entry.origin != "kernel"]
    rates = [(e.bound.figures[STEPS_PER_S], e) for e in programs if e.bound and STEPS_PER_S in e.bound.figures]
    if rates:
        most, entry = max(rates, key=lambda item: item[0])
        yield (
            f"{named(entry)} computes the most steps per second, kernels left out: {units.number(most)} of all "
            f"streams together."
        )


def _named(entry: Entry) -> str:
    return f"{entry.target} {entry.strategy} at chunk {entry.chunk_label}"


def _as_markdown(entry: Entry) -> str:
    return Markdown("{} {} at chunk {}").format(code(entry.target), entry.strategy, entry.chunk_label)
