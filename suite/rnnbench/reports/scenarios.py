"""What one core does for many callers: real-time streams, random requests, and the most steps of all batches."""

from __future__ import annotations

from collections.abc import Sequence

from rnnbench.reports import units
from rnnbench.reports.escape import Markdown, code
from rnnbench.reports.tables import Table, program, strategy
from rnnbench.results import Entry, Record, Streams, size_label

Held = tuple[Streams, Entry]


def streams_table(entries: Sequence[Entry]) -> Table:
    """The streams that each program of one workload holds, most first; no rows where no case asks for it."""
    rows = [
        (
            program(entry),
            strategy(entry),
            entry.chunk_label,
            str(streams.held),
            bounds(streams),
            units.seconds(streams.p99),
            f"{streams.frames:,}",
            str(streams.missed),
            str(len(streams.tests)),
        )
        for streams, entry in _most_held_first(entries)
    ]
    periods = {units.seconds(streams.period) for streams, _ in _most_held_first(entries)}
    title = f"Real-time streams, a frame every {' or '.join(sorted(periods))}"
    columns = ("program", "strategy", "chunk", "streams", "bounds", "frame p99", "frames", "missed", "tests")
    return Table(title, columns, tuple(rows), text=3, note=STREAMS_NOTE)


STREAMS_NOTE = (
    "A frame is one call of every stream, one after the other. Streams: the most that were held with at most 1 % of "
    "the frames complete after the next one was due; the median of the processes. Bounds: held in every process, and "
    "the smallest number above what each process held. Frame p99, frames, missed: with as many streams as each process "
    "held. Tests: numbers of streams that were tried, in all processes."
)


def bounds(streams: Streams) -> str:
    """`40 to 43`: held by every process, and failed above each; `40 or more` where no test failed."""
    return f"{streams.held_by_all} to {streams.failed}" if streams.failed else f"{streams.held_by_all} or more"


def server_table(entries: Sequence[Entry]) -> Table:
    """For one workload, what became of requests that arrive at random, the shortest p99 first."""
    served = [(server, entry) for record, entry in _measured(entries) if (server := record.timing.server)]
    rows = [
        (
            program(entry),
            strategy(entry),
            entry.chunk_label,
            units.seconds(server.median),
            units.seconds(server.p99),
            f"{100 * server.utilisation:.0f} %",
            f"{server.requests:,}",
            f"{server.unserved:,}",
        )
        for server, entry in sorted(served, key=lambda each: (each[1].chunk, each[0].p99))
    ]
    rates = sorted({server.rate for server, _ in served})
    title = f"Requests at random, {' or '.join(map(units.number, rates))} a second"
    columns = ("program", "strategy", "chunk", "median", "p99", "utilisation", "requests", "unserved")
    return Table(title, columns, tuple(rows), text=3, note=SERVER_NOTE)


SERVER_NOTE = (
    "Each request is one call of one stream; requests wait in one queue for one core. Median, p99: from a request's "
    "arrival to its result. Utilisation: share of the time in which the core was in calls; near 100 % the queue only "
    "grows, and the latencies say how long it was served. All programs get the same arrivals. Unserved: requests whose "
    "turn had not come after three times the length of the schedule."
)


def offline_table(entries: Sequence[Entry]) -> Table:
    """The best batch of each program of a view that has several; no rows where none has."""
    groups: dict[tuple[str, ...], list[tuple[float, Entry]]] = {}
    for entry in entries:
        if entry.ranked and not entry.shares and entry.bound is not None:
            params = entry.record.params
            rate = params.batch * params.chunk / entry.bound.median
            sizes = (entry.record.case, size_label(entry.workload.hidden), params.dtype, f"t{params.threads}")
            key = (" ".join(filter(None, sizes)), program(entry), strategy(entry), entry.chunk_label)
            groups.setdefault(key, []).append((rate, entry))
    several = {key: rates for key, rates in groups.items() if len({e.record.params.batch for _, e in rates}) > 1}
    ordered = sorted(several.items(), key=lambda item: (item[0][0], -max(rate for rate, _ in item[1])))
    return Table(
        "Throughput at the best batch",
        ("case", "program", "strategy", "chunk", "best batch", "steps/s", "of batch 1"),
        tuple((*key, *_best_batch(rates)) for key, rates in ordered),
        text=4,
        note="Steps per second of all streams together: batch × chunk over the median of a bound call. Best batch: of "
        "those in the case. Of batch 1: how many times the steps per second of one stream at a time.",
    )


def _best_batch(rates: Sequence[tuple[float, Entry]]) -> tuple[str, str, str]:
    rate, best = max(rates, key=lambda each: each[0])
    one = [alone for alone, entry in rates if entry.record.params.batch == 1]
    gain = units.ratio(rate / one[0]) if one else units.MISSING
    return str(best.record.params.batch), units.number(rate), gain


def streams_answer(entries: Sequence[Entry]) -> Markdown | str:
    """The same in a sentence; empty where there is nothing of it."""
    held = [(streams, entry) for streams, entry in _most_held_first(entries) if entry.origin != "kernel"]
    if not held:
        return ""
    if not any(streams.held for streams, _ in held):
        return "No program held a real-time stream on its core."
    most, least = (choose(held, key=lambda each: each[0].held) for choose in (max, min))
    text = Markdown("Kernels left out, {} holds the most real-time streams on its core: {}").format(
        _named(most), _figure(most)
    )
    near = sum(_may_hold(other, most[0].held_by_all) for other, _ in held) - 1
    unsure = f", which the bounds of {near} {'other' if near == 1 else 'others'} reach" if near else ""
    others = Markdown("; {} the fewest: {}").format(_named(least), _figure(least)) if len(held) > 1 else ""
    return Markdown("{}{}{}.").format(text, unsure, others)


def _may_hold(streams: Streams, number: int) -> bool:
    return not streams.failed or streams.failed > number


def _most_held_first(entries: Sequence[Entry]) -> list[Held]:
    held = [(streams, entry) for record, entry in _measured(entries) if (streams := record.timing.streams)]
    return sorted(held, key=lambda each: (each[1].chunk, -each[0].held, each[1].target))


def _measured(entries: Sequence[Entry]) -> list[tuple[Record, Entry]]:
    """The ranked entries with figures of their own."""
    return [(entry.measured, entry) for entry in entries if entry.ranked and not entry.shares and entry.measured]


def _named(held: Held) -> Markdown:
    return Markdown("{} {} at chunk {}").format(code(held[1].target), held[1].strategy, held[1].chunk_label)


def _figure(held: Held) -> str:
    return f"{held[0].held} ({bounds(held[0])})"
