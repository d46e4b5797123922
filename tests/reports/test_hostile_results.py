"""Results are not trusted: whatever text or figure a record holds, there is a report, and it only shows it."""

from __future__ import annotations

import io
import json
import math
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import fake_records as fake
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import for_proof
from rich.console import Console

from rnnbench.devices import Device
from rnnbench.reports import comparison_markdown, print_comparison, print_conformance, print_summary, write_report
from rnnbench.reports.escape import Markdown, code, escaped, paragraph
from rnnbench.reports.markdown import page
from rnnbench.results import (
    DeviceState,
    EnergyReading,
    Finding,
    FindingKind,
    Latency,
    Record,
    Run,
    StoreError,
    compare_runs,
    comparison_json,
    sound,
    view_runs,
)
from rnnbench.results.damage import without_impossible
from rnnbench.results.exports import EXPORTS, Export

HOSTILE = (
    "[click](https://evil.example)",
    "![](http://evil.example/a.png)",
    "<img src=x onerror=alert(1)>",
    "a|b`c``d",
    "www.evil.example someone@evil.example",
    "\x1b[31mred\x1b]8;;http://evil.example\x07",
    "[bold red]x[/] [/nothing]",
    "\u202eetirw\u2066",
    "\ud800 lone",
    "$x^$ \\[y](http://z)",
    "a\n\n# heading\r- item",
    "[x]: http://evil.example",
    "x" * 100_000,
    "",
)
TEXTS = st.sampled_from(HOSTILE) | st.text(st.characters(codec=None), max_size=40)
FIGURES = st.sampled_from((0.0, -1.0, math.inf, -math.inf, math.nan, 1e-320, 1e308, 1e-4)) | st.floats()


def latency(median: float, medians: tuple[float, ...], **changes: Any) -> Latency:
    return fake.latency(1e-4).model_copy(update={"median": median, "process_medians": medians, **changes})


@st.composite
def records(draw: st.DrawFn) -> Record:
    text = lambda: draw(TEXTS)  # noqa: E731
    figure = lambda: draw(FIGURES)  # noqa: E731
    of = fake.record(
        chunk=draw(st.sampled_from((1, 16))),
        outcome=draw(st.sampled_from(fake.OUTCOMES)),
        time=draw(st.sampled_from(("looped", "unrolled")) | TEXTS),
        backend=text(),
        route=text(),
    )
    bound = latency(figure(), tuple(draw(st.lists(FIGURES, max_size=3))), p99=figure(), interval=(figure(), figure()))
    changes: dict[str, Any] = {
        "params": of.params.model_copy(update={"chunk": draw(st.sampled_from((1, 16, 0, -4)))}),
        "trial": f"{text()}{draw(st.integers(0, 9))}",
        "case": text(),
        "reason": text(),
        "stage": text(),
        "support": of.support.model_copy(update={"reason": text(), "upstream": text()}),
        "device": draw(st.none() | st.just(Device(text(), text(), text(), 1 << 30, draw(st.booleans())))),
        "device_state": DeviceState.model_construct(throttled=(text(),), throttled_blocks=1, others=(text(),)),
        "unmeasured": {text(): text()},
        "findings": (Finding.model_construct(kind=FindingKind.TIME, detail=text(), disbelieved=draw(st.booleans())),),
        "energy": draw(st.none() | st.just(EnergyReading.model_construct(source=text(), blocks=1, disturbed_blocks=0))),
        "version": {text(): text()},
        "node": text(),
        "timing": of.timing.model_copy(
            update={
                "build_s": figure(),
                "latency": {**of.timing.latency, draw(st.sampled_from(("bound", "odd"))): bound},
            }
        ),
        "memory": of.memory.model_copy(
            update={"steady": draw(st.integers()), "growth": figure(), "growth_calls": 5000}
        ),
    }
    if of.artifact:
        changes["artifact"] = of.artifact.model_copy(update={"lowered": text(), "notes": (text(),)})
    if of.conformance:
        failed = fake._checks("nonconforming")["timed"].model_copy(update={"detail": text(), "rounding": figure()})
        changes["conformance"] = {**of.conformance, text(): failed}
    return of.model_copy(update=changes)


def run(of: list[Record], name: str = "fake_run") -> Run:
    machine = {"cpu": HOSTILE[0], "memory": "much", "caches": {HOSTILE[1]: None}, "clock_cost_s": math.nan}
    info = fake.info(run=name, machine=machine, command=HOSTILE, versions={HOSTILE[2]: {HOSTILE[3]: HOSTILE[4]}})
    return Run(Path("fake"), info, tuple({record.trial: record for record in of}.values()), HOSTILE)


def harmless_page(text: str) -> None:
    """Outside of code there is no HTML and no link but to the report's own pictures; nothing is invisible."""
    text.encode()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
    assert "<" not in text
    without_code = re.sub(r"(?<!\\)`[^`\n]*`", "", text)
    assert not re.search(r"https?://|www\.", without_code)
    for target in re.findall(r"(?<!\\)\]\(([^)]*)\)", without_code):
        assert re.fullmatch(r"[\w.+-]+\.(png|svg)", target)


def harmless_terminal(text: str) -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)


def console() -> Console:
    return Console(file=io.StringIO(), width=100, color_system=None)


@given(st.lists(records(), min_size=1, max_size=4))
def test_any_record_has_a_page_a_summary_and_rows(of: list[Record]) -> None:
    shown = run(of)
    harmless_page(page(view_runs([shown]), []))
    terminal = console()
    print_summary(shown, terminal)
    print_conformance(shown, terminal)
    harmless_terminal(terminal.file.getvalue())  # type: ignore[attr-defined]
    (exported,), _ = sound([shown])
    for export in EXPORTS.values():
        if isinstance(export, Export):
            stream = io.StringIO()
            with suppress(StoreError):  # Some tools read no file without a figure.
                export.write(exported, stream)
            stream.getvalue().encode()


@given(st.lists(records(), min_size=1, max_size=3), st.lists(records(), max_size=2))
def test_any_two_runs_compare(of: list[Record], others: list[Record]) -> None:
    comparison = compare_runs(run(of, "one"), run([*of, *others], "../two"))
    harmless_page(_without_folds(comparison_markdown(comparison)))
    harmless_page(_without_folds(comparison_markdown(comparison, 3_000)))
    json.dumps(comparison_json(comparison), allow_nan=False).encode()
    terminal = console()
    print_comparison(comparison, terminal)
    harmless_terminal(terminal.file.getvalue())  # type: ignore[attr-defined]


def _without_folds(page: str) -> str:
    return re.sub(r"^(<details><summary>[\w ,:]+ \(\d+ rows?\)</summary>|</details>)$", "", page, flags=re.MULTILINE)


@given(TEXTS)
def test_text_is_escaped_unless_it_is_this_suite_s_markdown(text: str) -> None:
    for shown in (escaped(text), paragraph(text), code(text), Markdown("**{}**").format(text)):
        harmless_page(shown)
    assert escaped(Markdown("**bold**")) == "**bold**"
    assert escaped("pip install 'rnnbench[fake]'; fake_case") == "pip install 'rnnbench[fake]'; fake_case"


@pytest.mark.parametrize("text", ["# a", "- a", "> a", "1. a", "1) a", "+ a", "=== a", "---"])
def test_a_paragraph_of_text_is_a_paragraph(text: str) -> None:
    assert re.match(r"\\|\d+\\", paragraph(text))


@pytest.mark.parametrize("hostile", ["../../a$b$c\x00\ud800" + "n" * 300, *for_proof("../../x", "")])
def test_pictures_stay_in_the_folder_and_show_any_name(tmp_path: Path, hostile: str) -> None:
    of = [
        fake.record(chunk=chunk, backend=hostile, state=hostile or "stitched").model_copy(
            update={"case": hostile, "trial": f"t{chunk}"}
        )
        for chunk in (1, 16, 64)
    ]
    write_report([run(of, hostile)], tmp_path / "deep" / "folder")
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(path.parent == tmp_path / "deep" / "folder" for path in written)
    assert {path.suffix for path in written} == {".md", ".png", ".svg"}


def test_impossible_figures_are_left_out_and_named() -> None:
    odd = {"zero": 0.0, "negative": -1.0, "infinite": math.inf, "nan": math.nan}
    of = [fake.record(chunk=1)]
    for name, value in odd.items():
        broken = fake.with_latencies(fake.record(chunk=1), bound=latency(value, (value, value)))
        of.append(broken.model_copy(update={"trial": name}))
    of.append(fake.with_latencies(fake.record(chunk=2), bound=latency(1e-4, ())).model_copy(update={"trial": "empty"}))
    view = view_runs([run(of)])
    assert [entry.record.trial for entry in view.entries if entry.ranked] == [of[0].trial]
    (warning,) = [text for text in view.warnings if "timing.latency.bound" in text]
    assert "zero, negative, infinite and 2 more; run these trials again" in warning


@pytest.mark.parametrize(
    ("changes", "is_kept"),
    [
        ({"median": 0.98e-4}, False),
        ({"median": 1.03e-4}, False),
        ({"median": 1.02e-4}, True),
        ({"interval": (0.9e-4, 1e-4)}, False),
        ({"interval": (1.01e-4, 1.1e-4)}, False),
        ({"interval": (1.002e-4, math.inf)}, True),
        ({"process_medians": (1e-4, 1e-4), "interval": (1e-4 * (1 + 1e-12),) * 2}, True),
    ],
)
def test_a_latency_whose_median_or_interval_does_not_fit_its_process_medians_is_left_out(
    changes: dict[str, Any], is_kept: bool
) -> None:
    """The median of all samples lies among those of the processes, whose geometric mean lies in the interval."""
    fitting = latency(1e-4, (0.99e-4, 1e-4, 1.02e-4))
    of = fake.with_latencies(fake.record(chunk=1), bound=fitting.model_copy(update=changes))
    view = view_runs([run([of])])
    assert view.entries[0].ranked is is_kept
    assert any("timing.latency.bound is impossible" in text for text in view.warnings) is not is_kept


@pytest.mark.parametrize("interval", [(math.nan, 1e-4), (1.1e-4, 0.9e-4), (-1.0, 1e-4)])
def test_an_impossible_interval_is_left_out_alone(interval: tuple[float, float]) -> None:
    bound = latency(1e-4, (0.99e-4, 1e-4, 1.02e-4), interval=interval)
    (entry,) = view_runs([run([fake.with_latencies(fake.record(chunk=1), bound=bound)])]).entries
    assert entry.ranked
    assert entry.bound is not None
    assert entry.bound.interval is None


@pytest.mark.parametrize("chunk", [0, -4, 1 << 54])
def test_a_trial_of_an_impossible_chunk_is_left_out(chunk: int) -> None:
    of = fake.record()
    view = view_runs([run([of.model_copy(update={"params": of.params.model_copy(update={"chunk": chunk})})])])
    assert view.entries == ()
    assert any("the trial was left out" in text for text in view.warnings)


def test_an_artifact_of_an_impossible_size_is_left_out_and_memory_that_was_given_back_is_not() -> None:
    of = fake.record()
    assert of.artifact is not None
    memory = of.memory.model_copy(update={"growth": -2048.0, "public_growth": -1.0})
    small = of.artifact.model_copy(update={"nbytes": -1})
    clean, names = without_impossible(of.model_copy(update={"memory": memory, "artifact": small}))
    assert (clean.artifact, names) == (None, ("artifact.nbytes",))
    assert clean.memory == memory
    endless = of.memory.model_copy(update={"growth": math.inf})
    clean, names = without_impossible(of.model_copy(update={"memory": endless}))
    assert (clean.memory.growth, names) == (None, ("memory.growth",))


def test_seeds_of_which_one_did_not_build_have_a_report() -> None:
    of = []
    for chunk in (1, 16, 64):
        for seed in (0, 1):
            made = fake.record(chunk=chunk, time="unrolled", outcome="build-failed" if seed else "ok")
            of.append(made.model_copy(update={"trial": f"c{chunk}-s{seed}"}))
    assert "Growth with the chunk" in page(view_runs([run(of)]), [])


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_ranked_program_of_any_name_is_text_in_the_terminal(hostile: str) -> None:
    terminal = console()
    print_summary(run([fake.record(backend=hostile, lowered=hostile)]), terminal)
    harmless_terminal(terminal.file.getvalue())  # type: ignore[attr-defined]
    if hostile.startswith("[bold"):
        assert "[bold red]x[/]" in terminal.file.getvalue().partition("Medians")[0]  # type: ignore[attr-defined]
