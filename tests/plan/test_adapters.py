"""Whatever an adapter does when it is imported or asked, its trials have the right outcome, and no others notice.

`tests/benchmarks` has every way in `support`. Here are some ways of each kind, in all three places.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import psutil
import pytest
from dying_runs import enlisted, outcomes
from harness_trials import make_trial
from quick_tests import for_proof
from unasked import unasked_adapters
from waiting import ended, wait_until

from rnnbench.backends import AdapterError, Support, find, request_of
from rnnbench.plan import adapters, examine_all
from rnnbench.plan.adapters import ENOUGH, REQUESTS_AT_ONCE
from rnnbench.rnn import Weights
from rnnbench.stages import Failure
from rnnbench.worker import AskProbe, WorkerError, adapter_process, process_family

DYING = {"dying", "dying-entry"}
PROBE, ENTRY = "RNNBENCH_DYING_PROBE", "RNNBENCH_DYING_ENTRY"
WAYS = (
    *("raises", "memory-error", "system-exit", "os-exit-0", "sigsegv", "kills-its-group", "writes-rubbish"),
    *("dies-while-a-child-holds-the-channel", "a-daemon", "replies-twice", "clears-its-environment", "prints-much"),
    "returns-none",
)
SLOW = ("sleeps", "becomes-a-program-that-sleeps", "grows-in-a-child")
"""Ways that a limit ends."""
HASTE_S = 0.5
FIRST, LAST = "fake:honest", "numpy:eager"
"""Healthy targets, which are asked before and after one that dies. Each answers in one process in all of the tests."""


@pytest.fixture(scope="module")
def is_enlisted(tmp_path_factory):
    with enlisted(tmp_path_factory.mktemp("dying")):
        yield


@pytest.fixture
def dying(is_enlisted):
    """Backends that die, of which nothing is known yet."""
    yield
    close_dying()
    for name in DYING:
        adapters._adapters.pop(name, None)


def close_dying():
    for name in DYING & adapters._adapters.keys():
        adapters._adapters[name].close()


def suite_state():
    """What an adapter could change in the suite's own process."""
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return os.getcwd(), dict(os.environ), handlers


def open_files():
    """Number and file of each descriptor of this process. One that earlier tests left may be closed at any time."""
    files = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            files.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return files


def outcome_of(target: str, first: str = FIRST) -> tuple[str, Failure | None]:
    """The outcome of a trial of the target, examined between two healthy ones."""
    before, failure, after = (one.failure for one in examine_all(map(make_trial, (first, target, LAST))))
    assert (before, after) == (None, None)
    return ("ok" if failure is None else failure.outcome), failure


def session_of(pid: int) -> int:
    """-1 for a process that has ended."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return -1


def counted_forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Has an entry for each fork of this process from now on."""
    forks: list[int] = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: forks.append(1) or fork())
    return forks


def named(stage: str, way: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A target whose adapter goes this way there."""
    if stage == "support":
        return f"dying:support.{way}"
    monkeypatch.setenv(PROBE if stage == "probe" else ENTRY, way)
    return "dying:honest" if stage == "probe" else "dying-entry:honest"


def test_what_one_route_leaves_in_the_process_harms_no_trial_of_another_route(monkeypatch):
    """The support of one route breaks the process for all that is asked after it, without a word."""
    with unasked_adapters():
        adapter = find("fake")._adapter
        honest, broken = adapter.support, []

        def support(request):
            assert not broken, "another route broke the process"
            broken.extend([1] * (request.route == "wrong-bound"))
            return honest(request)

        monkeypatch.setattr(adapter, "support", support, raising=False)
        routes = ("wrong-bound", "honest", "wrong-bound", "honest")
        assert [one.failure for one in examine_all(make_trial(f"fake:{route}") for route in routes)] == [None] * 4


def test_many_requests_are_answered_by_one_process(monkeypatch):
    trials = [make_trial("fake:honest", chunk=chunk) for chunk in range(1, 301)]
    with unasked_adapters():
        forks = counted_forks(monkeypatch)
        assert all(one.failure is None for one in examine_all(trials))
    assert len(forks) == 1


def test_one_failure_among_many_answers_is_of_its_request_alone():
    ways = ("honest", "support-raises", "honest", "support-exits", "wrong-bound")
    routes = [ways[number % len(ways)] for number in range(100)]
    assert REQUESTS_AT_ONCE % len(ways), "the requests that are asked together begin with another way each time"
    with unasked_adapters():
        requests = [request_of(make_trial(f"fake:{route}"), Weights(())) for route in routes]
        answers = adapters.supports("fake", requests)
    for route, answer in zip(routes, answers, strict=True):
        if "support" in route:
            assert isinstance(answer, AdapterError)
            assert answer.outcome == ("crashed" if route == "support-exits" else "run-failed")
        else:
            assert isinstance(answer, Support)
            assert answer.environment == {"RNNBENCH_FAKE": route}


@pytest.mark.parametrize("stage", ["probe", "support"])
def test_a_failure_that_a_kill_for_memory_led_to_is_for_want_of_memory(monkeypatch, tmp_path, stage):
    """The kernel killed a compiler that the adapter started, and the adapter says no more than that it failed."""
    (events := tmp_path / "memory.events").write_text("oom_kill 3\n")
    monkeypatch.setattr(process_family, "_memory_events", lambda: iter([events]))

    def refuse(request=None):
        events.write_text(f"oom_kill {int(events.read_text().split()[1]) + 1}\n")
        raise RuntimeError("cc: Killed")

    with unasked_adapters():
        monkeypatch.setattr(find("fake")._adapter, stage, refuse, raising=False)
        outcome, failure = outcome_of("fake:honest", first=LAST)
    assert outcome == "out-of-memory"
    assert "cc: Killed; meanwhile the kernel's out-of-memory killer ended a process" in failure.reason


@pytest.mark.each_value
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stage", ["entry", "probe", "support"])
def test_each_way_has_its_outcome_and_harms_nobody(dying, monkeypatch, capfd, stage, way):
    outcome_of(FIRST)
    target = named(stage, way, monkeypatch)
    before, opened = suite_state(), open_files()
    outcome, failure = outcome_of(target)
    close_dying()
    assert outcome in outcomes(way, stage), failure
    if failure is not None:
        assert failure.stage == ("support" if stage == "support" else "probe")
        assert failure.outcome != "crashed" or {"entry": "import"}.get(stage, stage) in failure.reason
    assert suite_state() == before
    assert open_files() <= opened
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("way", SLOW)
@pytest.mark.parametrize("stage", [*for_proof("entry", "probe"), "support"])
def test_what_never_answers_is_ended_at_its_limit(dying, monkeypatch, stage, way):
    monkeypatch.setattr(adapter_process, "MEMORY_LIMIT", 200 << 20)
    limit = HASTE_S if way != "grows-in-a-child" else 30.0
    outcome_of(FIRST)
    target = named(stage, way, monkeypatch)
    monkeypatch.setattr(adapter_process, "ANSWER_LIMIT_S", limit)
    failure = examine_all([make_trial(target)])[0].failure
    assert failure is not None
    assert failure.outcome in outcomes(way, stage)


def test_what_an_adapter_started_ends_with_its_process(dying):
    children = {process.pid for process in psutil.Process().children(recursive=True)}
    assert examine_all([make_trial("dying:support.a-daemon"), make_trial("dying:support.many-children")])
    started = [one for one in psutil.Process().children(recursive=True) if one.pid not in children]
    assert len(started) >= 3
    adapters.close_adapters()
    wait_until(lambda: ended(started), "it outlived the adapter's process")


def test_children_that_fork_on_end_with_a_process_whose_guard_is_slow(dying, monkeypatch):
    """The guard is given no time at all. Each child forks the next one, in the session of the adapter's process."""
    monkeypatch.setattr(adapter_process, "GUARD_LIMIT_S", 0.0)
    examine_all([make_trial("dying:support.many-children")])
    guard = psutil.Process(adapters._adapters["dying"]._process.pid)
    session = os.getsid(guard.children()[0].pid)
    adapters.close_adapters()

    def in_session() -> list[psutil.Process]:
        return [one for one in psutil.process_iter() if session_of(one.pid) == session]

    wait_until(lambda: ended(in_session()), "a child outlived the adapter's process")


def test_an_adapter_that_hangs_in_every_answer_is_not_asked_for_ever(dying, monkeypatch):
    outcome_of("dying:honest")  # It is probed in no haste.
    monkeypatch.setattr(adapter_process, "ANSWER_LIMIT_S", HASTE_S)
    trials = [make_trial("dying:support.sleeps", chunk=chunk) for chunk in (1, 2, 4, 8, 16, 32)]
    forks = counted_forks(monkeypatch)
    failures = [one.failure for one in examine_all(trials)]
    assert {failure.outcome for failure in failures if failure} == {"timed-out"}
    assert "is not asked for the support of support.sleeps again" in failures[-1].reason
    assert len(forks) <= 1 + ENOUGH


def test_a_process_of_an_adapter_ends_with_the_suite(dying):
    """The guard waits for the end of a pipe that only the suite holds."""
    examine_all([make_trial("dying:support.a-child-in-its-own-session")])
    process = adapters._adapters["dying"]._process
    started = psutil.Process(process.pid).children(recursive=True)
    assert started
    os.close(process._held_by_suite)
    process._held_by_suite = -1
    wait_until(lambda: ended(started), "it outlived the suite")


def test_a_probe_that_had_no_answer_in_time_is_asked_once_more(dying, monkeypatch):
    """All trials of the backend would fail for a process that stands still at a lock that it was forked with."""
    answer, late = adapter_process.AdapterProcess.answer, []

    def late_at_first(process, command):
        if not late and isinstance(command, AskProbe):
            late.append(process)
            raise WorkerError("timed-out", "no answer", alive=False)
        return answer(process, command)

    monkeypatch.setattr(adapter_process.AdapterProcess, "answer", late_at_first)
    assert outcome_of("dying:honest") == ("ok", None)
    assert len(late) == 1
