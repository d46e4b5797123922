"""A program that helps the suite ends with its call and with the suite, and so does all that it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread

import pytest
from waiting import PATIENCE_S, has_ended, join, wait_until

from rnnbench.worker import run_helper
from rnnbench.worker.helper_program import HelperStoppedError

BEGINS = "sleep 1000 & first=$!; setsid sleep 1000 & echo $$ $first $! > begun; "
"""Both children have the program's output, and one is in a session of its own. The file has the numbers of all."""
LIMITS_S = (0.5, 5.0, 50.0)
"""One after the other, until the program has begun by then."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The programs run in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def numbers_in(folder: Path) -> list[int]:
    """The numbers of the program and its children; none before it has begun."""
    file = folder / "begun"
    return [int(number) for number in file.read_text().split()] if file.exists() else []


def test_it_gets_its_text_and_its_output_and_status_come_back():
    done = run_helper(["sh", "-c", "cat; echo wrong >&2; exit 7"], 60, "asked\n")
    assert (done.stdout, done.stderr, done.returncode) == ("asked\n", "wrong\n", 7)
    assert run_helper(["cat"], 60).stdout == ""


def test_a_long_text_arrives_whole_where_it_is_read_late():
    text = "asked ≈\n" * 100_000  # More than a pipe holds.
    assert run_helper(["sh", "-c", "sleep 0.3; cat"], 30, text, stop=Event()).stdout == text


def test_its_status_comes_back_where_ended_children_were_ignored():
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert run_helper(["sh", "-c", "exit 3"], PATIENCE_S).returncode == 3
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_output_that_is_no_text_is_shown_all_the_same():
    assert run_helper(["printf", "\\377"], 60).stdout == "\ufffd"


def test_its_text_is_utf_8_whatever_the_locale():
    """The texts of issues have ≈ and ×, which the encodings of many locales lack."""
    script = "from rnnbench.worker import run_helper; print(ascii(run_helper(['cat'], 60, '\\u2248').stdout))"
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **plain},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert done.stdout == "'\\u2248'\n"


def test_what_is_not_there_is_an_error_of_the_system():
    with pytest.raises(FileNotFoundError):
        run_helper(["/nowhere/at/all"], 60)


@pytest.mark.parametrize("end", ["sleep 1000", "exit 0"])
def test_one_whose_time_is_over_ends_with_its_children_though_they_hold_its_output(end, folder):
    for limit_s in LIMITS_S:
        begun = time.monotonic()
        with pytest.raises(subprocess.TimeoutExpired):
            run_helper(["sh", "-c", BEGINS + end], limit_s)
        assert time.monotonic() - begun < PATIENCE_S
        if numbers := numbers_in(folder):
            break
    assert len(numbers) == 3, "it has begun"
    wait_until(lambda: all(map(has_ended, numbers)), "a child outlived the call")


def test_an_interrupt_ends_it_with_its_children(folder):
    """It comes once both children are there."""

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_helper(["sh", "-c", f"{BEGINS}kill -ALRM {os.getpid()}; sleep 1000"], 900)
    finally:
        signal.signal(signal.SIGALRM, before)
    numbers = numbers_in(folder)
    assert len(numbers) == 3
    wait_until(lambda: all(map(has_ended, numbers)), "a child outlived the call")


def test_an_interrupt_while_it_is_started_ends_it_too(folder, monkeypatch):
    """The program runs already, and nobody has its number."""
    start = subprocess.Popen

    def interrupted(*arguments, **options):
        start(*arguments, **options)
        wait_until(lambda: len(numbers_in(folder)) == 3, "it begins")
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_helper(["sh", "-c", f"{BEGINS}sleep 1000"], 900)
    wait_until(lambda: all(map(has_ended, numbers_in(folder))), "a child outlived the call")


def test_it_ends_with_a_suite_that_is_killed(folder):
    script = f"from rnnbench.worker import run_helper; run_helper(['sh', '-c', {BEGINS + 'sleep 1000'!r}], 900)"
    suite = subprocess.Popen([sys.executable, "-c", script])
    wait_until(lambda: len(numbers_in(folder)) == 3, "it begins")
    numbers = numbers_in(folder)
    assert not any(map(has_ended, numbers))
    os.kill(suite.pid, signal.SIGKILL)
    suite.wait(PATIENCE_S)
    wait_until(lambda: all(map(has_ended, numbers)), "what it started ends with the suite")


def test_one_that_is_stopped_from_another_thread_ends_with_its_children(folder):
    stop = Event()

    def stop_it():
        wait_until(lambda: len(numbers_in(folder)) == 3, "it begins")
        stop.set()

    stopper = Thread(target=stop_it)
    stopper.start()
    with pytest.raises(HelperStoppedError):
        run_helper(["sh", "-c", f"{BEGINS}sleep 1000"], 900, stop=stop)
    join(stopper)
    wait_until(lambda: all(map(has_ended, numbers_in(folder))), "a child outlived the call")


def test_one_that_may_be_stopped_has_its_limit_and_its_output_all_the_same(folder):
    assert run_helper(["sh", "-c", "sleep 0.3; echo done"], PATIENCE_S, stop=Event()).stdout == "done\n"
    with pytest.raises(subprocess.TimeoutExpired, match=r"after 0\.2 seconds"):
        run_helper(["sleep", "1000"], 0.2, stop=Event())
