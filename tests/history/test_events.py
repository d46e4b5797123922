"""What is no number is told in plain words: outcomes, checks, support, forms, versions, what is believed."""

from __future__ import annotations

from pathlib import Path

import fake_records as fake
import made_history as made
import pytest

pytest.importorskip("duckdb")

from rnnbench.history import History, event_lines, find_events
from rnnbench.results import CheckResult, CheckVerdict, Finding, FindingKind, Record


def told(tmp_path: Path, before: Record, after: Record | None) -> list[str]:
    def night(n: int, record: Record) -> Record | None:
        if record.backend != "fakelib" or record.params.chunk != 16:
            return record
        changed = before if n == 0 else after
        return changed and changed.model_copy(update={"trial": record.trial})

    return [event.sentence for event in find_events(made.make(tmp_path, 2, night))]


OK = fake.record()
FINDING = Finding(kind=FindingKind.TIME, detail="a call took no time", disbelieved=True)


@pytest.mark.first(4)
@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (OK, fake.record(outcome="nonconforming"), "no longer conforms"),
        (fake.record(outcome="nonconforming"), OK, "conforms again"),
        (fake.record(outcome="unsupported"), OK, "is supported now"),
        (
            OK,
            fake.record(outcome="unsupported"),
            "is no longer supported: fakelib has no operator that keeps its own state",
        ),
        (
            OK,
            fake.record(outcome="crashed"),
            "ends as crashed (it was ok): the worker died of signal 11 (SIGSEGV)",
        ),
        (OK, fake.record(lowered="unrolled 16"), "became unrolled 16 (it was looped 1)"),
        (
            OK,
            OK.model_copy(update={"support": OK.support.model_copy(update={"level": "emulated"})}),
            "has emulated support (it was native)",
        ),
        (
            OK,
            OK.model_copy(update={"findings": (FINDING,)}),
            "has figures that are not believed: a call took no time",
        ),
        (OK, None, "is no longer measured"),
    ],
)
def test_a_trial_that_changes_is_told(tmp_path: Path, before: Record, after: Record | None, sentence: str) -> None:
    assert told(tmp_path, before, after) == [sentence]


def test_what_stays_is_no_event(tmp_path: Path) -> None:
    assert told(tmp_path, OK, OK) == []


def test_other_versions_are_told_once_for_a_backend(tmp_path: Path) -> None:
    history = made.make(tmp_path, 2, lambda n, r: made.of_version(r, "2.0") if n and r.backend == "fakemlir" else r)
    assert list(event_lines(find_events(history))) == [
        "Events",
        "  2026-01-02  fakemlir changed its versions: fakemlir-package 1.2.3 → fakemlir-package 2.0",
    ]


@pytest.mark.parametrize(("last", "nights"), [(None, [2, 3, 4]), (2, [3, 4]), (1, [4]), (9, [2, 3, 4])])
def test_events_of_the_last_runs_are_told_alone(tmp_path: Path, last: int | None, nights: list[int]) -> None:
    history = made.make(tmp_path, 4, lambda n, r: made.of_version(r, f"{n}.0") if r.backend == "fakemlir" else r)
    assert [int(event.night[8:10]) for event in find_events(history, last)] == nights


@pytest.mark.first(1)
@pytest.mark.parametrize(("finished", "gone"), [(None, 0), ("2026-01-02T03:00:00+00:00", 1)])
def test_a_run_that_was_cut_short_says_nothing_of_the_trials_that_it_lacks(
    tmp_path: Path, finished: str | None, gone: int
) -> None:
    history = made.make(tmp_path, 1)
    times = {"started": "2026-01-02T02:00:00+00:00", "finished": finished}
    history.add(fake.write_run(tmp_path / "last", made.trials()[1:], **times, seed=1, machine=made.MACHINE))
    assert [event.fact for event in find_events(History(history.root))] == ["measured"] * gone


def test_a_trial_whose_route_was_renamed_is_told_with_the_one_that_is_measured_since(tmp_path: Path) -> None:
    old, new = fake.record(route="old"), fake.record(route="new")
    history = made.make(tmp_path, 2, lambda n, r: (new if n else old) if r.trial == OK.trial else r)
    assert [(event.subject, event.sentence) for event in find_events(history)] == [
        (old.trial, f"is no longer measured: {new.trial} is measured since")
    ]


def test_text_of_records_is_safe_in_a_terminal(tmp_path: Path) -> None:
    crashed = fake.record(outcome="crashed").model_copy(update={"reason": "\x1b[2Jgone"})
    lines = [*told(tmp_path, OK, crashed)]
    assert lines
    history = made.make(tmp_path / "again", 2, lambda n, r: crashed.model_copy(update={"trial": r.trial}) if n else r)
    assert not any("\x1b" in line for line in event_lines(find_events(history)))


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("gpus", "outcome", "events"),
    [
        (("GPU A", "GPU B"), "out-of-memory", []),
        (("GPU A", "GPU A"), "out-of-memory", ["ends as out-of-memory (it was ok)"]),
        (("GPU A", None), "unavailable", ["is no longer installed"]),
    ],
    ids=["another GPU", "the same", "none"],
)
def test_what_another_gpu_cannot_do_is_no_news_of_a_program(
    tmp_path: Path, gpus: tuple[str, str | None], outcome: str, events: list[str]
) -> None:
    before, after = made.on_gpu(OK, gpus[0]), made.on_gpu(fake.record(outcome=outcome), gpus[1])
    assert [sentence.partition(":")[0] for sentence in told(tmp_path, before, after)] == events


def test_a_trial_whose_failed_check_had_no_time_does_not_conform_again(tmp_path: Path) -> None:
    """The record is ok. The night after it, in which the check has its time, says what became of the fault."""
    failed = fake.record(outcome="nonconforming")
    (name,) = failed.failed_checks

    def answered(verdict: CheckVerdict) -> Record:
        return OK.model_copy(update={"conformance": {**OK.conformance, name: CheckResult(verdict=verdict)}})

    def night(n: int, record: Record) -> Record:
        if record.backend != "fakelib" or record.params.chunk != 16:
            return record
        nights = (failed, answered("too-short"), answered("pass"), answered("too-short"))
        return nights[n].model_copy(update={"trial": record.trial})

    events = find_events(made.make(tmp_path, 4, night))
    assert {(event.sentence, event.night[:10]) for event in events} == {("conforms again", "2026-01-03")}
