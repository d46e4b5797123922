"""What a program leaves changed in its process is named as what it is, and put back where that is possible."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import tempfile
import threading

import numpy as np
import pytest
from faulty_leavings import LEAVINGS, PLACES, Leaks, session_that
from harness_trials import make_trial
from honest_adapter import HonestProgram, HonestSession

from rnnbench.backends import request_of
from rnnbench.conformance import ReferenceTrajectories
from rnnbench.results import CheckResult, FindingKind
from rnnbench.worker.c_settings import read_timers, restore_timers
from rnnbench.worker.finding_log import FindingLog
from rnnbench.worker.process_settings import PROCESS_SETTINGS, changed_settings, read_settings, restore_settings
from rnnbench.worker.process_state import MOST_LEFT, ProcessWatch, WatchedWork
from rnnbench.worker.protocol import Failed

TIMES = 3


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return ReferenceTrajectories(make_trial(), tmp_path_factory.mktemp("references"))


@pytest.fixture(autouse=True)
def process():
    """Whatever a test leaves in this process is put back."""
    before = read_settings()
    yield
    restore_settings(before, changed_settings(before, read_settings()))


@pytest.fixture
def leaks(own_segments):
    leaks = Leaks()
    yield leaks
    leaks.clean_up()


def use(session, reference, times=TIMES):
    """Passes every place of a session."""
    program = HonestProgram(request_of(make_trial(), reference.weights), "digest", True, lambda: program)
    for _ in range(times):
        opened = session(program)
        bound = opened.bind(reference.ring)
        bound()
        bound.sync()
        opened.step(reference.ring[0])
        opened.get_state()
        opened.close()


def found(watch):
    return [finding.detail for finding in watch.findings.take()]


PLACES_IN_TURN = [
    pytest.param(
        leaving,
        PLACES[(2 * number + turn) % len(PLACES)],
        id=f"{leaving.name}-{turn}",
        marks=[pytest.mark.proof] * turn,
    )
    for number, leaving in enumerate(LEAVINGS)
    for turn in range(2)
]
"""Each change in two places, in `make test` in one: the process is compared before and after all of them."""


@pytest.mark.parametrize(("leaving", "place"), PLACES_IN_TURN)
def test_a_changed_setting_is_named_once_and_put_back(leaving, place, reference):
    # Where a process may use one core only, it is there already, and nothing changes.
    if leaving.name == "moves to one core" and len(os.sched_getaffinity(0)) == 1:
        pytest.skip("there is one core only")
    watch, before = ProcessWatch(FindingLog()), read_settings()
    session = session_that(leaving.change, place)
    for _ in range(2):
        watch.around(WatchedWork.SAMPLE, "trial", lambda: use(session, reference))
    findings = watch.findings.take()
    assert len(findings) == 1, findings
    assert findings[0].kind is FindingKind.PROCESS
    assert findings[0].detail.startswith("the sampled calls left ")
    assert leaving.named in findings[0].detail
    assert changed_settings(before, read_settings()) == {}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="there is one core only")
def test_a_program_may_go_back_to_the_cores_on_which_it_was_timed():
    """As OpenVINO does, which binds the thread of a call to the cores of its load. The suite moved the process."""
    first, *_, last = sorted(os.sched_getaffinity(0))
    watch = ProcessWatch(FindingLog())
    os.sched_setaffinity(0, {first})
    watch.around(WatchedWork.SAMPLE, "trial", lambda: None)
    os.sched_setaffinity(0, {last})
    watch.around(WatchedWork.VERIFY, "trial", lambda: os.sched_setaffinity(0, {first}))
    assert found(watch) == []
    assert os.sched_getaffinity(0) == {last}
    watch.around(WatchedWork.VERIFY, "trial", lambda: os.sched_setaffinity(0, {first, last}))
    assert found(watch) == [
        f"the check after sampling left scheduling changed: cores {(first, last)} instead of ({last},)"
    ]


def test_a_folder_of_temporary_files_that_was_removed_is_made_again(tmp_path, monkeypatch):
    """Another trial in the process makes files there."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    watch = ProcessWatch(FindingLog())
    watch.around(WatchedWork.SAMPLE, "trial", lambda: shutil.rmtree(folder))
    assert found(watch) == ["the sampled calls left the folder of temporary files changed: it was removed"]
    assert folder.is_dir()
    assert watch.around(WatchedWork.SAMPLE, "other", lambda: tempfile.mkdtemp()).startswith(str(folder))


def test_every_setting_has_a_program_that_leaves_it_changed():
    assert all(any(setting.name in f"the {leaving.named}" for leaving in LEAVINGS) for setting in PROCESS_SETTINGS)


@pytest.mark.each_value
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("what", "name"),
    [("descriptor", "descriptors"), ("thread", "threads"), ("segment", "bytes of shared memory")],
)
def test_what_grows_with_the_calls_is_named_and_its_process_is_not_used_again(what, name, place, reference, leaks):
    watch, session = ProcessWatch(FindingLog()), session_that(getattr(leaks, what), place)
    # Some more than are allowed: a thread of an earlier test may end meanwhile.
    times = 2 if what == "segment" else MOST_LEFT[name] + 8
    reply = watch.around(WatchedWork.SAMPLE, "trial", lambda: use(session, reference, times))
    assert isinstance(reply, Failed)
    assert reply.harmed
    assert f"more {name}" in reply.reason
    (finding,) = [detail for detail in found(watch) if f"{name} more than before" in detail]
    assert finding.startswith("the sampled calls left ")


def test_children_that_stay_are_counted(reference, leaks):
    watch = ProcessWatch(FindingLog())
    session = session_that(leaks.child, "open")
    reply = watch.around(WatchedWork.CHECK, "trial", lambda: use(session, reference, MOST_LEFT["children"] + 1))
    assert reply is None, "a worker of one trial goes on: nobody else uses it"
    assert f"the checks left {MOST_LEFT['children'] + 1} children more than before" in found(watch)


def test_a_leak_over_many_commands_adds_up_for_each_trial(leaks):
    watch = ProcessWatch(FindingLog())
    replies = [
        watch.around(WatchedWork.SAMPLE, trial, work)
        for _ in range(MOST_LEFT["descriptors"])
        for trial, work in (("leaks", leaks.descriptor), ("sound", lambda: None))
    ]
    assert replies == [None] * len(replies)
    assert watch.around(WatchedWork.SAMPLE, "leaks", leaks.descriptor).harmed
    assert watch.around(WatchedWork.SAMPLE, "sound", lambda: "figures") == "figures"


def test_a_program_that_used_up_all_descriptors_has_harmed_its_process():
    watch, limits = ProcessWatch(FindingLog()), resource.getrlimit(resource.RLIMIT_NOFILE)

    def use_up():
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        raise RuntimeError("too many open files")

    try:
        reply = watch.around(WatchedWork.CHECK, "trial", use_up)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert reply.harmed
    assert "the checks left a process that cannot be read: OSError" in reply.reason


@pytest.mark.parametrize("modules", [("psutil",), tuple(sys.modules)], ids=("one", "all"))
def test_a_program_that_removed_modules_has_harmed_its_process(modules, monkeypatch):
    """Also where the suite can still read the process: the next trial's command would fail of it."""
    watch = ProcessWatch(FindingLog())

    def remove():
        for name in modules:
            monkeypatch.delitem(sys.modules, name, raising=False)

    try:
        reply = watch.around(WatchedWork.SAMPLE, "trial", remove)
    finally:
        monkeypatch.undo()
    assert reply.harmed
    assert "the sampled calls left a process" in reply.reason


def test_much_that_is_printed_while_calls_are_timed_is_named_and_harms_nobody(capfd):
    watch, line = ProcessWatch(FindingLog()), b"called " * 1_000 + b"\n"
    watch.around(WatchedWork.SAMPLE, "trial", lambda: os.write(1, line))
    assert not found(watch), "what one call prints is no finding"
    for _ in range(150):
        assert watch.around(WatchedWork.SAMPLE, "trial", lambda: os.write(1, line)) == len(line)
    (finding,) = found(watch)
    assert "bytes printed more than before" in finding


def test_what_cannot_be_put_back_makes_the_process_unfit(monkeypatch):
    watch = ProcessWatch(FindingLog())
    monkeypatch.setattr("rnnbench.worker.process_state.restore_settings", lambda values, names: None)
    reply = watch.around(WatchedWork.SAMPLE, "trial", lambda: np.seterr(over="raise"))
    assert reply.harmed
    assert "NumPy's handling of errors" in reply.reason


def test_a_program_that_raises_is_compared_too():
    watch = ProcessWatch(FindingLog())

    def raises():
        sys.setrecursionlimit(4321)
        raise RuntimeError("lost its device")

    reply = watch.around(WatchedWork.SAMPLE, "trial", raises)
    assert "lost its device" in reply.reason
    assert not reply.harmed, "what it changed was put back"
    assert any("recursion limit" in detail for detail in found(watch))


def test_a_failed_check_says_what_was_changed_while_it_ran():
    watch = ProcessWatch(FindingLog())

    def results():
        yield "values", CheckResult(verdict="pass")
        np.seterr(over="raise")
        yield "chunks", CheckResult(verdict="fail", detail="y: off by 1")
        yield "start", CheckResult(verdict="fail", detail="y: off by 2")

    details = {name: result.detail for name, result in watch.explained("trial", results())}
    assert details["chunks"].startswith("left NumPy's handling of errors changed: ")
    assert details["chunks"].endswith(". y: off by 1")
    assert details["start"] == "y: off by 2", "the next check begins with what the first one had"
    (finding,) = found(watch)
    assert finding.startswith("the check 'chunks' left NumPy's handling of errors changed")


def test_an_honest_program_leaves_nothing(reference):
    watch = ProcessWatch(FindingLog())
    for work in WatchedWork:
        assert watch.around(work, "trial", lambda: use(HonestSession, reference)) is None
    assert found(watch) == []


def test_what_first_calls_start_and_imports_change_is_no_finding(tmp_path, monkeypatch, reference):
    """A pool of threads, a cache that is opened once, a variable of the framework's own, a line in the log."""
    watch, kept, end = ProcessWatch(FindingLog()), [], threading.Event()

    def first():
        if not kept:
            kept.append((tmp_path / "cache").open("wb"))
            kept.extend(threading.Thread(target=end.wait, daemon=True) for _ in range(8))
            for thread in kept[1:]:
                thread.start()

    def load():
        monkeypatch.setenv("FRAMEWORK_SAYS", "1")
        print("framework: 2 cores", flush=True)

    session = session_that(first, "step")
    watch.around(WatchedWork.LOAD, "trial", load)
    for work in (WatchedWork.CHECK, WatchedWork.SAMPLE, WatchedWork.SAMPLE, WatchedWork.VERIFY):
        assert not isinstance(watch.around(work, "trial", lambda: use(session, reference)), Failed)
    assert found(watch) == []
    end.set()
    kept[0].close()


@pytest.mark.parametrize(
    ("name", "take_away"),
    [
        ("the recursion limit", lambda: sys.setrecursionlimit(sys.getrecursionlimit() - 100)),
        ("sys.path", lambda: sys.path.pop()),
        ("environment variables", lambda: os.environ.pop("PATH")),
    ],
)
@pytest.mark.parametrize("stage", [WatchedWork.IMPORT, WatchedWork.PREPARE])
def test_what_an_import_takes_away_is_put_back(stage, name, take_away):
    watch, before = ProcessWatch(FindingLog()), read_settings()
    watch.around(stage, "trial", take_away)
    assert read_settings()[name] == before[name]
    assert [f"left {name} changed" in detail for detail in found(watch)] == [True]


def test_what_an_import_adds_stays():
    def add():
        sys.setrecursionlimit(sys.getrecursionlimit() + 100)
        sys.path.append("added")
        os.environ["ADDED_BY_AN_IMPORT"] = "1"

    watch, limit = ProcessWatch(FindingLog()), sys.getrecursionlimit()
    watch.around(WatchedWork.PREPARE, "trial", add)
    assert (sys.getrecursionlimit(), sys.path[-1], os.environ["ADDED_BY_AN_IMPORT"]) == (limit + 100, "added", "1")
    assert found(watch) == []


@pytest.mark.parametrize("work", [WatchedWork.SAMPLE, WatchedWork.VERIFY])
def test_what_is_sampled_or_verified_with_a_replaced_function_does_not_count(work):
    watch, absolute = ProcessWatch(FindingLog()), np.abs
    reply = watch.around(work, "trial", lambda: setattr(np, "abs", lambda array: array * 0))
    assert isinstance(reply, Failed)
    assert "(numpy.abs)" in reply.reason
    assert np.abs is absolute


def test_a_check_that_passed_with_a_replaced_function_has_failed():
    def results():
        for name, function in (("values", lambda array: array * 0), ("reset", np.abs)):
            np.abs = function
            yield name, CheckResult(verdict="pass")

    absolute = np.abs
    (_, values), (_, reset) = ProcessWatch(FindingLog()).explained("trial", results())
    assert (values.verdict, reset.verdict) == ("fail", "pass")
    assert "numpy.abs" in values.detail
    assert np.abs is absolute


def test_between_two_commands_of_sampling_the_process_is_read_once(monkeypatch):
    watch, read = ProcessWatch(FindingLog()), ProcessWatch.read
    readings = []
    monkeypatch.setattr(ProcessWatch, "read", lambda self: readings.append(self) or read(self))
    for work in (WatchedWork.SAMPLE, WatchedWork.SAMPLE, WatchedWork.SAMPLE):
        watch.around(work, "trial", lambda: None)
    assert len(readings) == 4
    watch.around(WatchedWork.VERIFY, "trial", lambda: None)
    watch.around(WatchedWork.SAMPLE, "trial", lambda: None)
    assert len(readings) == 8, "another command is compared with what it met"


def test_what_changes_between_two_commands_of_sampling_is_found_in_the_second():
    watch = ProcessWatch(FindingLog())
    watch.around(WatchedWork.SAMPLE, "trial", lambda: None)
    before = np.geterr()["divide"]
    np.seterr(divide="raise")
    watch.around(WatchedWork.SAMPLE, "trial", lambda: None)
    assert np.geterr()["divide"] == before
    assert len(found(watch)) == 1


@pytest.mark.parametrize("timer", [signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF])
def test_each_of_the_timers_of_a_process_is_seen_and_stopped(timer):
    before = read_timers()
    signal.setitimer(timer, 3600)
    assert read_timers() != before
    restore_timers(before)
    assert read_timers() == before
