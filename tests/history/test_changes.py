"""What changed is told with its night, versions and size; the machine is not taken for the compiler."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_records as fake
import made_history as made
import numpy as np
import pytest
from quick_tests import for_proof

pytest.importorskip("duckdb")

from rnnbench.history import (
    Change,
    History,
    change_lines,
    find_changes,
    find_events,
    machines_without_anchors,
    told_by_backends,
    without_anchors,
)
from rnnbench.history.causes import NEAR, program_change
from rnnbench.history.series import trials_of_machines
from rnnbench.results import Finding, FindingKind, Record

NIGHTS, STEP = 16, 8


def new_version(n: int, record: Record, backend: str = "fakemlir") -> Record:
    return made.of_version(record, "2.0") if record.backend == backend and n >= STEP else record


def bound(history: History) -> list[Change]:
    return [change for change in find_changes(history) if change.measure == "bound"]


@pytest.fixture(scope="module")
def slow_backend(tmp_path_factory: pytest.TempPathFactory) -> History:
    def night(n: int, record: Record) -> Record | None:
        if n in (4, 12):
            return None if record.params.chunk == 1 else record
        return made.slower(new_version(n, record), 1.05 if record.backend == "fakemlir" and n >= STEP else 1)

    return made.make(tmp_path_factory.mktemp("slow"), NIGHTS, night)


def test_a_backend_is_told_first_with_night_versions_size_and_trials(slow_backend: History) -> None:
    change, *trials = bound(slow_backend)
    assert (change.level, change.subject, change.cause) == ("backend", "fakemlir", "program")
    assert change.run == f"night{STEP:03d}"
    assert change.last_run == f"night{STEP - 1:03d}"
    assert change.versions == ("fakemlir-package 1.2.3", "fakemlir-package 2.0")
    assert change.interval[0] < 1.05 < change.interval[1]
    assert change.interval[0] < change.ratio < change.interval[1]
    assert len(change.together) == len(trials) == 4
    assert {trial.level for trial in trials} == {"trial"}
    with pytest.raises(FrozenInstanceError):
        change.run = ""  # type: ignore[misc]


@pytest.mark.proof
def test_the_last_night_with_the_old_level_is_one_on_which_it_was_measured(tmp_path: Path) -> None:
    def night(n: int, record: Record) -> Record | None:
        if record.backend != "fakelib":
            return record
        return None if n == STEP - 1 else made.slower(new_version(n, record, "fakelib"), 1.1 if n >= STEP else 1)

    runs = {(change.run, change.last_run) for change in bound(made.make(tmp_path, NIGHTS, night))}
    assert runs == {(f"night{STEP:03d}", f"night{STEP - 2:03d}")}


def test_the_words_name_a_backend_once_with_what_moved_together(slow_backend: History) -> None:
    lines = list(change_lines(bound(slow_backend)))
    assert lines[0] == "Backends"
    assert "fakemlir: bound latency +5." in lines[1]
    assert "fakemlir-package 1.2.3 → fakemlir-package 2.0" in lines[1]
    assert lines[2].startswith("      moved together: ")
    assert "Trials" not in lines


def test_the_words_have_a_title_for_each_kind_of_change(slow_backend: History) -> None:
    backend = bound(slow_backend)[0]
    trial = replace(backend, level="trial", subject="case/trial", together=())
    moved = replace(trial, cause="environment", reason="the machine moved")
    member = replace(trial, subject=backend.together[0])
    lines = list(change_lines([trial, moved, backend, member]))
    assert [line for line in lines if line[0] != " "][:3] == ["Backends", "Trials", "Environment"]
    assert [sum(f" {subject}: " in line for line in lines) for subject in ("case/trial", member.subject)] == [2, 0]


def test_a_backend_tells_of_each_of_its_trials_the_change_that_moved_with_it() -> None:
    """Another step of such a trial, another direction, measure or machine is news of its own."""
    whole = one_change("backend", "fake", 20, together=("a", "b"))
    told = [one_change("trial", "a", 21), one_change("trial", "b", 18)]
    own = [
        one_change("trial", "a", 27, ratio=1.2),
        one_change("trial", "a", 20, ratio=0.9),
        one_change("trial", "a", 20, measure="public"),
        one_change("trial", "a", 20, machine="other"),
        one_change("trial", "c", 20),
    ]
    assert told_by_backends([whole, *told, *own]) == {*told}
    lines = "\n".join(change_lines([whole, *told, *own]))
    assert [f"2026-01-{one.night[8:10]}  {one.subject}: " in lines for one in (*told, own[0])] == [False, False, True]


def test_a_drift_of_a_backend_tells_what_began_while_it_lasted_and_is_no_larger() -> None:
    drift = one_change("backend", "fake", 10, together=("a",), until=night_of(20))
    own = [one_change("trial", "a", day, ratio=ratio) for day, ratio in ((9, 1.03), (15, 1.04), (17, 1.2), (22, 1.03))]
    assert told_by_backends([drift, *own]) == {*own[:2]}


def night_of(day: int) -> str:
    return f"2026-01-{day:02d}T02:00:00"


def one_change(level: Any, subject: str, day: int, **changes: Any) -> Change:
    said = {
        "machine": "m",
        "backend": "fake",
        "measure": "bound",
        "run": "run",
        "last_run": "before",
        "versions": ("1", "2"),
        "ratio": 1.1,
        "interval": (1.08, 1.12),
        "cause": "program",
        "reason": "",
    }
    return Change(**{**said, "level": level, "subject": subject, "night": night_of(day), **changes})


def test_a_machine_that_moves_is_told_and_no_program_is_blamed(tmp_path: Path) -> None:
    def night(n: int, record: Record) -> Record:
        return made.slower(made.of_version(record, str(n)) if not record.baseline else record, 1.08 if n >= STEP else 1)

    history = made.make(tmp_path, NIGHTS, night)
    (change,) = bound(history)
    assert (change.level, change.cause) == ("machine", "environment")
    assert change.interval[0] < 1.08 < change.interval[1]
    moves = [one.measure for one in find_changes(history) if one.level == "machine"]
    assert moves == ["bound", "public"], "once for each latency, and not for what is divided by one"


@pytest.mark.proof
def test_a_machine_that_moves_is_told_before_a_program_would_be(tmp_path: Path) -> None:
    """It hides no alert that is larger, so a few nights are enough."""

    def night(n: int, record: Record) -> Record:
        return made.slower(record, 1.08 if n >= NIGHTS - 4 and record.backend in ("fakebase", "fakelib") else 1)

    assert {change.level for change in bound(made.make(tmp_path, NIGHTS, night))} == {"machine"}


@pytest.mark.proof
def test_anchors_of_another_version_are_no_move_of_the_machine(tmp_path: Path) -> None:
    def night(n: int, record: Record) -> Record:
        return made.slower(new_version(n, record, "fakebase"), 1.1 if record.baseline and n >= STEP else 1)

    assert bound(made.make(tmp_path, NIGHTS, night)) == []


@pytest.mark.proof
def test_the_same_program_with_another_latency_is_the_environments(tmp_path: Path) -> None:
    def night(n: int, record: Record) -> Record:
        return made.slower(record, 1.1 if record.backend == "fakelib" and n >= STEP else 1)

    changes = bound(made.make(tmp_path, NIGHTS, night))
    assert [(change.subject.split("/")[1], change.cause) for change in changes] == [("fakelib:ops", "environment")] * 2
    assert "the same program with the same versions" in changes[0].reason


@pytest.mark.proof
@pytest.mark.parametrize("what", ["rnnbench", *for_proof("python", "digest")])
def test_another_suite_interpreter_or_program_may_be_what_changed_a_latency(tmp_path: Path, what: str) -> None:
    def night(n: int, record: Record) -> Record:
        is_newer = n >= STEP and record.backend == "fakelib"
        version = "9.9" if n >= STEP and what == "rnnbench" else record.rnnbench
        digest = "of another program" if is_newer and what == "digest" else "of the first"
        artifact = record.artifact and record.artifact.model_copy(update={"digest": digest})
        changed = {"rnnbench": version, "artifact": artifact}
        return made.slower(record, 1.1 if is_newer else 1).model_copy(update=changed)

    def machine(n: int) -> dict[str, object]:
        return {**made.MACHINE, "python": "3.12.1" if n >= STEP and what == "python" else "3.11.7"}

    changes = bound(made.make(tmp_path, NIGHTS, night, machine))
    assert [(change.backend, change.cause) for change in changes] == [("fakelib", "program")] * 2


def test_memory_that_grows_is_the_programs_though_nothing_of_it_changed(tmp_path: Path) -> None:
    """The speed of the machine does not enter it."""

    def night(n: int, record: Record) -> Record:
        grown = (5 if record.backend == "fakelib" and n >= STEP else 4) << 20
        return record.model_copy(update={"memory": record.memory.model_copy(update={"run_peak": grown})})

    changes = find_changes(made.make(tmp_path, NIGHTS, night))
    assert [(change.measure, change.backend, change.cause) for change in changes] == [
        ("run_memory", "fakelib", "program")
    ] * 2


@pytest.mark.proof
def test_each_machine_has_series_of_its_own(tmp_path: Path) -> None:
    machines = [made.MACHINE, {**made.MACHINE, "cpu": "Fake CPU 1"}]
    history = made.make(
        tmp_path, NIGHTS, lambda n, record: made.slower(record, 1 + n % 2), machine=lambda n: machines[n % 2]
    )
    assert bound(history) == []


@pytest.mark.proof
def test_another_gpu_in_a_machine_begins_series_of_its_own(tmp_path: Path) -> None:
    """Its versions change at the same time, so nothing else tells it from a step of the compiler."""

    def night(n: int, record: Record) -> Record:
        if record.baseline:
            return record
        is_other = n >= STEP
        newer = made.of_version(record, "2.0" if is_other else "1.0")
        return made.on_gpu(made.slower(newer, 3 if is_other else 1), "GPU B" if is_other else "GPU A")

    history = made.make(tmp_path, NIGHTS, night)
    assert find_changes(history) == ()
    ((_, trials),) = trials_of_machines(history)
    assert len(trials.names) == len(made.trials()) + 6


@pytest.mark.proof
def test_a_step_on_one_of_two_gpus_is_told_also_where_some_runs_name_none(tmp_path: Path) -> None:
    """Records of an earlier rnnbench have no device: they stay in the series."""

    def night(n: int, record: Record) -> Record:
        if record.backend != "fakelib":
            return record
        on_b = n in (4, 6)
        newer = made.of_version(record, "2.0" if n >= STEP else "1.0")
        slower = made.slower(newer, 3 if on_b else 1.2 if n >= STEP else 1)
        return made.on_gpu(slower, None if n < 3 else "GPU B" if on_b else "GPU A")

    assert [(change.run, round(change.ratio, 1)) for change in bound(made.make(tmp_path, NIGHTS, night))] == [
        (f"night{STEP:03d}", 1.2)
    ] * 2


def test_the_runs_of_a_machine_are_those_on_it(tmp_path: Path) -> None:
    """The nights between two of them are no nights of its own, by which a change is dated."""
    history = made.make(tmp_path, 4, machine=lambda n: {**made.MACHINE, "cores": 2 + n % 2})
    found = dict(trials_of_machines(history))
    assert len(found) == 2
    for machine, trials in found.items():
        assert [run.machine for run in trials.runs] == [machine] * 2


@pytest.mark.proof
def test_trials_that_come_and_go_do_not_move_their_backend(tmp_path: Path) -> None:
    def night(n: int, record: Record) -> Record | None:
        return None if record.backend == "fakemlir" and (record.params.chunk > 2) == (n < STEP) else record

    assert bound(made.make(tmp_path, NIGHTS, night)) == []


def test_what_is_not_believed_is_in_no_series(tmp_path: Path) -> None:
    finding = Finding(kind=FindingKind.TIME, detail="too fast", disbelieved=True)

    def night(n: int, record: Record) -> Record:
        if record.backend != "fakelib" or n < STEP:
            return record
        return made.slower(made.of_version(record, "2.0"), 0.1).model_copy(update={"findings": (finding,)})

    assert bound(made.make(tmp_path, NIGHTS, night)) == []


def pinned(record: Record) -> Record:
    """The record of an anchor, whose versions are older than those that its backend has otherwise."""
    params = record.params.model_copy(update={"pinned": "fakelib-package==0.9"})
    changes = {"trial": f"{record.trial}-pinned", "params": params, "version": {"fakelib-package": "0.9"}}
    return record.model_copy(update=changes)


@pytest.mark.proof
def test_pinned_trials_are_anchors_and_no_version_of_their_backend(tmp_path: Path) -> None:
    def night(n: int, record: Record) -> Record | None:
        if record.baseline:
            return None
        moved = made.slower(record, 1.08 if n >= STEP else 1)
        if record.backend == "fakelib":
            return pinned(moved) if n < NIGHTS - 1 or record.params.chunk == 64 else moved
        return made.of_version(moved, str(n))

    history = made.make(tmp_path, NIGHTS, night)
    (change,) = bound(history)
    assert (change.level, change.cause) == ("machine", "environment")
    assert machines_without_anchors(history) == ()
    subjects = {event.subject for event in find_events(history) if event.fact in ("versions", "measured")}
    assert subjects == {"fakemlir"}, "another pin ends no trial, and its version is not the backend's"


@pytest.mark.proof
def test_targets_of_the_settings_are_anchors(tmp_path: Path) -> None:
    history = made.make(tmp_path, 12, lambda n, record: None if record.baseline else made.slower(record, 1 + (n > 5)))
    assert {change.level for change in bound(history)} <= {"backend", "trial"}
    machines = machines_without_anchors(history)
    assert machines == (history.runs[0].machine,)
    assert f"no anchor was measured on machine {machines[0]}" in without_anchors(machines[0])
    assert machines_without_anchors(history, ["fakelib:ops"]) == ()
    (history.root / "settings.yaml").write_text("anchors: [fakelib:ops]\n")
    assert {change.level for change in find_changes(history) if change.measure == "bound"} <= {"machine"}


@pytest.mark.proof
def test_a_slow_process_moves_no_series_whose_median_it_is_not(tmp_path: Path) -> None:
    """A third process with more calls moves the median of all calls, and not the median of the processes."""

    def night(n: int, record: Record) -> Record:
        record = new_version(n, record)
        if record.backend != "fakemlir" or n < STEP:
            return record
        latencies = {}
        for path, one in record.timing.latency.items():
            *others, slowest = sorted(one.process_medians)
            changes = {"median": 1.1 * one.median, "process_medians": (*others, 1.2 * slowest)}
            latencies[path] = one.model_copy(update=changes)
        return record.model_copy(update={"timing": record.timing.model_copy(update={"latency": latencies})})

    assert bound(made.make(tmp_path, NIGHTS, night)) == []


def test_what_shares_a_measurement_or_ran_on_a_software_device_or_was_built_before_is_in_no_series(
    tmp_path: Path,
) -> None:
    def night(n: int, record: Record) -> Record:
        record = new_version(n, record)
        if record.backend == "fakelib":
            return made.slower(record, 1.2 if n >= STEP else 1).model_copy(update={"device": fake.SOFTWARE_DEVICE})
        if record.backend != "fakemlir" or n < STEP:
            return record
        first = record.params.chunk == 1
        built = {"build_s": 9.0, "build_origin": "cached"}
        slower = made.slower(record, 1 if first else 1.05)
        memory = record.memory.model_copy(update={"build_peak": 900 << 20})
        slower = slower.model_copy(update={"timing": slower.timing.model_copy(update=built), "memory": memory})
        return slower if first else slower.model_copy(update={"same_as": record.trial})

    assert [change.measure for change in find_changes(made.make(tmp_path, NIGHTS, night))] == []


def moved(factor_of_program: float, version_at: int = STEP, machine_at: int | None = STEP) -> made.Night:
    """A move of the machine by 20 %, and a change of fakemlir with a new version."""

    def night(n: int, record: Record) -> Record:
        record = made.slower(record, 1.2 if machine_at is not None and n >= machine_at else 1)
        if record.backend != "fakemlir":
            return record
        return made.slower(
            made.of_version(record, "2.0" if n >= version_at else "1.0"), factor_of_program if n >= STEP else 1
        )

    return night


@pytest.mark.first(1)
@pytest.mark.parametrize(("factor", "cause"), [(1.06, "environment"), (1.15, "program")])
def test_a_change_of_less_than_half_a_move_of_the_machine_is_the_machines(tmp_path: Path, factor: float, cause) -> None:
    changes = bound(made.make(tmp_path, NIGHTS, moved(factor)))
    assert {change.cause for change in changes if change.subject == "fakemlir"} == {cause}
    assert changes[0].level == "machine"


@pytest.mark.proof
def test_a_move_of_the_machine_on_another_night_hides_no_change(tmp_path: Path) -> None:
    changes = bound(made.make(tmp_path, 24, moved(1.06, machine_at=16)))
    assert {change.cause for change in changes if change.subject == "fakemlir"} == {"program"}


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("nights", "cause"), [*for_proof((0, "program"), (-3, "program")), (3, "program"), (4, "environment")]
)
def test_a_version_explains_a_change_within_three_nights(tmp_path: Path, nights: int, cause: str) -> None:
    changes = bound(made.make(tmp_path, NIGHTS, moved(1.1, STEP + nights, None)))
    (change,) = [change for change in changes if change.subject == "fakemlir"]
    assert change.cause == cause
    same = "fakemlir-package 2.0" if nights < 0 else "fakemlir-package 1.0"
    assert change.versions == (("fakemlir-package 1.0", "fakemlir-package 2.0") if cause == "program" else (same, same))


@pytest.mark.proof
def test_of_two_versions_the_nearer_one_explains_a_change(tmp_path: Path) -> None:
    def night(n: int, record: Record) -> Record:
        version = "1.0" if n < STEP else "2.0" if n < STEP + NEAR else "3.0"
        if record.backend != "fakemlir":
            return record
        return made.slower(made.of_version(record, version), 1.1 if n >= STEP else 1)

    change = bound(made.make(tmp_path, NIGHTS, night))[0]
    assert change.versions == ("fakemlir-package 1.0", "fakemlir-package 2.0")


@pytest.mark.parametrize(
    ("versions", "between", "expected"),
    [
        ("aaabbb", None, ("a", "b")),
        ("abcdef", None, ("c", "d")),
        ("abcdef", (3, 3), ("c", "d")),
        ("abcdef", (2, 4), ("b", "e")),
        ("abcdef", (0, 5), ("a", "f")),
        ("aaabbb", (1, 5), ("a", "b")),
        ("aabbbc", (3, 4), ("a", "b")),
        ("ab-cd-", (2, 4), ("b", "d")),
        ("abbbab", (2, 4), ("b", "a")),
        ("aabbaa", (2, 4), ("a", "b")),
        ("aaaaaa", (1, 5), None),
    ],
)
def test_versions_of_a_change_are_those_around_each_night_on_which_it_may_have_begun(versions, between, expected):
    """The step is dated on the fourth night. On a dash the trial was not measured."""
    program = np.array([[0 if name == "-" else ord(name) for name in versions]], dtype=np.uint64)
    trials = SimpleNamespace(program=program, versions=np.array([list(versions)], dtype=object))
    assert program_change(trials, [0], 3, between) == expected


@pytest.mark.first(1)
@pytest.mark.parametrize(("runs", "together"), [(NEAR, 1), (NEAR + 1, 0)])
def test_trials_that_move_within_three_nights_move_together(tmp_path: Path, runs: int, together: int) -> None:
    def night(n: int, record: Record) -> Record:
        at = STEP if record.params.chunk == 64 else STEP + runs
        return made.slower(record, 1.3 if record.backend == "fakelib" and n >= at else 1)

    changes = bound(made.make(tmp_path, NIGHTS + 5, night))
    assert [len(change.together) for change in changes] == [together] * 2


@pytest.mark.proof
def test_what_moved_the_other_way_did_not_move_together(tmp_path: Path) -> None:
    def night(n: int, record: Record) -> Record:
        if record.backend not in ("fakemlir", "fakelib"):
            return record
        faster = record.backend == "fakelib" and record.params.chunk == 64
        record = made.of_version(record, "2.0" if n >= STEP else "1.0")
        return made.slower(record, (0.9 if faster else 1.1) if n >= STEP else 1)

    changes = {change.subject: change for change in bound(made.make(tmp_path, NIGHTS, night))}
    backend = changes["fakemlir"]
    assert len(backend.together) == 4
    assert {subject.split("/")[1] for subject in backend.together} == {"fakemlir:linalg"}
    other = next(
        change for subject, change in changes.items() if subject.startswith("fake_case/fakelib") and change.ratio > 1
    )
    assert len(other.together) == 4, "the trials of the other backend, and not the one of its own that got faster"


@pytest.mark.parametrize(("trials", "has_series"), [*for_proof((2, False)), (3, True)])
def test_a_backend_has_a_series_from_three_trials_on(tmp_path: Path, trials: int, has_series: bool) -> None:
    def night(n: int, record: Record) -> Record | None:
        if record.backend == "fakemlir" and record.params.chunk >= 2**trials:
            return None
        return made.slower(new_version(n, record), 1.1 if record.backend == "fakemlir" and n >= STEP else 1)

    changes = bound(made.make(tmp_path, NIGHTS, night))
    assert {change.level for change in changes} == ({"backend", "trial"} if has_series else {"trial"})


def all_but_anchors(of_anchors: float, of_programs: float, new: tuple[str, ...] = ("fakemlir",)) -> made.Night:
    """From STEP on, anchors and programs take so many times as long, and these backends have another version."""

    def night(n: int, record: Record) -> Record:
        factor = of_anchors if record.backend == "fakebase" else of_programs
        slower = made.slower(record, factor if n >= STEP else 1)
        return made.of_version(slower, "2.0") if n >= STEP and record.backend in new else slower

    return night


@pytest.mark.parametrize(("programs", "cause"), [(1.06, "environment"), *for_proof((1.0, None))])
def test_a_new_version_that_moved_as_programs_that_did_not_change_is_not_accused(
    tmp_path: Path, programs: float, cause: str | None
) -> None:
    night = all_but_anchors(1.0, programs, new=("fakelib",))
    changes = [change for change in bound(made.make(tmp_path, NIGHTS, night)) if change.backend == "fakelib"]
    assert {change.cause for change in changes} == ({cause} if cause else set())
    assert all("programs that did not change moved by +" in change.reason for change in changes)


def test_a_new_version_that_moved_by_far_more_than_the_others_is(tmp_path: Path) -> None:
    def night(n: int, record: Record) -> Record:
        record = all_but_anchors(1.0, 1.03, new=("fakelib",))(n, record)
        return made.slower(record, 1.06 if record.backend == "fakelib" and n >= STEP else 1)

    changes = [change for change in bound(made.make(tmp_path, NIGHTS, night)) if change.backend == "fakelib"]
    assert {change.cause for change in changes} == {"program"}


@pytest.mark.proof
def test_anchors_that_moved_alone_accuse_no_backend(tmp_path: Path) -> None:
    history = made.make(tmp_path, NIGHTS, all_but_anchors(0.9, 1.0, new=("fakemlir", "fakelib")))
    reasons = {change.reason for change in bound(history) if change.backend == "fakelib"}
    assert reasons
    assert all("the anchors alone moved by -" in reason for reason in reasons)
