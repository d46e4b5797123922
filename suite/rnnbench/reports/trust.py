"""How far the numbers of a run can be trusted, said from its own records: intervals, disturbance, drift, steal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median, quantiles

from rnnbench.measure import interval
from rnnbench.measure.paths import PATHS
from rnnbench.reports.entries import Entry, View
from rnnbench.results.timing import Latency

MANY_DISTURBED = 0.1
"""Share of the blocks from which a report warns: fewer hardly move a median over blocks."""
TRUSTED = tuple(path.name for path in PATHS.values() if path.compared)


def trust(view: View) -> tuple[str, ...]:
    """Two or three sentences; none where nothing was sampled, or by a version that took no notice of these things."""
    latencies = _sampled(view.entries)
    half_widths = [width for latency in latencies if (width := half_width(latency)) is not None]
    lines = list(_precision(latencies, half_widths))
    if lines:
        lines.append(f"{'; '.join(_circumstances(view, latencies))}.")
    return tuple(lines)


def disturbance_warning(view: View) -> str | None:
    """Where another process had the core for more of the blocks than is good."""
    share = disturbed_share(_sampled(view.entries))
    if share is None or share < MANY_DISTURBED:
        return None
    return (
        f"another process, or the machine's host, took the core during {share:.0%} of the sampled blocks (marked in "
        f"the files of samples): run again on a machine with less else to do, or trust no small difference"
    )


def half_width(latency: Latency) -> float | None:
    """Half of the interval of a median, relative to it; None for a single process."""
    return None if latency.interval is None else interval.half_width(latency.interval)


def disturbed_share(latencies: Sequence[Latency]) -> float | None:
    """Of the blocks whose disturbance is known; None where none is."""
    known = [latency for latency in latencies if latency.sampling.disturbed_blocks is not None]
    blocks = sum(latency.sampling.blocks for latency in known)
    return sum(latency.sampling.disturbed_blocks or 0 for latency in known) / blocks if blocks else None


def _sampled(entries: Sequence[Entry]) -> list[Latency]:
    """Bound and public latencies of conforming trials, each once."""
    timings = [entry.measured.timing for entry in entries if entry.ranked and entry.measured and not entry.shares]
    return [latency for timing in timings for path in TRUSTED if (latency := timing.latency.get(path)) is not None]


def _precision(latencies: Sequence[Latency], half_widths: Sequence[float]) -> Iterator[str]:
    if half_widths:
        most = quantiles(half_widths, n=10, method="inclusive")[-1] if len(half_widths) > 1 else half_widths[0]
        asked = [latency.sampling.stopped_by for latency in latencies if latency.sampling.stopped_by is not None]
        reached = asked.count("precision")
        stopped = (
            f"; {reached} reached the precision asked for, {len(asked) - reached} spent their budget first"
            if asked
            else ""
        )
        yield (
            f"Half of the {len(latencies)} latencies are known to ±{median(half_widths):.1%} or better, nine in ten to "
            f"±{most:.1%} (95 %, between processes){stopped}."
        )
    elif any(latency.sampling.blocks for latency in latencies):
        yield "Each latency comes from one process, whose layout in memory alone may move it by 1 to 2 %."


def _circumstances(view: View, latencies: Sequence[Latency]) -> Iterator[str]:
    share = disturbed_share(latencies)
    if share is None:
        yield "Whether another process took the core could not be read"
    else:
        yield f"Another process took the core during {share:.0%} of the blocks"
    if drifts := [drift for entries in view.workloads.values() if (drift := _anchor_drift(entries)) is not None]:
        yield f"the anchors drifted by up to {max(map(abs, drifts)):.1%} while they were sampled"
    stolen = [run.info.conditions.steal for run in view.runs if run.info.conditions is not None]
    if known := [steal for steal in stolen if steal is not None]:
        yield f"the machine's host kept {max(known):.1%} of the processors' time for others"


def _anchor_drift(entries: Sequence[Entry]) -> float | None:
    """Of the baseline, or else of the first trial: what drifts there is the machine."""
    measured = [entry for entry in entries if entry.ranked and not entry.shares]
    anchor = next((entry for entry in measured if entry.record.baseline), next(iter(measured), None))
    return anchor.bound.sampling.drift if anchor and anchor.bound else None
