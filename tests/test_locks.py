"""A lock has one holder, and those that wait for it learn who that is."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest
from waiting import PATIENCE_S

from rnnbench import locks
from rnnbench.locks import LockHeldError, holder_of, is_free, locked, locked_folder

HOLDS = """
import sys, time
from pathlib import Path
from rnnbench.locks import locked
with locked(Path(sys.argv[1]), shared=sys.argv[2:] == ["shared"]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def hold():
    """Starts a process that holds a lock until its input ends."""
    started = []

    def start(file, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDS, str(file), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait(PATIENCE_S)
        process.stdin.close()
        process.stdout.close()


def test_a_lock_is_held_by_one_at_a_time_and_free_afterwards(tmp_path):
    file = tmp_path / "folder" / "a.lock"
    again = locked(file, wait=False)
    with locked(file), pytest.raises(BlockingIOError), again:
        pass
    with locked(file, wait=False):
        assert file.exists()


def test_a_lock_names_its_holder_while_it_is_held_and_nobody_afterwards(tmp_path, monkeypatch):
    file = tmp_path / "a.lock"
    monkeypatch.setattr(sys, "argv", ["/usr/bin/rnnbench", "history", "add", "a run\x1b[31m"])
    with locked(file):
        holder = holder_of(file)
        assert holder.startswith(f"process {os.getpid()} on ")
        assert "(rnnbench history add 'a run'; since 2" in holder
    assert holder_of(file) == "another process"


def test_a_holder_that_was_killed_is_not_named_for_those_that_read(tmp_path, hold):
    file = tmp_path / "a.lock"
    killed = hold(file)
    killed.kill()
    killed.wait(PATIENCE_S)
    assert f"process {killed.pid}" in holder_of(file)
    with locked(file, shared=True):
        assert holder_of(file) == "another process"


def test_a_command_that_waits_for_a_stopped_one_says_which_and_goes_on_with_it(tmp_path, hold):
    file = tmp_path / "a.lock"
    holder = hold(file)
    os.kill(holder.pid, signal.SIGSTOP)
    waiting = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        told = waiting.stderr.readline()
        assert told.startswith(f"waiting for the lock {file}, held by process {holder.pid} on ")
        assert f"it is stopped: `kill -CONT {holder.pid}` lets it go on); this goes on once it is free" in told
        assert waiting.poll() is None
        os.kill(holder.pid, signal.SIGCONT)
        holder.stdin.close()
        assert waiting.communicate(timeout=PATIENCE_S) == ("held\n", "")
    finally:
        waiting.kill()


def test_a_command_that_waits_for_less_than_a_second_says_nothing(tmp_path, hold, monkeypatch, capfd):
    monkeypatch.setattr(locks, "SILENT_S", PATIENCE_S)
    file = tmp_path / "a.lock"
    holder = hold(file)
    holder.stdin.close()
    with locked(file):
        pass
    assert capfd.readouterr().err == ""


def test_those_that_read_wait_for_one_that_writes_and_not_for_each_other(tmp_path, hold, monkeypatch, capfd):
    monkeypatch.setattr(locks, "SILENT_S", 0.01)
    file = tmp_path / "a.lock"
    hold(file, "shared")
    with locked(file, shared=True, wait=False), pytest.raises(BlockingIOError), locked(file, wait=False):
        pass
    assert capfd.readouterr().err == ""


def test_a_lock_on_a_full_disk_is_a_lock(tmp_path, monkeypatch):
    """Its note has no room."""

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    file = tmp_path / "a.lock"
    with locked(file), pytest.raises(BlockingIOError), locked(file, wait=False):
        pass


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_on_a_file_system_without_locks_a_command_goes_on(tmp_path, monkeypatch, number):
    """As on Lustre, which is often mounted without them."""

    def no_locks(descriptor, kind):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    for shared in (False, True):
        with locked(tmp_path / "a.lock", shared=shared, patience_s=0.0):
            pass
    with locked_folder(tmp_path):
        pass
    assert not is_free(tmp_path), "nobody knows"


def test_a_folder_is_free_while_nobody_holds_its_lock(tmp_path):
    with locked_folder(tmp_path):
        assert not is_free(tmp_path)
    assert is_free(tmp_path)


def test_an_error_of_a_lock_that_is_another_one_is_told(tmp_path, monkeypatch):
    def broken(descriptor, kind):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", broken)
    with pytest.raises(OSError, match="Input/output error"), locked(tmp_path / "a.lock"):
        pass


def test_a_limited_wait_ends_where_the_holder_was_stopped_and_not_where_it_is_done(tmp_path, hold):
    file = tmp_path / "a.lock"
    holder = hold(file)
    with pytest.raises(LockHeldError, match=f"held by process {holder.pid} on "), locked(file, patience_s=0.05):
        pass
    holder.stdin.close()
    with locked(file, patience_s=PATIENCE_S):
        pass
