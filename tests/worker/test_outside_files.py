"""Files outside of a run's folders that a build reads, writes or maps are seen; others are not."""

from __future__ import annotations

import ctypes
import importlib
import mmap
import os
import sys
import tempfile

import pytest

from rnnbench.measure import ImportClock
from rnnbench.worker import outside_files
from rnnbench.worker.outside_files import SMALLEST, OutsideFiles

LARGE = bytes(SMALLEST)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A run's folder and one outside of it. Temporary files are made elsewhere."""
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    monkeypatch.setattr(outside_files, "_SYSTEM_FOLDERS", ("/proc", "/usr", "/lib"))
    for name in ("run", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside" / "kept").write_bytes(LARGE)
    return tmp_path


def seen(places, work):
    """In a child: the hook stays in its process."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        files = OutsideFiles(imports := ImportClock())
        with imports:
            work(places / "outside", places / "run")
        os.write(writing, repr(files.seen([places / "run"])).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        found = eval(pipe.read())
    os.waitpid(child, 0)
    return tuple([os.path.basename(name) for name in names] for names in found)


def read(outside, run):
    (outside / "kept").read_bytes()


def read_from_a_link(outside, run):
    (run / "link").symlink_to(outside / "kept")
    (run / "link").read_bytes()


def read_a_descriptor(outside, run):
    with open(os.open(outside / "kept", os.O_RDONLY), "rb") as file:
        file.read()


def read_bytes_of_a_name(outside, run):
    with open(os.fsencode(outside / "kept"), "rb") as file:
        file.read()


@pytest.mark.parametrize("work", [read, read_from_a_link, read_a_descriptor, read_bytes_of_a_name])
def test_what_is_read_outside_is_seen(places, work):
    assert seen(places, work) == (["kept"], [])


@pytest.mark.parametrize("name", ["kept", "a kept program"])
def test_what_native_code_opens_and_maps_outside_is_seen(places, name):
    (places / "outside" / name).write_bytes(LARGE)
    mapped = []

    def map_it(outside, run):
        descriptor = ctypes.CDLL(None).open(os.fsencode(outside / name), os.O_RDONLY)
        mapped.append(mmap.mmap(descriptor, 0, prot=mmap.PROT_READ))

    assert seen(places, map_it) == ([name], [])


def test_what_is_written_outside_is_seen_and_is_not_read(places):
    def write(outside, run):
        (outside / "new").write_bytes(LARGE)
        (outside / "new").read_bytes()

    assert seen(places, write) == ([], ["new"])


def test_small_files_removed_ones_those_of_the_run_of_packages_and_of_the_system_are_none(places):
    def use(outside, run):
        (outside / "settings").write_bytes(LARGE[:-1])
        (outside / "removed").write_bytes(LARGE)
        (outside / "removed").unlink()
        (run / "program").write_bytes(LARGE)
        (run / "program").read_bytes()
        with open(sys.executable, "rb") as python, open(pytest.__file__, "rb") as package:
            python.read()
            package.read()

    assert seen(places, use) == ([], [])


def test_the_folder_in_which_a_worker_was_started_is_no_place_of_packages(places, monkeypatch):
    monkeypatch.chdir(places / "outside")
    monkeypatch.syspath_prepend(str(places / "outside"))
    assert seen(places, read) == (["kept"], [])
    monkeypatch.chdir("/")
    assert seen(places, read) == ([], [])


def test_what_an_import_reads_is_none(places, monkeypatch):
    (places / "fonts.py").write_text(f"LIST = open({str(places / 'outside' / 'kept')!r}, 'rb').read()\n")
    monkeypatch.syspath_prepend(str(places))
    assert seen(places, lambda outside, run: importlib.import_module("fonts")) == ([], [])
