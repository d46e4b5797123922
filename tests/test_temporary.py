"""A process has a folder of its own for temporary files, and the folder goes with it."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from rnnbench.locks import is_free
from rnnbench.temporary import (
    HELD,
    MADE,
    YOUNG_S,
    HeldFolder,
    TemporaryFolder,
    keep_folder,
    lasting_folder,
    users_folder,
)


@pytest.fixture(autouse=True)
def users(tmp_path, monkeypatch):
    """The user's folder for temporary files is this one."""
    monkeypatch.delenv("RNNBENCH_USERS_TMPDIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def printed(script: str, variables: dict[str, str]) -> str:
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    return done.stdout.strip()


@pytest.mark.parametrize("umask", [0o022, 0o777])
def test_it_lies_in_the_users_who_alone_may_read_it(users, umask):
    """Also where the user's umask takes all rights away: nobody could remove it."""
    before = os.umask(umask)
    try:
        folder = TemporaryFolder()
    finally:
        os.umask(before)
    assert folder.path.parent == users
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_a_process_that_has_its_variables_uses_it_and_knows_the_users(users):
    folder = TemporaryFolder()
    script = (
        "import tempfile; from rnnbench.temporary import users_folder; print(tempfile.gettempdir(), users_folder())"
    )
    assert printed(script, {**folder.variables, "PYTHONPATH": ":".join(sys.path)}) == f"{folder.path} {users}"


def test_one_that_a_process_with_a_folder_makes_goes_with_that_folder(users, monkeypatch):
    """Whoever kills that process may kill what it has started before that has removed its own folder."""
    outer = TemporaryFolder()
    outer.use()
    assert tempfile.gettempdir() == str(outer.path)
    assert users_folder() == users
    assert TemporaryFolder().path.parent == outer.path


def test_it_is_removed_with_all_that_is_in_it():
    folder = TemporaryFolder()
    inner = TemporaryFolder(folder.path)
    (inner.path / "left").write_text("left behind")
    folder.remove()
    assert not folder.path.exists()
    folder.remove()


def test_where_none_can_be_made_the_users_is_used(users, monkeypatch):
    folder = TemporaryFolder(users / "missing")
    assert folder.path is None
    assert folder.variables == {}
    folder.remove()
    assert Path(tempfile.gettempdir()) == users


def test_one_whose_rights_cannot_be_set_is_not_left(users, monkeypatch):
    """As on a disk of Windows that was mounted for another user."""

    def refused(path, mode):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path))

    monkeypatch.setattr(Path, "chmod", refused)
    assert TemporaryFolder().path is None
    assert not list(users.iterdir())


def test_the_folder_of_a_process_that_its_child_removed_is_made_again(monkeypatch):
    folder = TemporaryFolder()
    monkeypatch.setattr(tempfile, "tempdir", str(folder.path))
    folder.remove()
    keep_folder()
    assert Path(tempfile.mkdtemp()).parent == folder.path


@pytest.fixture
def held():
    folder = HeldFolder()
    yield folder
    folder.release()


def make(folder, when=""):
    with folder.removed_on_failure():
        assert folder.path.is_dir()
        if when:
            raise KeyboardInterrupt


def grow_old(folder: Path) -> Path:
    long_ago = time.time() - 2 * YOUNG_S
    os.utime(folder, (long_ago, long_ago))
    return folder


def test_that_of_a_suite_is_made_again_and_held_where_a_system_removed_it(held):
    make(held)
    held.remove()
    held.keep()
    assert stat.S_IMODE(held.path.stat().st_mode) == 0o700
    assert not is_free(held.path)


@pytest.mark.parametrize("when", ["while it is made", "before its process begins"])
def test_an_interrupt_before_its_process_begins_leaves_none(users, monkeypatch, held, when):
    """The signal's handler runs right after the system call that made the folder."""
    mkdir = Path.mkdir

    def interrupted(path, *given, **named):
        mkdir(path, *given, **named)
        if when == "while it is made":
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(held, when)
    assert [*users.iterdir()] == []
    assert held.descriptors == ()


def test_those_of_suites_whose_processes_were_all_killed_go_with_the_next_and_no_others(users, monkeypatch, held):
    """As at the end of a container, or of the machine."""
    living, young, dead = HeldFolder(), HeldFolder(), HeldFolder()
    for folder in (living, young, dead):
        make(folder)
    (dead.path / "left").write_text("left behind")
    for folder in (young, dead):
        folder.release()
    others = [users / f"{HELD}linked", users / "other"]
    others[1].mkdir()
    others[0].symlink_to(others[1])
    for folder in (living.path, dead.path, others[1]):
        grow_old(folder)
    make(held)
    assert {*users.iterdir()} == {living.path, young.path, held.path, *others}
    monkeypatch.setattr(os, "getuid", lambda: users.stat().st_uid + 1)
    grow_old(young.path)
    make(HeldFolder())
    assert young.path.exists(), "another user has made it"
    living.release()


def test_it_is_held_as_long_as_a_process_that_was_given_its_descriptors_lives(held):
    make(held)
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=held.descriptors) as process:
        held.release()
        assert not is_free(held.path)
        process.communicate(timeout=PATIENCE_S)
    assert is_free(held.path)


def test_what_lasts_goes_with_an_environment_that_the_suite_has_made(users, tmp_path, monkeypatch):
    """Inductor has 440 MB of headers for each interpreter. There may be an environment for each release."""
    monkeypatch.setattr(sys, "prefix", str(made := tmp_path / "made"))
    assert lasting_folder() == users
    made.mkdir()
    (made / MADE).touch()
    assert lasting_folder() == made
