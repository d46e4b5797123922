"""Whatever is done to the sources, or to a package, after a process read their digests is seen."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from planted_package import IN_A_PACKAGE, install

from rnnbench.backends import unchanged
from rnnbench.backends.unchanged import SeenFiles, seen_first, seen_now


def edit(folder):
    (folder / "room" / "module.py").write_text("x = 2\n")


def edit_and_take_back(folder):
    edit(folder)
    (folder / "room" / "module.py").write_text("x = 1\n")


def edit_with_the_old_time(folder):
    file = folder / "room" / "module.py"
    before = file.stat()
    edit(folder)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(folder):
    """As editors and git do."""
    (folder / "new").write_text("x = 1\n")
    (folder / "new").replace(folder / "room" / "module.py")


CHANGES = [
    edit,
    edit_and_take_back,
    edit_with_the_old_time,
    replace,
    lambda folder: (folder / "room" / "module.py").unlink(),
    lambda folder: (folder / "room" / "another.py").write_text(""),
    lambda folder: (folder / "room").rename(folder / "chamber"),
    lambda folder: (folder / "adapter.py").write_text("y = 2\n"),
]


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """The sources of the suite and an adapter that is one module; each test has a folder of its own."""
    suite = tmp_path / "suite"
    (suite / "room").mkdir(parents=True)
    (suite / "room" / "module.py").write_text("x = 1\n")
    (suite / "adapter.py").write_text("y = 1\n")
    monkeypatch.setattr(unchanged, "source_places", lambda backend: [str(suite / "room"), str(suite / "adapter.py")])
    return suite


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_sources_is_seen(sources, change):
    first = seen_first("numpy", ["numpy"])
    assert seen_now("numpy", ["numpy"]) == first
    change(sources)
    assert seen_now("numpy", ["numpy"]) != first
    assert seen_first("numpy", ["numpy"]) == first, "the digests that this process read are of what was there before"


def test_what_python_writes_itself_is_no_change(sources):
    first = seen_first("numpy", [])
    (sources / "room" / "__pycache__").mkdir()
    (sources / "room" / "__pycache__" / "module.cpython-311.pyc").write_bytes(b"compiled")
    (sources / "room" / "notes.md").write_text("not imported")
    assert seen_now("numpy", []) == first


@pytest.mark.parametrize("later", [("2.0", "b,,\n"), ("1.0", "a,sha256=other,1\n"), ("1.0", None)])
def test_another_installation_of_a_package_is_seen(sources, monkeypatch, later):
    installed = ["1.0", "a,,\n"]
    package = SimpleNamespace(read_text=lambda name: installed[1])
    monkeypatch.setattr(
        unchanged, "distribution", lambda name: SimpleNamespace(version=installed[0], read_text=package.read_text)
    )
    name = f"package-{later}"
    first = seen_first("numpy", [name])
    assert seen_now("numpy", [name]) == first
    installed[:] = later
    assert seen_now("numpy", [name]) != first


def test_a_package_is_read_again_where_its_files_were_written(monkeypatch, tmp_path):
    folder = tmp_path / "thing-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
    (folder / "RECORD").write_text("a,,\n")
    monkeypatch.syspath_prepend(tmp_path)
    read: list[str] = []
    kept = unchanged._read_package
    monkeypatch.setattr(unchanged, "_read_package", lambda *given: read.append(given[0]) or kept(*given))
    first, _, _ = (seen_now("numpy", ["thing"]) for _ in range(3))
    assert read == ["thing"]
    (folder / "RECORD").write_text("b,,\n")
    assert seen_now("numpy", ["thing"]) != first
    assert read == ["thing", "thing"]


@pytest.mark.parametrize("change", CHANGES)
def test_sources_that_change_while_they_are_looked_after_are_named(sources, change):
    seen = SeenFiles(["numpy"], ["numpy"])
    assert seen.changed() == ()
    change(sources)
    assert set(seen.changed()) <= {"room", "adapter"}
    assert seen.changed()
    assert SeenFiles(["numpy"], ["numpy"]).changed() == (), "what was there before is no change"


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(install(tmp_path / "site"))
    return tmp_path / "site"


@pytest.mark.parametrize("change", IN_A_PACKAGE.values(), ids=IN_A_PACKAGE)
def test_a_package_that_changes_meanwhile_is_named_also_where_a_file_is_edited_in_place(site, change):
    seen = SeenFiles([], ["planted", "numpy"])
    assert seen.changed() == ()
    change(site)
    assert seen.changed() == ("planted",)
    assert SeenFiles([], ["planted", "numpy"]).changed() == ()
