"""The page of a report: the answer first, then rankings, pictures, conformance, costs, findings and the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from rnnbench.measure import PATHS, SCENARIOS
from rnnbench.reports import findings, lowered, units
from rnnbench.reports.anchors import anchors_table
from rnnbench.reports.call_cost import call_cost_table, stateful_cost_table
from rnnbench.reports.conformance_matrix import conformance_table
from rnnbench.reports.costs import build_table, memory_table, metrics_table, preparation_table, size_table
from rnnbench.reports.device_state import device_state_table
from rnnbench.reports.devices import device_answers, device_tables, devices_sentence
from rnnbench.reports.energy import energy_table
from rnnbench.reports.escape import Markdown, code, paragraph
from rnnbench.reports.expected_failures import expected_failures_table
from rnnbench.reports.int8 import int8_tables
from rnnbench.reports.latencies import (
    failed_check_table,
    ranking_tables,
    software_device_table,
    strategy_pair_table,
    without_steps_of_one,
)
from rnnbench.reports.paths import path_answer, path_table
from rnnbench.reports.payoff import library_payoff_table, payoff_table
from rnnbench.reports.plots import Picture
from rnnbench.reports.real_time import real_time_table
from rnnbench.reports.reliability import measurement_warnings, reliability_sentences, unfinished_warnings
from rnnbench.reports.sampling import groups_table, sampling_table
from rnnbench.reports.scaling import growth_answer, scaling_table
from rnnbench.reports.scenarios import offline_table, server_table, streams_answer, streams_table
from rnnbench.reports.tables import APPROXIMATE, NOT_SLOWER, SIGNS, Table, legend, markdown_table
from rnnbench.results import (
    ORIGIN_MEANS,
    Entry,
    Place,
    Ranking,
    View,
    Workload,
    file_name,
    judge_bound,
    rank,
)
from rnnbench.spelling import count

ANSWER_SIGNS = {
    " = ": "= the same program, called the same way; measured once",
    f" {APPROXIMATE} ": f"{APPROXIMATE} {SIGNS[APPROXIMATE].meaning}",
    "; same place: ": f"same place: {NOT_SLOWER}",
    "; next ": "next: the first program that is SLOWER by verdict",
    **{f"- {origin}: ": f"{origin}: {meaning}" for origin, meaning in ORIGIN_MEANS.items()},
    "by bound latency": "bound latency: of a call for which everything was allocated and converted beforehand",
}
"""What signs and words of the answer mean."""
CALL_COSTS = (call_cost_table, stateful_cost_table)
COSTS = (
    build_table,
    preparation_table,
    size_table,
    scaling_table,
    payoff_table,
    library_payoff_table,
    memory_table,
    energy_table,
    metrics_table,
)
HOW_TO_READ = (
    "A **program** is written backend:route. Its **origin** says who wrote what was compiled. "
    + " ".join(f"*{origin}*: {meaning}." for origin, meaning in ORIGIN_MEANS.items())
    + " Each origin has a ranking of its own.",
    "A **strategy** is *time-state*. Time says how one call advances: *fused* is the runtime's own operator, *looped* "
    "is one body under control flow, *unrolled* has a copy of the body for each step, *unrolled:k* is a loop over k "
    "copies. Where the state is linear in itself, *parallel* is a scan over all steps, and *chunked:k* a loop over "
    "blocks of k steps. State says who keeps the state between calls: with *stitched* the caller, with *stateful* the "
    "program; with *none* each call is a whole sequence, and no stream can be fed that way. The **chunk** is the "
    "number of time steps per call. The first sample of a chunk waits for the last one, so each chunk has a ranking of "
    "its own.",
    "Latency paths: "
    + " ".join(f"**{path.name}**: {path.meaning}" for path in PATHS.values())
    + " Latencies are medians of single calls. Per step is per call divided by the chunk. **± processes** is half the "
    "range of the medians of the sampled processes. A verdict compares two programs process by process, so it may see "
    "a smaller difference.",
    "Scenarios: " + " ".join(f"**{scenario.name}**: {scenario.meaning}" for scenario in SCENARIOS.values()),
    "A dash (—) is a figure that was not measured, or that has no meaning there. *Findings* lists the reasons.",
)


def page(view: View, pictures: Sequence[Picture], without_pictures: str = "") -> str:
    """The report as Markdown. Where there are no pictures, `without_pictures` says why."""
    return "\n\n".join(map(paragraph, _parts(view, pictures, without_pictures))) + "\n"


def _parts(view: View, pictures: Sequence[Picture], without_pictures: str) -> Iterator[str]:
    cases = ", ".join(dict.fromkeys(entry.record.case for entry in view.entries))
    yield Markdown("# {}").format(cases or "No trials")
    for warning in (*view.warnings, *unfinished_warnings(view), *measurement_warnings(view)):
        yield Markdown("> **Warning:** {}").format(warning)
    yield Markdown("## The answer")
    yield _outcomes(view)
    if sentence := devices_sentence(view):
        yield sentence
    answers = [part for workload, entries in view.workloads.items() for part in _answer(workload, entries)]
    yield from answers
    if meanings := [meaning for sign, meaning in ANSWER_SIGNS.items() if any(sign in part for part in answers)]:
        yield f"Signs: {'. '.join(meanings)}."
    for title, answers_of in groupby(device_answers(view), key=lambda answer: answer[0]):
        yield Markdown("**{}, on several devices**").format(title)
        sentences_of = " ".join(sentence for _, sentence in answers_of)
        yield Markdown("{} Each device has its fastest program; see *Devices*.").format(sentences_of)
    if sentences := reliability_sentences(view):
        yield " ".join(sentences)
    yield Markdown("## Ranking")
    yield "By bound latency, for each origin and chunk. Compilers and libraries come first, kernels last."
    for workload, entries in view.workloads.items():
        yield Markdown("### {}").format(workload)
        yield from _ranking(entries)
    for content in int8_tables(view):
        yield from _titled(content, "###")
    yield from _titled(offline_table(view.entries), "###")
    yield from _titled(failed_check_table(view), "###")
    yield from _devices(view)
    yield Markdown("## Pictures")
    yield from _pictures(pictures) if pictures else [without_pictures or "Fewer than two latencies could be drawn."]
    yield from _titled(conformance_table(view), "##", "No trial got as far as a conformance check.")
    yield from _call_costs(view)
    yield from _costs(view)
    yield from _sampling(view)
    yield from _findings(view)
    yield Markdown("## Machine and versions")
    tables = (findings.machine_table, findings.version_table, findings.run_table, anchors_table)
    for content in (make(view) for make in tables):
        yield from _titled(content, "###")
    yield Markdown("## How to read this")
    yield from map(Markdown, HOW_TO_READ)


def _pictures(pictures: Sequence[Picture]) -> Iterator[str]:
    for subject, of_subject in groupby(pictures, key=lambda picture: picture.subject):
        yield Markdown("### {}").format(subject)
        for picture in of_subject:
            yield from _picture(picture)


def _picture(picture: Picture) -> Iterator[str]:
    file = Markdown(file_name(picture.stem))
    yield Markdown("#### {}").format(picture.title)
    yield Markdown("![{}: {}]({}.png)").format(picture.title, picture.subject, file)
    yield Markdown("{} [SVG]({}.svg)").format(picture.caption, file)


def _outcomes(view: View) -> str:
    counts = findings.outcome_counts(view)
    listed = ", ".join(f"{number} {outcome}" for outcome, number in counts)
    not_believed = findings.not_believed_count(view)
    marked = f"; {not_believed} not believed (see Findings)" if not_believed else ""
    return f"{count(len(view.entries), 'trial')}{': ' + listed if listed else ''}{marked}."


def _answer(workload: Workload, entries: Sequence[Entry]) -> Iterator[str]:
    """A paragraph for each workload: the fastest program of each origin, by chunk."""
    yield Markdown("**{}**").format(workload)
    rankings = rank(entries)
    if not rankings:
        yield Markdown("Nothing was ranked; see *Ranking* and *Findings*.")
        return
    lines: list[str] = []
    for chunk, streams in dict.fromkeys((r.chunk, r.streams) for r in sorted(rankings, key=_by_chunk)):
        steps = count(chunk, "step")
        template = "- **{} a call**" if streams else "- **whole sequences of {}**, without state"
        lines.append(Markdown(template).format(steps))
        lines += [Markdown("  - {}").format(_fastest(r)) for r in rankings if (r.chunk, r.streams) == (chunk, streams)]
    yield Markdown("The fastest by bound latency:\n\n{}").format(Markdown("\n").join(lines))
    yield from filter(None, (growth_answer(entries), path_answer(entries), streams_answer(entries)))


def _by_chunk(ranking: Ranking) -> tuple[int, bool]:
    return ranking.chunk, not ranking.streams


def _fastest(ranking: Ranking) -> Markdown:
    first, *level = ranking.leaders
    text = Markdown("{}: {}, **{}**").format(ranking.origin, _named(first), _latency(first.entry))
    if level:
        text = Markdown("{}; same place: {}").format(text, Markdown(", ").join(map(_named, level)))
    if others := ranking.places[1 + len(level) :]:
        behind = judge_bound(others[0].entry, first.entry).ratio
        return Markdown("{}; next {}, {} the latency").format(text, _named(others[0]), units.ratio(behind))
    return text if level else Markdown("{}; the only one").format(text)


def _named(place: Place) -> Markdown:
    strategies = " = ".join(entry.strategy for entry in (place.entry, *place.sharing))
    approximate = Markdown(f" {APPROXIMATE}") if place.entry.approximate else ""
    return Markdown("{}{} {}").format(code(place.entry.target), approximate, strategies)


def _latency(entry: Entry) -> str:
    median = entry.ranked_bound.median
    call, step = units.seconds(median), units.seconds(median / entry.chunk)
    return f"{step} a step" if entry.chunk == 1 else f"{step} a step, {call} a call"


def _ranking(entries: Sequence[Entry]) -> Iterator[str]:
    contents = [without_steps_of_one(table) for table in (*ranking_tables(entries), software_device_table(entries))]
    if not any(content.rows for content in contents):
        yield "Nothing was measured."
    for content in contents:
        yield from _titled(content, "####")
    yield from _titled(real_time_table(entries), "####")
    yield from _titled(path_table(entries), "####")
    yield from _titled(streams_table(entries), "####")
    yield from _titled(server_table(entries), "####")
    yield from _titled(strategy_pair_table(entries), "####")


def _devices(view: View) -> Iterator[str]:
    """Only where a model ran on two kinds of devices."""
    tables = list(device_tables(view))
    if tables:
        yield Markdown("## Devices")
        yield "The same model, batch and number format on several devices."
    for title, contents in tables:
        yield Markdown("### {}").format(title)
        for content in contents:
            yield from _titled(content, "####")


def _costs(view: View) -> Iterator[str]:
    yield Markdown("## Build time, size, memory and metrics")
    for workload, entries in view.workloads.items():
        yield from _tables(workload, entries, *COSTS)


def _call_costs(view: View) -> Iterator[str]:
    tables = [part for workload, entries in view.workloads.items() for part in _tables(workload, entries, *CALL_COSTS)]
    if tables:
        yield Markdown("## Cost of a call")
        yield from tables


def _tables(workload: Workload, entries: Sequence[Entry], *makers: Callable[[Sequence[Entry]], Table]) -> Iterator[str]:
    """The tables of one workload that have rows, under its name."""
    contents = [make(entries) for make in makers]
    if any(content.rows for content in contents):
        yield Markdown("### {}").format(workload)
    for content in contents:
        yield from _titled(content, "####")


def _sampling(view: View) -> Iterator[str]:
    by_workload = {workload: sampling_table(entries) for workload, entries in view.workloads.items()}
    if any(content.rows for content in by_workload.values()):
        yield Markdown("## Sampling")
    for workload, content in by_workload.items():
        if content.rows:
            yield Markdown("### {}").format(workload)
            yield from _titled(content, "####")
            yield from _titled(groups_table(view.workloads[workload]), "####")
            yield from _titled(device_state_table(view.workloads[workload]), "####")


def _findings(view: View) -> Iterator[str]:
    yield Markdown("## Findings")
    for content in (
        expected_failures_table(view),
        findings.not_believed_table(view),
        findings.too_short_table(view),
        findings.findings_table(view),
        findings.not_run_table(view),
        lowered.lowered_table(view),
        lowered.kept_loops_table(view),
        findings.threads_table(view),
        findings.emulated_table(view),
        findings.notes_table(view),
        findings.missing_table(view),
    ):
        yield from _titled(content, "###")


def _titled(content: Table, level: str, otherwise: str = "") -> Iterator[str]:
    """A table under its title with its note and legend; without rows nothing, or `otherwise`."""
    if not content.rows and not otherwise:
        return
    yield Markdown("{} {}").format(Markdown(level), content.title)
    yield markdown_table(content) if content.rows else otherwise
    if content.note:
        yield content.note
    if signs := legend(cell for row in content.rows for cell in row):
        yield signs
