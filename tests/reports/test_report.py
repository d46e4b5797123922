"""What a report says, and what it must not: no number that was not measured, none from a program that is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import fake_records as fake
import pytest
from rich.console import Console

from rnnbench import optional
from rnnbench.reports import ReportError, print_summary, write_report
from rnnbench.reports.conformance_summary import how_far
from rnnbench.reports.latencies import above_floor
from rnnbench.reports.markdown import page
from rnnbench.reports.tables import IMPOSSIBLE, legend
from rnnbench.results import COLUMNS, Finding, FindingKind, StoreError
from rnnbench.results.record import CheckResult, ExpectedFailureResult, LatencyFloor, Record
from rnnbench.results.store import Run
from rnnbench.results.timing import DispatchFloor, Sampling
from rnnbench.results.views import Entry, short_names, view_runs


def markdown(*records: Record, **changes: Any) -> str:
    return page(view_runs([fake.run(records, **changes)]), [])


def section(text: str, title: str) -> str:
    """From a heading to the next of its level or above."""
    match = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    assert match, f"no heading '{title}'"
    rest = text[match.end() :]
    end = re.search(rf"^#{{1,{len(match[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("| ---")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines][1:]


@pytest.fixture(scope="module")
def whole() -> str:
    return markdown(*fake.whole_run())


def test_the_answer_names_the_fastest_of_each_origin_and_chunk(whole: str) -> None:
    answer = section(whole, "The answer")
    assert (
        answer.index("**1 step a call**") < answer.index("**16 steps a call**") < answer.index("**128 steps a call**")
    )
    for origin, target in (("library", "fakelib:ops"), ("imported", "fakemlir:onnx"), ("authored", "fakekernel:tir")):
        assert len(re.findall(rf"- {origin}: `{target}`", answer)) == 6
    assert "`fakekernel:tir` ≈" in answer
    assert "Signs: ≈ approximate activations." in answer
    for explained in (
        "next: the first program that is SLOWER by verdict. library: the runtime's own RNN operator. imported: ",
        "bound latency: ",
    ):
        assert explained in answer
    assert "kernel: " not in answer, "no program is one"
    assert "80 trials: 67 ok" in answer
    assert "A single process" not in whole, "each trial has several"


def test_a_lone_or_level_program_is_not_said_to_lead() -> None:
    alone = section(markdown(fake.record(chunk=1)), "The answer")
    assert "the only one" in alone
    level = section(markdown(*(fake.record(time=t, spread=0.0) for t in ("looped", "unrolled"))), "The answer")
    assert "same place: `fakelib:ops` unrolled-stitched" in level
    assert "Signs: same place: no verdict says that it is slower than the first program of the place." in level
    assert "next" not in level


def of_processes(time: str, *ratios: float, median: float = 1.0) -> Record:
    """A record with these medians of its processes and of all calls, in ms."""
    bound = fake.latency(1e-3 * median, processes=len(ratios), spread=0.0)
    medians = tuple(1e-3 * ratio for ratio in ratios)
    return fake.with_latencies(fake.record(time=time), bound=bound.model_copy(update={"process_medians": medians}))


@pytest.mark.parametrize("ratios", [(1.01, 1.005, 1.012), (1.02, 1.4, 1.1), (1.2,)])
def test_the_answer_calls_only_a_program_next_that_is_slower(ratios: tuple[float, ...]) -> None:
    """SAME, UNDECIDED, and a single process. Their ranges do not overlap with the fastest one's."""
    fastest = of_processes("looped", *[1.0] * len(ratios))
    answer = section(markdown(fastest, of_processes("unrolled", *ratios, median=min(ratios))), "The answer")
    assert "same place: `fakelib:ops` unrolled-stitched" in answer
    assert "next" not in answer
    slower = of_processes("unrolled", 1.2, 1.2, 1.21, median=1.2)
    answer = section(markdown(of_processes("looped", 1.0, 1.0, 1.0), slower), "The answer")
    assert "next `fakelib:ops` unrolled-stitched, 1.20× the latency" in answer
    assert "same place" not in answer


def test_the_next_program_has_the_ratio_of_its_verdict() -> None:
    """As the site, `compare` and the table of strategy pairs have it: of the processes, and not of the two medians."""
    slower = of_processes("unrolled", 1.2, 1.3, 1.4, median=1.38)
    answer = section(markdown(of_processes("looped", 1.0, 1.0, 1.0), slower), "The answer")
    assert "next `fakelib:ops` unrolled-stitched, 1.30× the latency" in answer


def test_a_ranking_says_what_its_places_mean(whole: str, capsys: pytest.CaptureFixture[str]) -> None:
    meaning = "The first program of a place is SLOWER, by verdict, than the first one of the place above."
    assert section(whole, "Ranking").count(meaning) == 6
    print_summary(fake.run(fake.whole_run()), Console(width=200))
    assert meaning in " ".join(capsys.readouterr().out.split())


def test_rankings_stand_by_origin_with_call_and_step(whole: str) -> None:
    ranking = section(whole, "Ranking")
    assert ranking.index("#### library") < ranking.index("#### imported") < ranking.index("#### authored")
    first = rows(section(ranking, "library: the runtime's own RNN operator"))[0]
    assert first[:5] == ["1", "1", "fakelib:ops", "unrolled-stitched", "unrolled 1"]
    sixteen = [row for row in rows(section(ranking, "library: the runtime's own RNN operator")) if row[0] == "16"]
    call, step = sixteen[0][5], sixteen[0][6]
    assert call.endswith(" µs")
    assert float(call.split()[0]) / 16 == pytest.approx(float(step.split()[0]), rel=0.01)


def test_a_shared_measurement_is_marked_and_not_placed(whole: str) -> None:
    shared = [row for row in rows(section(whole, "Ranking")) if row[1] == "same"]
    assert [row[3] for row in shared] == ["unrolled:4-stitched"]


def test_a_wrong_program_is_struck_and_listed_apart(whole: str) -> None:
    struck = rows(section(whole, "Not ranked: a check failed"))
    assert len(struck) == 1
    trial, why, call, step = struck[0]
    assert "unrolled:4-stitched" in trial
    assert "differs from the oracle" in why
    assert re.fullmatch(r"~~[\d.]+ [µnm]?s~~", call)
    assert step.startswith("~~")
    assert whole.count(call.strip("~")) == whole.count(call)


def test_every_outcome_is_listed_with_stage_and_reason(whole: str) -> None:
    listed = rows(section(whole, "Not in the ranking, and why"))
    assert {row[0] for row in listed} == set(fake.OUTCOMES) - {"ok"}
    for outcome, stage, *_, reason, upstream in listed:
        assert stage == fake.STAGES[outcome]  # type: ignore[index]
        assert reason == fake.REASONS[outcome]  # type: ignore[index]
        assert (upstream == "fake/project#7") == (outcome == "unsupported")


def test_the_conformance_matrix_gives_the_worst_error_and_counts_failures() -> None:
    trials = [fake.record(time="unrolled", chunk=c) for c in (1, 16)]
    trials.append(fake.record(time="unrolled", chunk=128, outcome="nonconforming"))
    text = section(markdown(*trials), "Conformance")
    (row,) = rows(text)
    cells = dict(zip(("program", "strategy", "trials", *fake.CHECKS), row, strict=True))
    assert cells["trials"] == "3"
    assert cells["values"] == "✓ 1.4×"
    assert cells["reset"] == "✓"
    assert cells["timed"] == "✗ 1 of 3 4e+05×"


def test_a_check_without_meaning_or_not_reached_is_no_pass() -> None:
    plain = fake.record()
    none = plain.conformance["state"].model_copy(update={"verdict": "not-applicable"})
    checks = {**plain.conformance, "state": none}
    del checks["timed"]
    other = fake.record("fakemlir", "linalg")
    text = section(markdown(plain.model_copy(update={"conformance": checks}), other), "Conformance")
    first = dict(zip(("program", "strategy", "trials", *fake.CHECKS), rows(text)[0], strict=True))
    assert (first["state"], first["timed"]) == ("n/a", "—")


def test_a_check_that_was_too_short_is_no_pass_and_the_terminal_says_how_far_it_came() -> None:
    plain = fake.record()
    figures = {"done": 40.0, "planned": 10_000.0, "least": 200.0}
    short = CheckResult(verdict="too-short", figures=figures)
    cut = plain.model_copy(update={"conformance": {**plain.conformance, "drift": short}})
    assert rows(section(markdown(cut), "Conformance"))[0][-1] == "too short"
    (sentence,) = how_far([cut, plain])
    said = "check 'drift' ran out of time in 1 of 1 trial; the shortest made 40 of 10,000 repetitions"
    assert said in sentence
    assert "in 1 of them it was too short to mean anything (below 200)" in sentence
    long_enough = plain.model_copy(update={"conformance": {"drift": CheckResult(verdict="pass", figures=figures)}})
    assert list(how_far([long_enough])) == [said]
    ran = {column.name: column.value for column in COLUMNS}["checks"]
    assert ran(cut, fake.info()) == ran(plain, fake.info())


def test_checks_that_did_not_begin_are_named_and_have_not_passed() -> None:
    plain = fake.record()
    late = CheckResult(verdict="too-short", detail="not begun: 40 of 60 s were over, 39 s of them for the reference")
    cut = plain.model_copy(update={"conformance": {**plain.conformance, "drift": late, "state": late}})
    assert rows(section(markdown(cut), "Conformance"))[0][-1] == "too short"
    (sentence,) = how_far([cut, plain])
    assert "2 checks did not begin in 1 of 2 trials, and these have not passed: state, drift" in sentence
    assert "39 s of them for the reference" in sentence


def test_compile_time_stands_by_chunk_and_its_growth_apart_with_an_interval() -> None:
    trials = []
    for chunk in (1, 4, 16):
        entry = fake.record(time="unrolled", chunk=chunk)
        timing = entry.timing.model_copy(update={"build_s": 0.5 * chunk**1.5})
        trials.append(entry.model_copy(update={"timing": timing}))
    text = markdown(*trials)
    (row,) = rows(section(text, "Build time (cold)"))
    assert row == ["fakelib:ops", "unrolled-stitched", "500 ms", "4.00 s", "32.0 s"]
    (row,) = rows(section(text, "Growth with the chunk"))
    assert row[2] == "1.50 ± 0.00, between linear and quadratic"


def test_memory_shows_the_largest_and_where() -> None:
    small, large = fake.record(chunk=1), fake.record(chunk=16)
    large = large.model_copy(update={"memory": large.memory.model_copy(update={"run_peak": 1 << 30})})
    (row,) = rows(section(markdown(small, large), "Memory"))
    assert row[2:] == ["1.00 GiB (16)", "80.0 MiB", "300 MiB", "50.0 MiB", "—", "—", "—"]


def test_what_lowered_to_something_else_is_a_finding(whole: str) -> None:
    found = rows(section(whole, "Compiled to another form than requested"))
    words = "the copies were rolled up into a loop"
    assert found == [["fakemlir:onnx", "unrolled", "looped 1", words, "hidden 128, 512; chunk 16", "2"]]


@pytest.mark.parametrize(
    ("time", "lowered", "finding"),
    [
        ("looped", "looped 2", False),
        ("looped", "unrolled 1", True),
        ("unrolled:4", "looped 1 of 4", False),
        ("unrolled:4", "unrolled 16", True),
        ("fused", "fused", False),
        ("fused", "looped 1", True),
        ("parallel", "parallel 3", False),
        ("chunked:16", "chunked 3 of 16", False),
        ("chunked:16", "chunked 3", True),
    ],
)
def test_asked_against_lowered(time: str, lowered: str, finding: bool) -> None:
    text = markdown(fake.record(time=time, lowered=lowered))
    assert ("Compiled to another form than requested" in text) is finding


@pytest.mark.parametrize(
    ("time", "chunk", "lowered", "words"),
    [
        ("looped", 1, "unrolled 1", "the loop of one step is folded"),
        ("looped", 16, "unrolled 16", "the loop is unrolled"),
        ("chunked:16", 16, "chunked 3", "the block is the whole call, and there is no loop around it"),
        ("looped", 16, "looped 1 + looped 1 of 8", "in parts: looped, looped of 8"),
        ("looped", 16, "looped 1 of 8", "each pass of the loop runs 8 copies"),
        ("fused", 1, "looped 1", "the operator is a loop over the kernels of a step"),
        ("unrolled:4", 16, "unrolled 16", "the loop over copies is fully unrolled"),
    ],
)
def test_a_difference_is_told_in_words(time: str, chunk: int, lowered: str, words: str) -> None:
    found = rows(
        section(
            markdown(fake.record(time=time, chunk=chunk, lowered=lowered)), "Compiled to another form than requested"
        )
    )
    assert words in found[0][3]


@pytest.mark.parametrize(
    ("chunk", "lowered", "kept"), [(1, "looped 1", True), (1, "unrolled 1", False), (4, "looped 1", False)]
)
def test_a_loop_kept_around_a_single_step_is_a_finding(chunk: int, lowered: str, kept: bool) -> None:
    text = markdown(fake.record(time="looped", chunk=chunk, lowered=lowered))
    assert ("A loop around a single step" in text) is kept


@pytest.mark.parametrize(("busy", "finding"), [(None, False), (1, False), (3, True)])
def test_threads_that_nobody_asked_for_are_a_finding(busy: int | None, finding: bool) -> None:
    entry = fake.record()
    environment = entry.environment.model_copy(update={"threads_requested": 1, "threads_busy": busy})
    text = markdown(entry.model_copy(update={"environment": environment}))
    assert ("Threads that differ from the requested number" in text) is finding


DISBELIEVED = Finding(kind=FindingKind.TIME, detail="work was done when somebody looked", disbelieved=True)
NOTED = Finding(kind=FindingKind.PROCESS, detail="it changed the working folder")


def test_what_is_not_believed_is_in_no_ranking_and_the_reason_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    believed = fake.record(bound=2e-4, findings=(NOTED,))
    other = fake.record("fakec", "ir", bound=1e-4, findings=(DISBELIEVED,))
    text = markdown(believed, other)
    assert "1 not believed (see Findings)" in text
    assert "fakec:ir" not in section(text, "Ranking")
    assert rows(section(text, "Not believed, and in no ranking"))[0][1:] == [
        *("fakec:ir", "looped-stitched", "hidden 128; chunk 16", "1", DISBELIEVED.detail),
    ]
    assert rows(section(text, "What the suite found"))[0][-1] == NOTED.detail
    print_summary(fake.run((believed, other)), Console(width=100, no_color=True))
    shown = " ".join(capsys.readouterr().out.split())
    assert f"not believed fakec:ir looped-stitched, hidden 128; chunk 16: {DISBELIEVED.detail}" in shown
    assert "2 trials: 2 ok; 1 not believed" in shown


NOT_BEGUN = CheckResult(verdict="too-short", detail="not begun: 60 of 120 s were over")
SELDOM = CheckResult(verdict="too-short", figures={"done": 9, "planned": 1000, "least": 170})


def test_what_was_not_fully_checked_is_told_in_the_report_and_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    passed = {"values": CheckResult(verdict="pass")}
    late = fake.record().model_copy(update={"conformance": {**passed, "rings": NOT_BEGUN, "memory": NOT_BEGUN}})
    slow = fake.record("fakec", "ir").model_copy(update={"conformance": {**passed, "sessions": SELDOM}})
    text = markdown(late, slow, fake.record(chunk=4))
    assert rows(section(text, "Not fully checked")) == [
        ["fakec:ir", "looped-stitched", "hidden 128; chunk 16", "1", "too few repetitions", "sessions"],
        ["fakelib:ops", "looped-stitched", "hidden 128; chunk 16", "1", "did not begin", "rings, memory"],
    ]
    print_summary(fake.run((late, slow)), Console(width=100, no_color=True))
    shown = " ".join(capsys.readouterr().out.split())
    assert "not fully checked 1 trial, did not begin: rings, memory; the report says which" in shown
    assert "not fully checked 1 trial, too few repetitions: sessions; the report says which" in shown
    assert "Not fully checked" not in markdown(fake.record())


def test_a_check_that_had_no_time_in_some_trials_is_no_full_pass_in_the_matrix() -> None:
    passed = fake.record().model_copy(update={"conformance": {"rings": CheckResult(verdict="pass", rounding=0.5)}})
    late = fake.record(chunk=4).model_copy(update={"conformance": {"rings": NOT_BEGUN}})
    assert rows(section(markdown(passed, late), "Conformance"))[0][2:] == ["2", "✓ 0.5×, 1 too short"]


def test_opening_and_binding_are_shown_where_they_take_more_than_a_hundred_calls() -> None:
    def prepared(bind_s: float) -> str:
        entry = fake.record(bound=1e-4)
        timing = entry.timing.model_copy(update={"open_s": 1e-3, "bind_s": bind_s, "close_s": 1e-5})
        return markdown(entry.model_copy(update={"timing": timing}))

    assert "Opening and binding" not in prepared(0.008)
    assert rows(section(prepared(0.1), "Opening and binding"))[0][3:] == [
        "1.00 ms",
        "100 ms",
        "4.00 ms",
        "10.0 µs",
        "1,016",
    ]


def test_emulation_is_marked_and_explained() -> None:
    entry = fake.record(state="stateful")
    support = entry.support.model_copy(update={"level": "emulated", "reason": "a fake copy on each call"})
    text = markdown(entry.model_copy(update={"support": support}))
    assert "looped-stateful †" in text
    assert "a fake copy on each call" in section(text, "Emulated")


def test_what_was_not_measured_is_a_dash_with_its_reason() -> None:
    entry = fake.record(processes=1)
    entry = fake.with_latencies(entry, public=None)
    timing = entry.timing.model_copy(update={"build_s": None, "build_origin": "cached"})
    memory = entry.memory.model_copy(update={"steady": None})
    text = markdown(entry.model_copy(update={"timing": timing, "memory": memory}))
    row = rows(section(text, "Ranking"))[0]
    assert "A single process has no verdict." in section(text, "Ranking")
    assert (row[7], row[8], row[11], row[12], row[13]) == ("—", "—", "—", "—", "—")
    reasons = {tuple(row) for row in rows(section(text, "Dashes in the tables, and why"))}
    assert ("cold build", "its artifact was found in the cache", "1") in reasons
    assert ("bound ± processes", "one process was sampled", "1") in reasons
    assert {figure for figure, *_ in reasons} >= {"public", "memory, steady"}
    assert "± processes" not in section(markdown(fake.record(processes=2)), "Dashes in the tables, and why")


@pytest.mark.parametrize("title", ["Build time (cold)", "Artifact size, weights included", "Memory"])
def test_a_trial_that_shares_a_measurement_has_no_row_of_costs(title: str) -> None:
    """It was built and loaded to see that its program is the same. Only the other trial's figures are shown."""
    own = fake.record(time="looped")
    shared = fake.record(time="unrolled", bound=None, same_as=own.trial)
    assert shared.artifact is not None
    (row,) = rows(section(markdown(own, shared), title))
    assert "looped" in row[1]


def test_a_shared_measurement_that_is_not_here_is_told() -> None:
    text = markdown(fake.record(bound=None, same_as="fake_case/elsewhere"))
    assert "the same program as fake_case/elsewhere" in text


def test_a_run_without_trials_still_has_a_page() -> None:
    text = markdown()
    assert "0 trials" in text
    assert "Fewer than two latencies could be drawn." in text


def test_text_from_compilers_cannot_break_a_table() -> None:
    text = markdown(fake.record(outcome="build-failed").model_copy(update={"reason": "a | b\nc <script>"}))
    assert "a \\| b c &lt;script>" in section(text, "Not in the ranking, and why")


def test_machine_versions_command_and_warnings_are_told() -> None:
    warnings = ("the last line is cut short", "a line was left out")
    warned = Run(Path("fake"), fake.info(), (fake.record(),), warnings)
    text = page(view_runs([warned]), [])
    for warning in warnings:
        assert f"**Warning:** {warning}" in text
    for expected in ("Fake CPU 9000", "24.0 GiB", "fakelib-package", "1.2.3", "rnnbench run fake_case.yaml"):
        assert expected in section(text, "Machine and versions")


def test_several_runs_make_one_report_where_the_machine_is_one() -> None:
    one, two = fake.run([fake.record(chunk=1, bound=1e-3)], "one"), fake.run([fake.record(chunk=1, bound=2e-3)], "two")
    shown = view_runs([one, two])
    assert [e.bound and round(e.bound.median, 4) for e in shown.entries] == [0.002]
    assert "of other runs too; the figures shown are those of two" in shown.warnings[0]
    other = fake.run([], "other", machine={"cpu": "Fake CPU 1"})
    with pytest.raises(StoreError, match="one and other come from different machines"):
        view_runs([one, other])
    with pytest.raises(StoreError, match="name at least one"):
        view_runs([])


def test_a_report_has_its_pictures_beside_it_and_is_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    records = [r for r in fake.whole_run() if r.params.model["hidden"] == 128 and r.backend != "fakemlir"]
    pages = [write_report([fake.run(records)], tmp_path / name) for name in ("first", "second")]
    first, second = ({p.name: p.read_bytes() for p in page.parent.iterdir()} for page in pages)
    assert first == second
    named = set(re.findall(r"\]\(([^)]+)\)", pages[0].read_text()))
    assert named == set(first) - {"report.md"}
    assert {Path(name).suffix for name in named} == {".png", ".svg"}
    assert all(first[name].startswith(b"\x89PNG") for name in named if name.endswith(".png"))
    bound = next(name for name in named if name.startswith("latency-bound") and name.endswith(".svg"))
    assert b"<dc:date>" not in first[bound]


def test_a_run_with_nothing_to_draw_has_no_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report = write_report([fake.run([fake.record(outcome="crashed")])], tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["report.md"]
    assert "Fewer than two latencies could be drawn." in report.read_text()


def test_without_matplotlib_the_page_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name, name=name.partition(".")[0])

    monkeypatch.setattr(optional.importlib, "import_module", absent)
    text = write_report([fake.run([fake.record()])], tmp_path).read_text()
    assert "pip install 'rnnbench[report]'" in section(text, "Pictures")
    assert "fakelib:ops" in section(text, "Ranking")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    with pytest.raises(ReportError, match=r"cannot write the report to .*a file.*--reports"):
        write_report([fake.run([fake.record()])], blocked)


def test_the_terminal_fits_a_hundred_columns_and_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(fake.run(fake.whole_run()), Console(width=100, no_color=True))
    text = capsys.readouterr().out
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 100
    assert re.search(r"fakekernel:tir ≈ +unrolled-stitched +16 +1 +46\.0 µs +2\.87 µs", text)
    assert re.search(r"unrolled:4-stitched +1 +same", text)
    origins = [line.strip() for line in text.splitlines() if line.strip() in ("authored", "library")]
    assert origins == ["library", "authored"] * 2, "each origin is a heading, once for each of two workloads"
    assert "80 trials: 67 ok" in text
    assert "5 failed" in text
    joined = " ".join(text.split())
    for outcome in fake.OUTCOMES:
        assert fake.REASONS[outcome] in joined


def test_a_narrow_terminal_keeps_programs_and_bound_latency(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(fake.run(fake.whole_run()), Console(width=80, no_color=True))
    text = capsys.readouterr().out
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert re.search(r"fakekernel:tir ≈ +unrolled-stitched +16 +1 +46\.0 µs +2\.87 µs", text)
    assert "public" not in text


def test_failures_alike_are_told_once() -> None:
    failed = [fake.record(time=t, chunk=c, outcome="crashed") for t in ("looped", "unrolled") for c in (1, 16)]
    (row,) = rows(section(markdown(*failed), "Not in the ranking, and why"))
    assert row[3:6] == ["looped-stitched, unrolled-stitched", "hidden 128; chunk 1, 16", "4"]


def test_short_names_keep_what_tells_trials_apart() -> None:
    trials = [fake.record(chunk=c, time=t).trial for c in (1, 16) for t in ("looped", "unrolled")]
    assert list(short_names(trials).values()) == [
        "looped-stitched c1",
        "unrolled-stitched c1",
        "looped-stitched c16",
        "unrolled-stitched c16",
    ]
    assert short_names(["a/b:c/d-e/h1-00000001", "a/b:c/d-e/h1-00000002"]) == {
        "a/b:c/d-e/h1-00000001": "00000001",
        "a/b:c/d-e/h1-00000002": "00000002",
    }
    assert short_names(["only/one"]) == {"only/one": "only/one"}


def test_memory_shows_the_weights_share_and_what_calls_add() -> None:
    entry = fake.record()
    grown = {"growth": 2048.0, "growth_calls": 12_000, "public_growth": 9e9, "public_growth_calls": 999}
    memory = entry.memory.model_copy(update={"steady": 60 << 20, "imported": 50 << 20, **grown})
    floor = LatencyFloor(
        nbytes=1, operations=1, weights=5 << 20, hoisted=None, level="L2", ratio=1.5, interval=(1.2, 1.9)
    )
    text = markdown(entry.model_copy(update={"memory": memory, "floor": floor}))
    (row,) = rows(section(text, "Memory"))
    assert row[6:] == ["5.00 MiB, 50 %", "2.00 KiB (12,000)", "too few calls (999)"]
    assert "1.50× (1.20 to 1.90)" in section(text, "Ranking")


@pytest.mark.parametrize(
    ("sampled", "shown"),
    [({"count": 99}, "—"), ({"sampling": Sampling(calls_per_sample=7)}, "(160 µs)"), ({}, "160 µs")],
)
def test_a_p99_is_of_single_calls_and_of_enough_of_them(sampled: dict[str, object], shown: str) -> None:
    record = fake.record()
    assert record.latency("bound") is not None
    bound = record.latency("bound").model_copy(update={"p99": 160e-6, **sampled})
    text = markdown(fake.with_latencies(record, bound=bound))
    assert rows(section(section(text, "Ranking"), "library: the runtime's own RNN operator"))[0][9] == shown
    assert ("fewer than 100 samples" in text) == (shown == "—")


def test_a_floor_without_an_interval_stands_alone_and_says_why() -> None:
    floor = LatencyFloor(nbytes=1, operations=1, weights=1, hoisted=None, level="L2", ratio=0.8, looks=1)
    text = markdown(fake.record().model_copy(update={"floor": floor}))
    assert "| 0.800× |" in section(text, "Ranking"), "without an interval nothing says that it is impossible"
    assert "the probe measured beside fewer than two processes" in section(text, "Dashes in the tables, and why")


def test_every_expected_failure_has_a_row_and_those_that_passed_come_first() -> None:
    failed, passed = (
        fake.record(
            "fakemlir",
            "linalg",
            chunk=chunk,
            expected_failures=(
                ExpectedFailureResult(what="timed", verdict=verdict, reason=reason, upstream=f"fake/project#{chunk}"),
            ),
        )
        for chunk, verdict, reason in ((1, "failed", "a known fault"), (2, "passed", "it was mended"))
    )
    shown = rows(section(markdown(failed, passed), "Expected failures"))
    assert [(row[0], *row[3:]) for row in shown] == [
        ("passed unexpectedly", "timed", "1", "it was mended", "fake/project#2"),
        ("failed, as expected", "timed", "1", "a known fault", "fake/project#1"),
    ]


def test_a_fault_that_failed_one_check_and_passed_another_has_a_row_for_each() -> None:
    failures = tuple(
        ExpectedFailureResult(what=what, verdict=verdict, reason="a known fault", upstream="fake/project#1")
        for what, verdict in (("values", "failed"), ("state", "passed"))
    )
    shown = rows(section(markdown(fake.record(expected_failures=failures)), "Expected failures"))
    assert [(row[0], row[3]) for row in shown] == [("passed unexpectedly", "state"), ("failed, as expected", "values")]


@pytest.mark.parametrize("unmeasured", [None, "", "no probe is compiled here"])
def test_a_floor_that_is_not_there_has_a_dash_with_a_reason(unmeasured) -> None:
    floor = (
        unmeasured
        if unmeasured is None
        else LatencyFloor(nbytes=1, operations=1, weights=1, hoisted=None, level="L2", unmeasured=unmeasured)
    )
    text = markdown(fake.record().model_copy(update={"floor": floor}))
    reason = unmeasured or "its record has none"
    assert ["× of floor", reason, "1"] in rows(section(text, "Dashes in the tables, and why"))


def test_a_dispatch_floor_that_is_not_there_says_why() -> None:
    entry = fake.record()
    timing = entry.timing.model_copy(update={"dispatch_floor": DispatchFloor(unmeasured="it has no counter")})
    text = markdown(entry.model_copy(update={"timing": timing}))
    assert ["dispatch floor", "it has no counter", "1"] in rows(section(text, "Dashes in the tables, and why"))


def test_a_ratio_that_lies_under_its_floor_is_marked() -> None:
    floor = LatencyFloor(nbytes=1, operations=1, weights=1, hoisted=None, level="L2", ratio=0.8, interval=(0.7, 0.9))
    assert "0.800× (0.700 to 0.900) ⚠" in markdown(fake.record().model_copy(update={"floor": floor}))


def test_an_interval_far_above_1_is_told() -> None:
    """On a GPU a call takes hundreds of times its floor."""
    floor = LatencyFloor(nbytes=1, operations=1, weights=1, hoisted=None, level="L2", ratio=144, interval=(131, 158))
    record = fake.record().model_copy(update={"floor": floor})
    assert above_floor(Entry(record, record)) == "144× (131 to 158)"


def test_figures_of_a_step_are_left_out_where_every_call_is_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    """They would repeat those of the call."""
    for chunks, is_there in (((1,), False), ((1, 16), True)):
        records = [fake.record(chunk=chunk) for chunk in chunks]
        print_summary(fake.run(records), Console(width=100, no_color=True))
        assert ("/step" in capsys.readouterr().out) is is_there
        text = section(markdown(*records), "Ranking")
        heads = next(line for line in text.splitlines() if line.startswith("| chunk"))
        assert "bound/call" in heads
        assert ("/step" in heads) is is_there
        assert {len(row) for row in rows(text)} == {heads.count("|") - 1}


def kernel(chunk: int = 1, **changes: Any) -> Record:
    record = fake.record("fakekernel", "tir", chunk=chunk, **changes)
    assert record.artifact is not None
    return record.model_copy(update={"artifact": record.artifact.model_copy(update={"origin": "kernel"})})


@pytest.mark.parametrize(("interval", "is_marked"), [((0.7, 0.9), True), ((0.9, 1.1), False), ((1.1, 1.2), False)])
def test_only_an_interval_that_lies_below_1_as_a_whole_is_marked(
    interval: tuple[float, float], is_marked: bool
) -> None:
    floor = LatencyFloor(nbytes=1, operations=1, weights=1, hoisted=None, level="L2", ratio=1.0, interval=interval)
    record = fake.record().model_copy(update={"floor": floor})
    assert (IMPOSSIBLE in above_floor(Entry(record, record))) is is_marked


def test_kernels_have_a_group_of_their_own_that_says_whose_skill_it_measures() -> None:
    compiled = fake.record("fakemlir", "linalg", chunk=1, bound=2e-4)
    text = markdown(kernel(bound=1e-4), compiled)
    ranking = section(text, "Ranking")
    heading = "#### kernel: kernels written by hand in this suite; they measure its authors' skill, not a compiler's"
    assert ranking.index("#### authored: IR written in this suite") < ranking.index(heading)
    assert "‡ a kernel written by hand in this suite" in ranking
    assert [row[1] for row in rows(section(ranking, heading.removeprefix("#### ")))] == ["1"]
    answer = section(text, "The answer")
    assert answer.index("authored: `fakemlir:linalg`") < answer.index("kernel: `fakekernel:tir`")


def test_kernels_stand_last_in_every_table_of_programs() -> None:
    text = markdown(kernel(), fake.record("fakemlir", "linalg", chunk=1))
    for title in ("Memory", "Build time (cold)", "Artifact size, weights included"):
        names = [row[0] for row in rows(section(text, title))]
        assert names[0] == "fakemlir:linalg"
        assert names[-1] == "fakekernel:tir ‡ ≈"


def test_a_legend_explains_just_the_signs_of_its_table() -> None:
    assert legend(["1", "2=", "same", "—", "fakekernel:tir ≈"]) == (
        "Signs: ≈ approximate activations. 1= a shared place: no verdict says that it is slower than the first program "
        "of the place. same the same program, called the same way; measured once. — not measured, or without meaning "
        "here."
    )
    assert legend(["1", "12.3 µs", "same as"]) == ""
    assert "Signs: — not measured" in section(markdown(fake.record(bound=None)), "Memory")


def test_metrics_have_a_table_of_their_own() -> None:
    text = markdown(
        fake.record(chunk=1, metrics={"open_files": 9.0}), fake.record(chunk=16, metrics={"open_files": 12.0})
    )
    assert rows(section(text, "Metrics")) == [["fakelib:ops", "looped-stitched", "12"]]
    assert "Open files: Open file descriptors" in section(text, "Metrics")
    assert "#### Metrics" not in markdown(fake.record())


def test_a_software_device_stands_apart_with_its_sign() -> None:
    text = markdown(fake.record(chunk=1, device=fake.SOFTWARE_DEVICE), fake.record(chunk=16))
    (row,) = rows(section(text, "Not ranked: software device fakepipe"))
    assert row[:3] == ["fakelib:ops §", "looped-stitched", "1"]
    assert "§ a software device: the processor emulates it; its times are not ranked" in text
    assert "Not ranked" not in markdown(fake.record())


def test_a_ranking_has_the_scatter_of_processes_and_the_p99_of_a_step() -> None:
    record = fake.record(chunk=16)
    bound = record.timing.latency["bound"].model_copy(
        update={"median": 100e-6, "process_medians": (90e-6, 100e-6, 110e-6), "p99": 160e-6}
    )
    text = markdown(fake.with_latencies(record, bound=bound))
    (row,) = rows(section(section(text, "Ranking"), "library: the runtime's own RNN operator"))
    assert (row[7], row[9], row[10]) == ("±10.0 %", "160 µs", "10.0 µs")


def test_a_place_that_programs_share_is_marked_in_the_page_and_explained() -> None:
    text = markdown(
        *(fake.record(time=time, chunk=16) for time in ("looped", "unrolled")),
        fake.record(chunk=16, time="fused", bound=1.0),
    )
    places = [row[1] for row in rows(section(section(text, "Ranking"), "library: the runtime's own RNN operator"))]
    assert places == ["1=", "1=", "3"]
    assert "1= a shared place" in text
