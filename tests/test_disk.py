"""A file is there as a whole or not at all, and one that can be made again is never fatal."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from rnnbench import disk
from rnnbench.disk import (
    copy_of,
    error_of_disk,
    is_disk_error,
    open_own,
    open_plain,
    read_cached,
    read_or_copy,
    read_plain,
    write_bytes,
    write_given,
    write_text,
    write_whole,
)


def test_a_file_that_fails_half_way_leaves_what_was_there_and_nothing_beside_it(tmp_path):
    file = tmp_path / "folder" / "run.json"
    write_text(file, "old")

    def half(stream):
        stream.write(b"ne")
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        write_whole(file, half)
    assert file.read_text() == "old"
    assert list(file.parent.iterdir()) == [file]


def test_the_next_process_removes_what_a_killed_writer_left_and_nothing_of_a_living_one(tmp_path):
    begin = "import os, sys, pathlib, rnnbench.disk as disk; disk.write_whole(pathlib.Path(sys.argv[1]), "
    killed = f"{begin} lambda file: os.kill(os.getpid(), 9))"
    living = f"{begin} lambda file: (print(1, flush=True), file.write(sys.stdin.buffer.read())))"
    file = tmp_path / "run.json"
    assert subprocess.run([sys.executable, "-c", killed, str(file)], timeout=PATIENCE_S).returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    others = tmp_path / ".notes.part"
    others.touch()
    with subprocess.Popen(
        [sys.executable, "-c", living, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        writer.stdout.readline()
        (held,) = set(tmp_path.iterdir()) - {left, others}
        assert not left.exists(), "the second writer swept"
        write_text(tmp_path / "other.json", "of this process")
        assert held.exists()
        writer.communicate(b"whole", PATIENCE_S)
    assert file.read_bytes() == b"whole"
    assert set(tmp_path.iterdir()) == {file, others, tmp_path / "other.json"}


def test_a_writer_whose_file_was_swept_before_it_was_locked_begins_it_again(tmp_path, monkeypatch):
    """Another process may lock a file that was just made, and remove it."""
    lock, locks = fcntl.flock, []

    def swept_first(file, kind):
        if kind == fcntl.LOCK_EX:
            locks.append(kind)
            if len(locks) == 1:
                Path(file.name).unlink()
        lock(file, kind)

    monkeypatch.setattr(fcntl, "flock", swept_first)
    write_text(tmp_path / "run.json", "whole")
    assert (len(locks), (tmp_path / "run.json").read_text()) == (2, "whole")


def test_a_writer_whose_file_is_whole_and_has_no_name_yet_loses_it_to_no_sweep(tmp_path, monkeypatch):
    """Another process may sweep the folder just before the file gets its name."""
    replace, parts = Path.replace, []

    def swept_first(part, target):
        parts.append(part)
        disk._swept.clear()
        disk._sweep(tmp_path)
        return replace(part, target)

    monkeypatch.setattr(Path, "replace", swept_first)
    write_text(tmp_path / "run.json", "whole")
    assert (len(parts), (tmp_path / "run.json").read_text()) == (1, "whole")


@pytest.mark.parametrize("character", ["x", "é", "\U0001f600"])
def test_a_name_as_long_as_a_file_system_allows_is_written(tmp_path, character):
    file = tmp_path / (character * (255 // len(character.encode())))
    write_text(file, "whole")
    assert file.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [file]
    too_long = file.with_name(f"{file.name}xxxx")
    with pytest.raises(OSError, match="File name too long"):
        write_text(too_long, "whole")
    assert list(tmp_path.iterdir()) == [file]


def test_a_path_without_a_name_is_an_error_of_the_path():
    with pytest.raises(IsADirectoryError) as error:
        write_text(Path("/"), "text")
    assert error.value.filename == "/"


def test_a_full_disk_is_an_error_that_names_the_file_and_leaves_no_part(tmp_path):
    """The kernel's own limit on a file's size stands for the disk's."""
    code = (
        "import resource, sys; from pathlib import Path; from rnnbench.disk import is_disk_error, write_bytes\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); file = Path(sys.argv[1])\n"
        "try: write_bytes(file, bytes(5000))\n"
        "except OSError as error: print(is_disk_error(error), error.filename)"
    )
    file = tmp_path / "big"
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert done.stdout == f"True {file}\n"
    assert not list(tmp_path.iterdir())


def test_an_error_that_comes_only_at_a_close_leaves_what_was_there(tmp_path, monkeypatch):
    """As on NFS, whose server gets the last bytes then."""
    file = tmp_path / "run.json"
    write_text(file, "old")
    close = os.close

    def full(descriptor):
        close(descriptor)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", full)
        with pytest.raises(OSError, match="No space left on device") as error:
            write_text(file, "new")
    assert (error.value.filename, file.read_text()) == (str(file), "old")
    assert list(tmp_path.iterdir()) == [file]


def test_an_error_of_a_broken_disk_names_the_file_that_was_read():
    """The kernel has no page at the address 0 of a process."""
    with pytest.raises(OSError, match="Input/output error") as error:
        read_plain(Path("/proc/self/mem"))
    assert is_disk_error(error.value)
    assert error.value.filename == "/proc/self/mem"


def test_a_kill_while_a_file_is_written_leaves_the_old_one(tmp_path):
    file = tmp_path / "run.json"
    write_text(file, json.dumps({"old": True}))
    code = (
        "import os, signal, sys; from pathlib import Path; from rnnbench.disk import write_whole\n"
        "def half(stream): stream.write(b'{'); stream.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_whole(Path(sys.argv[1]), half)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], check=False, timeout=PATIENCE_S)
    assert done.returncode == -signal.SIGKILL
    assert json.loads(file.read_text()) == {"old": True}


@pytest.mark.parametrize("content", [b"", b'{"a": ', b"\xff\xfe", b"[" * 100_000, None])
def test_a_damaged_or_absent_file_that_can_be_made_again_is_none(tmp_path, content):
    file = tmp_path / "facts.json"
    if content is not None:
        write_bytes(file, content)
    assert read_cached(file, lambda path: json.loads(path.read_text())) is None


def test_a_broken_disk_is_not_taken_for_a_damaged_file(tmp_path):
    def broken(path):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with pytest.raises(OSError, match="Input/output"):
        read_cached(tmp_path, broken)


def test_a_disk_with_room_has_no_error_and_no_file_is_left(tmp_path):
    assert error_of_disk(tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_a_disk_without_room_is_found_by_writing_there(tmp_path):
    """A process that may write no large file finds every disk full. /proc is no place to write: no disk at all."""
    script = (
        "import resource, sys; from pathlib import Path; from rnnbench.disk import ROOM, error_of_disk\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM - 1, ROOM - 1))\n"
        "print(error_of_disk(Path(sys.argv[1])).strerror, error_of_disk(Path('/proc')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert done.stdout == "File too large None\n"


def test_only_errors_of_the_disk_are_of_the_disk():
    assert is_disk_error(OSError(errno.ENOSPC, ""))
    assert not is_disk_error(PermissionError(errno.EACCES, ""))
    assert not is_disk_error(ValueError())


def no_plain_file(kind, path):
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a device without an end":
        path.symlink_to("/dev/zero")
    elif kind == "a folder":
        path.mkdir()
    else:
        path.symlink_to(path)
    return path


@pytest.mark.parametrize("kind", ["a pipe", "a device without an end", "a folder", "a link to itself"])
def test_what_is_no_plain_file_is_refused_and_not_waited_for(kind, tmp_path):
    path = no_plain_file(kind, tmp_path / "records.jsonl")
    with pytest.raises(OSError, match=path.name):
        read_plain(path)
    with pytest.raises(OSError, match=path.name):
        open_own(path, os.O_RDWR)


def test_a_link_is_read_and_never_written_in_place(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("of somebody")
    link.symlink_to(file)
    assert read_plain(link) == b"of somebody"
    with pytest.raises(OSError, match="link is a link to another file"):
        open_own(link, os.O_RDWR)
    os.close(open_own(file, os.O_RDWR))
    assert file.read_text() == "of somebody"


def test_an_error_of_looking_at_an_open_file_names_it():
    with pytest.raises(OSError, match=r"Bad file descriptor: 'run\.json'"):
        disk.require_plain(-1, Path("run.json"))


def test_a_damaged_file_of_terabytes_takes_no_memory(tmp_path):
    file = tmp_path / "run.json"
    disk.write_with_copy(file, b"{}")
    os.truncate(file, 1 << 40)
    with pytest.raises(OSError, match="1,099,511,627,776 bytes, where no file has more"):
        disk.read_plain(file)
    content, why = disk.read_or_copy(file)
    assert content == b"{}"
    assert "cannot be read: 1,099,511,627,776 bytes" in why


def test_a_file_that_the_user_named_stays_a_link_or_a_pipe(tmp_path):
    (tmp_path / "mine").mkdir()
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to("mine/file")
    for text in (b"one", b"two"):
        write_given(link, lambda file, text=text: file.write(text))
        assert link.is_symlink()
        assert (tmp_path / "mine" / "file").read_bytes() == text
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        write_given(tmp_path / "loop", lambda file: file.write(b"text"))
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_given(pipe, lambda file: file.write(b"text"))
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    with pytest.raises(IsADirectoryError):
        write_given(tmp_path / "mine", lambda file: file.write(b"text"))


@pytest.mark.parametrize(
    ("content", "copy", "found"),
    [
        ("[1]", "[2]", ("[1]", "")),
        ("[1", "[2]", ("[2]", "torn or edited")),
        (None, "[2]", ("[2]", "cannot be read: No such file or directory")),
        ("[1", "[2", ("[1", "")),
        ("[1", None, ("[1", "")),
    ],
)
def test_a_copy_is_read_where_its_file_is_absent_or_torn_and_it_is_better(tmp_path, content, copy, found):
    path = tmp_path / "run.json"
    for file, text in ((path, content), (copy_of(path), copy)):
        if text is not None:
            file.write_text(text)
    content, why = found
    sentence = f"{path}: {why}; run.json.copy was read instead" if why else ""
    assert read_or_copy(path) == (content.encode(), sentence)


def test_without_a_file_and_a_copy_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_or_copy(tmp_path / "run.json")


@pytest.fixture
def folder_that_fails_to_close(tmp_path, monkeypatch):
    """A folder that has one within it. As on a server that has gone, its first close fails."""
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    close, failed = os.close, []

    def failing(descriptor):
        close(descriptor)
        if not failed:
            failed.append(descriptor)
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(os, "close", failing)
    return folder


def test_a_folder_that_fails_to_close_stays_without_an_error(folder_that_fails_to_close):
    """`shutil.rmtree` raises one, though it is told not to. It is no reason to end a command that is over."""
    disk.remove_folder(folder_that_fails_to_close)


def test_the_error_of_a_removal_names_a_file(folder_that_fails_to_close):
    with pytest.raises(OSError, match="file") as raised:
        disk.remove_anything(folder_that_fails_to_close)
    assert str(raised.value.filename).startswith(str(folder_that_fails_to_close))


@pytest.mark.parametrize("call", [BufferedReader.close, BufferedReader.read, BufferedReader.readline])
def test_the_error_of_a_file_that_was_opened_names_it(tmp_path, call):
    """As of a server that has gone. Else the sentence about it would name no file, or there would be a traceback."""
    path = tmp_path / "file"
    path.write_bytes(b"content")
    file = open_plain(path)
    os.close(file.fileno())
    with pytest.raises(OSError, match="Bad file descriptor") as raised:
        call(file)
    assert raised.value.filename == str(path)
    with suppress(OSError):
        file.close()
