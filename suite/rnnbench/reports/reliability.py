"""How reliable a run's numbers are, from its own records: intervals, disturbance, drift, steal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median, quantiles

from rnnbench.measure import half_width as interval_half_width
from rnnbench.reports.device_state import device_warnings, unmeasured_warnings
from rnnbench.reports.units import WIDEST_PERCENT, percent
from rnnbench.results import COMPARED_PATHS, MANY_DISTURBED, Entry, Latency, View, disturbed_share
from rnnbench.spelling import count, listed, percents

LAYOUT = 0.02
"""Relative change that the address layout of a process alone causes."""
LEAST_PROCESSES = 2
"""Processes that must agree that the bound path is slower than the public one."""
NAMED = 3
"""Programs that a warning names."""


def reliability_sentences(view: View) -> tuple[str, ...]:
    """Some sentences; none where nothing was sampled, or where the records have no such figures."""
    latencies = _sampled(view.entries)
    half_widths = [width for latency in latencies if (width := half_width(latency)) is not None]
    lines = list(_precision(latencies, half_widths))
    if lines:
        lines.append(f"{'; '.join(_circumstances(view, latencies))}.")
    lines += _earlier_work(view)
    return tuple(lines)


def _earlier_work(view: View) -> Iterator[str]:
    """The builds and checks that earlier runs made, and that were taken from the cache."""
    built = [entry.record.timing.built for entry in view.entries if entry.record.timing.built]
    checked = [entry.record.checked for entry in view.entries if entry.record.checked]
    if built:
        yield (
            f"Built by earlier runs ({_days(built)}), which the build times are of: {count(len(built), 'program')}. "
            "With --rebuild they are built and timed again."
        )
    if checked:
        yield (
            f"Checked by earlier runs ({_days(checked)}), as the same programs: {count(len(checked), 'trial')}. "
            "This run checked the calls that it timed. With --rebuild, and in rnnbench check, all checks are made."
        )


def _days(times: Sequence[str]) -> str:
    """The day, or the first and the last, of times in ISO 8601."""
    first, last = min(times)[:10], max(times)[:10]
    return first if first == last else f"{first} to {last}"


def measurement_warnings(view: View) -> tuple[str, ...]:
    """What a reader must know before relying on a run's latencies."""
    of_host = (disturbance_warning(view), slow_bound_warning(view))
    return (*(warning for warning in of_host if warning), *device_warnings(view), *unmeasured_warnings(view))


def unfinished_warnings(view: View) -> Iterator[str]:
    """A sentence for each run that was cut off, or that still goes on."""
    for run in view.runs:
        if run.info.finished is None and run.info.merged is None:
            yield (
                f"the run {run.name} has no end: it was interrupted, or it still goes on. Trials that are missing here "
                f"have no record yet; rnnbench run --resume continues it where its folder is whole"
            )


def slow_bound_warning(view: View) -> str | None:
    """A warning where the bound path, which does less, is slower than the public one in every process."""
    slower = sorted(
        ((_excess(entry), entry) for entry in view.entries if entry.ranked and not entry.shares and _excess(entry) > 0),
        key=lambda item: -item[0],
    )
    if not slower:
        return None
    several = len({entry.record.params.device for entry in view.entries}) > 1
    programs = [
        f"{entry.target} {entry.strategy} at chunk {entry.chunk_label}"
        f"{f' on {entry.record.params.device}' if several else ''} (at least +{100 * excess:.0f} %)"
        for excess, entry in slower
    ]
    return (
        f"the bound path is slower than the public path in every process of {listed(programs, NAMED)}. It does less, "
        f"so one of the two is measured under other conditions: do not rely on the difference between them"
    )


def _excess(entry: Entry) -> float:
    """By how much the fastest bound process is slower than the slowest public one; 0 if by LAYOUT or less.

    0 also if the intervals overlap: two processes that scatter are both the slower ones in one case of six by chance.
    """
    if entry.bound is None or entry.public is None:
        return 0.0
    intervals = entry.bound.interval, entry.public.interval
    if intervals[0] and intervals[1] and intervals[0][0] <= intervals[1][1]:
        return 0.0
    bound, public = entry.bound.process_medians, entry.public.process_medians
    if min(len(bound), len(public)) < LEAST_PROCESSES:
        return 0.0
    excess = min(bound) / max(public) - 1
    return excess if excess > LAYOUT else 0.0


def disturbance_warning(view: View) -> str | None:
    """A warning where another process used the core during many of the blocks."""
    share = disturbed_share(_sampled(view.entries))
    if share is None or share < MANY_DISTURBED:
        return None
    return (
        f"{_disturbers(view)} during {100 * share:.0f} % of the sampled blocks (marked in "
        f"the files of samples). Run again on an idle machine, or do not rely on small differences"
    )


def _disturbers(view: View) -> str:
    of_host = "another process, or the machine's host, used the core"
    return f"{of_host}, or its device was disturbed" if _has_device_state(view) else of_host


def _has_device_state(view: View) -> bool:
    return any(entry.record.device_state for entry in view.entries)


def half_width(latency: Latency) -> float | None:
    """Half of the interval of a median, relative to it; None for a single process."""
    return None if latency.interval is None else interval_half_width(latency.interval)


def _sampled(entries: Sequence[Entry]) -> list[Latency]:
    """Bound and public latencies of conforming trials, each once."""
    sampled = [entry for entry in entries if entry.ranked and not entry.shares]
    return [latency for entry in sampled for path in COMPARED_PATHS if (latency := entry.latency(path)) is not None]


def _precision(latencies: Sequence[Latency], half_widths: Sequence[float]) -> Iterator[str]:
    if half_widths:
        nine = quantiles(half_widths, n=10, method="inclusive")[-1] if len(half_widths) > 1 else half_widths[0]
        stopped_by = [latency.sampling.stopped_by for latency in latencies if latency.sampling.stopped_by is not None]
        reached = stopped_by.count("precision")
        stopped = (
            f"; {reached} reached the requested precision, {len(stopped_by) - reached} spent their budget first"
            if stopped_by
            else ""
        )
        most = f"nine in ten {percent(nine)} or less" if nine <= WIDEST_PERCENT else f"one in ten {percent(nine)}"
        middle = median(half_widths)
        half = f"of {percent(middle)} or less" if middle <= WIDEST_PERCENT else percent(middle)
        yield (
            f"Half of the {len(half_widths)} latencies have an interval {half}, {most} "
            f"(95 %, between processes){stopped}."
        )
    elif any(latency.sampling.blocks for latency in latencies):
        yield "Each latency comes from one process. Its layout in memory alone can change it by 1 to 2 %."


def _circumstances(view: View, latencies: Sequence[Latency]) -> Iterator[str]:
    share = disturbed_share(latencies)
    if share is None:
        yield "It could not be read whether another process used the core"
    else:
        what = "The core or the device was disturbed" if _has_device_state(view) else "Another process used the core"
        yield f"{what} during {100 * share:.0f} % of the blocks"
    if drifts := [drift for entries in view.workloads.values() if (drift := _baseline_drift(entries)) is not None]:
        yield f"the baseline drifted by up to {percents(max(map(abs, drifts)))} while it was sampled"
    conditions = [run.info.conditions for run in view.runs]
    conditions += [node.conditions for run in view.runs for node in run.info.nodes.values()]
    stolen = [measured.steal for measured in conditions if measured is not None]
    if known := [steal for steal in stolen if steal is not None]:
        yield f"the machine's host gave {percents(max(known))} of the processors' time to others"


def _baseline_drift(entries: Sequence[Entry]) -> float | None:
    """Drift of the baseline, or else of the first trial: it is the machine's."""
    measured = [entry for entry in entries if entry.ranked and not entry.shares]
    baseline = next((entry for entry in measured if entry.record.baseline), next(iter(measured), None))
    return baseline.bound.sampling.drift if baseline and baseline.bound else None
