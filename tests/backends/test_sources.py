"""An edit of what decides a backend's programs makes new ones: an artifact of the sources before it is never used."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import rnnbench
from rnnbench.backends import registry
from rnnbench.backends.sources import SUITE_PACKAGES, digest_of, source_files, sources_digest

SUITE = Path(rnnbench.__file__).parent


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    """The packages of the suite that are in programs, copied to be edited."""
    copy = tmp_path_factory.mktemp("sources")
    for package in SUITE_PACKAGES:
        shutil.copytree(SUITE / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.mark.parametrize("backend", [name for name in registry.names() if name not in ("absent", "fake")])
def test_an_edit_of_any_module_of_an_adapter_is_another_digest(backend, copied):
    """Of the adapter's own, of the cells that it authors, and of the sessions that it shares."""
    files = source_files(backend, copied)
    before = digest_of(files)
    assert before == sources_digest(backend), "where the suite is installed is not part of the digest"
    *of_adapter, last = sorted((copied / "backends" / backend).glob("*.py"))
    edited = {last, copied / "rnn" / "cells.py", copied / "backends" / "shared" / "sessions.py"}
    assert {*of_adapter, *edited} <= {path for _, path in files}
    for path in edited:
        content = path.read_bytes()
        path.write_bytes(content + b"\n")
        assert digest_of(files) != before, path
        path.write_bytes(content)


def test_the_sources_of_an_adapter_that_is_no_part_of_the_suite_are_its_package_or_its_module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "one_module.py").write_text("")
    package = tmp_path / "a_package" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    entries = {"one": "one_module", "many": "a_package.inner"}
    monkeypatch.setattr(
        "rnnbench.backends.sources.entry_of",
        lambda name: type("EntryPoint", (), {"module": entries[name]}),
    )
    others = {name: [file for file, path in source_files(name) if tmp_path in path.parents] for name in entries}
    assert others == {"one": ["one_module.py"], "many": ["a_package/__init__.py", "a_package/inner/__init__.py"]}
