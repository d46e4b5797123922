"""What is kept from one run to the next: whole entries, verified where they are used, within a bound."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from waiting import PATIENCE_S, join, wait_until

from rnnbench.cache import ABANDONED_S, ENTRY, MAKING, Cache, CacheFolder
from rnnbench.content_digest import DIGEST

KEY = {"model": "lstm", "seed": 0}
FACTS = {"build": {"build_s": 1.5}}


@pytest.fixture
def cache(tmp_path):
    return Cache(CacheFolder(tmp_path / "cache", 1 << 20))


@pytest.fixture
def built(tmp_path):
    """Files of a build, by their names in a store."""
    (tmp_path / "built" / "a").mkdir(parents=True)
    files = {"a/code.so": tmp_path / "built/a/code.so", "a/weights.bin": tmp_path / "built/a/weights.bin"}
    files["a/code.so"].write_bytes(b"code")
    files["a/weights.bin"].write_bytes(bytes(1000))
    return files


def entry_folder(tmp_path, kind="iree"):
    (found,) = [path.parent for path in (tmp_path / "cache" / kind).glob(f"*/{ENTRY}")]
    return found


def test_an_entry_comes_back_as_it_was(cache, built, tmp_path):
    built["a/code.so"].chmod(0o755)
    os.utime(built["a/code.so"], (1, 1))
    cache.keep("iree", KEY, built, FACTS)
    entry = cache.restore("iree", KEY, tmp_path / "store")
    assert entry is not None
    assert entry.facts == FACTS
    assert entry.made.startswith("20")
    restored = tmp_path / "store/a/code.so"
    assert restored.read_bytes() == b"code"
    assert (restored.stat().st_mode & 0o777, restored.stat().st_mtime) == (0o755, 1)
    assert (tmp_path / "store/a/weights.bin").read_bytes() == bytes(1000)


def test_another_kind_or_key_is_not_found(cache, built, tmp_path):
    cache.keep("iree", KEY, built, FACTS)
    assert cache.restore("tvm", KEY, tmp_path / "store") is None
    assert cache.restore("iree", {**KEY, "seed": 1}, tmp_path / "store") is None
    assert not (tmp_path / "store").exists()


def test_a_run_that_builds_everything_finds_nothing_and_replaces_the_entry(cache, built, tmp_path):
    cache.keep("iree", KEY, built, FACTS)
    rebuilding = Cache(CacheFolder(tmp_path / "cache", 1 << 20, reads=False))
    assert rebuilding.restore("iree", KEY, tmp_path / "store") is None
    rebuilding.keep("iree", KEY, built, {"build": "the second one"})
    assert cache.restore("iree", KEY, tmp_path / "store").facts == {"build": "the second one"}


def _replace_by_pipe(path):
    path.unlink()
    os.mkfifo(path)


def _replace_by_folder(path):
    path.unlink()
    path.mkdir()


def _edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def _without_digest(path):
    content = json.loads(path.read_text())
    del content[DIGEST]
    path.write_text(json.dumps(content))


WEIGHTS = "files/a/weights.bin"
DAMAGES = {
    "a file is changed": lambda entry: (entry / WEIGHTS).write_bytes(bytes(999) + b"1"),
    "a file is cut": lambda entry: (entry / WEIGHTS).write_bytes(bytes(999)),
    "a file is missing": lambda entry: (entry / WEIGHTS).unlink(),
    "a file is a pipe": lambda entry: _replace_by_pipe(entry / WEIGHTS),
    "a file is a folder": lambda entry: _replace_by_folder(entry / WEIGHTS),
    "the description is torn": lambda entry: (entry / ENTRY).write_text("{"),
    "the description is a number": lambda entry: (entry / ENTRY).write_text("1"),
    "the description is a pipe": lambda entry: _replace_by_pipe(entry / ENTRY),
    "a figure is changed": lambda entry: _edit(entry / ENTRY, "1.5", "1.4"),
    "a date is changed": lambda entry: _edit(entry / ENTRY, '"made": "2', '"made": "3'),
    "the digest is missing": lambda entry: _without_digest(entry / ENTRY),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_not_used_and_removed(cache, built, tmp_path, damage):
    cache.keep("iree", KEY, built, FACTS)
    folder = entry_folder(tmp_path)
    damage(folder)
    assert cache.restore("iree", KEY, tmp_path / "store") is None
    assert not (tmp_path / "store/a/weights.bin").exists()
    assert not folder.exists()
    cache.keep("iree", KEY, built, FACTS)
    assert cache.restore("iree", KEY, tmp_path / "store") is not None


def test_an_entry_in_the_place_of_another_one_is_not_used(cache, built, tmp_path):
    """As a copy of a folder is, or the copy of one entry's description beside the files of another one."""
    other = {**KEY, "seed": 1}
    cache.keep("iree", other, built, {"build": "the other one"})
    folder = entry_folder(tmp_path)
    cache.keep("iree", KEY, built, FACTS)
    (own,) = [path for path in folder.parent.iterdir() if path != folder]
    shutil.rmtree(own)
    shutil.copytree(folder, own)
    assert cache.restore("iree", KEY, tmp_path / "store") is None
    assert not own.exists()
    assert cache.restore("iree", other, tmp_path / "store") is not None


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo, lambda path: path.symlink_to("/")])
def test_what_lies_in_the_place_of_an_entry_gives_way_to_it(cache, built, tmp_path, make):
    cache.keep("iree", KEY, built, FACTS)
    folder = entry_folder(tmp_path)
    shutil.rmtree(folder)
    make(folder)
    assert cache.restore("iree", KEY, tmp_path / "store") is None
    cache.keep("iree", KEY, built, FACTS)
    assert cache.restore("iree", KEY, tmp_path / "store") is not None


@pytest.mark.parametrize("name", [".lock", ".bytes"])
def test_a_pipe_or_a_link_in_the_place_of_a_file_of_the_caches_hangs_nobody_and_changes_nothing(
    cache, built, tmp_path, name
):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    cache.keep("iree", KEY, built, FACTS)
    place = tmp_path / "cache" / name
    for make in (os.mkfifo, lambda path: path.symlink_to(precious)):
        place.unlink()
        make(place)
        cache.keep("iree", {"seed": 2}, built, FACTS)
        cache.restore("iree", KEY, tmp_path / "store")
        assert precious.read_text() == "precious"


def test_a_sum_of_bytes_that_cannot_be_is_counted_anew(built, tmp_path):
    cache = Cache(CacheFolder(tmp_path / "cache", 1500))
    cache.keep("iree", KEY, built, FACTS)
    (tmp_path / "cache/.bytes").write_text("-1000000")
    cache.keep("iree", {"seed": 1}, built, FACTS)
    assert [use.entries for use in cache.uses()] == [1]


@pytest.mark.parametrize("at", ["rnnbench.cache.write_text", "pathlib.Path.rename"])
def test_a_kill_while_an_entry_comes_leaves_no_sum_that_is_too_small(built, tmp_path, monkeypatch, at):
    """The cache would exceed its bound by each such entry."""
    cache = Cache(CacheFolder(tmp_path / "cache", 10_000))
    cache.keep("iree", KEY, built, FACTS)

    def killed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(at, killed)
    with pytest.raises(KeyboardInterrupt):
        cache.keep("iree", {"seed": 1}, built, FACTS)
    assert int((tmp_path / "cache/.bytes").read_text()) >= sum(use.nbytes for use in cache.uses())


def test_what_cannot_be_read_counts_and_goes_first(built, tmp_path):
    """As the entries of a release with another format."""
    cache = Cache(CacheFolder(tmp_path / "cache", 1500))
    cache.keep("iree", KEY, built, FACTS)
    old = entry_folder(tmp_path)
    (old / ENTRY).write_text("{}")
    assert cache.uses()[0].nbytes == 1006
    (tmp_path / "cache/.bytes").unlink()
    cache.keep("iree", {"seed": 1}, built, FACTS)
    assert not old.exists()
    assert cache.restore("iree", {"seed": 1}, tmp_path / "store") is not None


def test_what_is_no_utf8_is_kept(cache, built, tmp_path):
    """As in a variable of the environment that a key has."""
    key = {"variables": {"CFLAGS": os.fsdecode(b"-O2 -DX=\xff")}}
    cache.keep("iree", key, built, FACTS)
    assert cache.restore("iree", key, tmp_path / "store").of == key


def test_a_file_that_is_there_stays_and_another_one_under_its_name_keeps_the_entry_out(cache, built, tmp_path):
    cache.keep("iree", KEY, built, FACTS)
    store = tmp_path / "store/a"
    store.mkdir(parents=True)
    (store / "code.so").write_bytes(b"code")
    assert cache.restore("iree", KEY, tmp_path / "store") is not None
    (store / "code.so").write_bytes(b"other code")
    assert cache.restore("iree", KEY, tmp_path / "store") is None
    assert (store / "code.so").read_bytes() == b"other code"
    assert entry_folder(tmp_path).exists()


def test_what_was_used_longest_ago_goes_first(built, tmp_path):
    cache = Cache(CacheFolder(tmp_path / "cache", 3500))
    for seed in range(3):
        cache.keep("iree", {"seed": seed}, built, FACTS)
        for entry in (tmp_path / "cache/iree").glob(f"*/{ENTRY}"):
            os.utime(entry, (entry.stat().st_mtime - 10,) * 2)
    assert cache.restore("iree", {"seed": 0}, tmp_path / "store") is not None
    cache.keep("iree", {"seed": 3}, built, FACTS)
    found = [seed for seed in range(4) if cache.restore("iree", {"seed": seed}, tmp_path / "store")]
    assert found == [0, 2, 3], "1 was used longest ago"
    assert sum(use.nbytes for use in cache.uses()) <= 3500


def test_what_is_larger_than_the_bound_is_not_kept(built, tmp_path):
    cache = Cache(CacheFolder(tmp_path / "cache", 1000))
    cache.keep("iree", KEY, built, FACTS)
    assert cache.uses() == []


def test_what_there_is_is_listed_by_kind(cache, built):
    kinds = ["tvm", "iree", "torch", "jax", "references", "litert"]
    for kind in kinds:
        cache.keep(kind, KEY, built, FACTS)
    assert [use.kind for use in cache.uses()] == sorted(kinds)


def test_uses_are_told_by_kind_and_clear_removes_every_entry(cache, built, tmp_path):
    before = time.time()
    cache.keep("iree", KEY, built, FACTS)
    cache.keep("iree", {"seed": 1}, built, FACTS)
    cache.keep("tvm", KEY, built, FACTS)
    iree, tvm = cache.uses()
    assert (iree.kind, iree.entries, iree.nbytes) == ("iree", 2, 2008)
    assert (tvm.kind, tvm.entries) == ("tvm", 1)
    assert before - 1 <= iree.oldest <= iree.newest <= time.time() + 1
    assert cache.clear() == 3
    assert cache.uses() == []
    assert cache.restore("iree", KEY, tmp_path / "store") is None


def test_folders_of_others_stay_however_full_the_cache_is(built, tmp_path):
    """`RNNBENCH_CACHE` may name a folder that has other things in it, such as a home."""
    letters = tmp_path / "cache/documents/letters"
    letters.mkdir(parents=True)
    (letters / "one.txt").write_text("dear")
    cache = Cache(CacheFolder(tmp_path / "cache", 1500))
    cache.keep("iree", KEY, built, FACTS)
    cache.keep("iree", {"seed": 1}, built, FACTS)
    assert [use.kind for use in cache.uses()] == ["iree"]
    assert cache.clear() == 1
    assert (letters / "one.txt").read_text() == "dear"
    assert not (tmp_path / "cache/iree").exists()


def test_a_link_in_the_place_of_an_entry_is_not_followed_and_stays(cache, built, tmp_path):
    """`rnnbench cache` would count all files of the disk that it leads to, and `--clear` ended with a traceback."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "one.txt").write_text("dear")
    cache.keep("iree", KEY, built, FACTS)
    for name in ("0" * 32, ".making-x"):
        (tmp_path / "cache/iree" / name).symlink_to(other)
    assert [use.entries for use in cache.uses()] == [1]
    assert cache.clear() == 1
    assert (other / "one.txt").read_text() == "dear"


def test_a_folder_that_cannot_be_written_keeps_nothing_and_fails_nobody(built, tmp_path):
    (tmp_path / "cache").write_text("a file")
    cache = Cache(CacheFolder(tmp_path / "cache", 1 << 20))
    cache.keep("iree", KEY, built, FACTS)
    assert cache.restore("iree", KEY, tmp_path / "store") is None


@pytest.mark.parametrize("has_locks", [True, False])
def test_what_a_killed_writer_left_is_no_entry_and_is_removed(built, tmp_path, monkeypatch, has_locks):
    """The writer is killed while it copies: the pipe that it copies from has no end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = (
        "from pathlib import Path\nfrom rnnbench.cache import *\n"
        f"folder = CacheFolder(Path({str(tmp_path / 'cache')!r}), 1 << 20)\n"
        f"Cache(folder).keep('iree', {KEY!r}, {{'a': Path({str(pipe)!r})}}, {{}})\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", code])
    opened: list[int] = []

    def is_read() -> bool:
        with suppress(OSError):  # Nobody reads yet.
            opened.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        return bool(opened)

    wait_until(is_read, "the writer does not read")
    cache = Cache(CacheFolder(tmp_path / "cache", 1 << 20))
    (left,) = (tmp_path / "cache/iree").glob(f"{MAKING}*")
    cache.remove_abandoned()
    assert left.exists(), "its writer lives"
    writer.send_signal(signal.SIGKILL)
    writer.wait(PATIENCE_S)
    os.close(*opened)
    assert cache.uses() == []
    assert cache.restore("iree", KEY, tmp_path / "store") is None
    if not has_locks:
        monkeypatch.setattr(fcntl, "flock", _no_locks)
        cache.remove_abandoned()
        assert left.exists(), "its writer may live"
        os.utime(left, (time.time() - 2 * ABANDONED_S,) * 2)
    cache.remove_abandoned()
    assert not left.exists()
    cache.keep("iree", KEY, built, FACTS)
    assert cache.restore("iree", KEY, tmp_path / "store") is not None


def _no_locks(descriptor: int, kind: int) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def _use(folder: Path, number: int) -> None:
    """Keep and restore the same few entries, again and again, in a cache that has room for two."""
    cache = Cache(CacheFolder(folder / "cache", 2500))
    source = folder / f"source-{number}"
    source.write_bytes(bytes(1000))
    for turn in range(30):
        store = folder / f"store-{number}-{turn}"
        if cache.restore("iree", {"seed": turn % 3}, store) is None:
            cache.keep("iree", {"seed": turn % 3}, {"file": source}, {})
        else:
            assert (store / "file").read_bytes() == bytes(1000)


def test_many_processes_use_one_cache(tmp_path):
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_use, args=(tmp_path, number), daemon=True) for number in range(4)]
    for process in processes:
        process.start()
    join(*processes)
    assert [process.exitcode for process in processes] == [0] * 4
    assert sum(use.nbytes for use in Cache(CacheFolder(tmp_path / "cache", 2500)).uses()) <= 2500
