"""The digest of an installed package changes with what Python would import of it, and with nothing else."""

from __future__ import annotations

import os
import py_compile
import shutil
import sys

import pytest
from planted_package import IN_A_PACKAGE, INSTALLED, install, write_later

from rnnbench.backends import package_digest


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(install(tmp_path / "site"))
    return tmp_path / "site"


def digest():
    package_digest.cache_clear()
    return package_digest("planted")


@pytest.mark.parametrize("change", IN_A_PACKAGE.values(), ids=IN_A_PACKAGE)
def test_a_file_that_was_changed_after_the_installation_is_another_package(site, change):
    before = digest()
    change(site)
    changed = digest()
    assert before.startswith("1.0 ")
    assert changed not in ("", before)
    assert digest() == changed


def test_two_changes_of_one_file_are_two_packages(site):
    write_later(site / "planted/code.so", b"edoc")
    once = digest()
    os.utime(site / "planted/code.so", (INSTALLED + 20, INSTALLED + 20))
    assert digest() != once


@pytest.mark.parametrize("module", ["planted", "shared/planted"])
def test_another_copy_that_is_imported_first_is_another_package(site, tmp_path, monkeypatch, module):
    """As in an interpreter whose PYTHONPATH has the folder in which a compiler is developed."""
    before = digest()
    copied = shutil.copytree(site / module, tmp_path / "developed" / module)
    monkeypatch.syspath_prepend(tmp_path / "developed")
    elsewhere = digest()
    assert elsewhere != before
    write_later(copied / "__init__.py", b"A = 3  # changed\n")
    assert digest() not in (before, elsewhere)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(tmp_path / "developed")])
    assert digest() == before


def test_what_python_compiles_and_another_installation_are_the_same_package(site, tmp_path, monkeypatch):
    before = digest()
    py_compile.compile(str(site / "planted/__init__.py"))
    assert digest() == before
    shutil.rmtree(site)
    monkeypatch.syspath_prepend(install(tmp_path / "other"))
    assert digest() == before


def test_a_package_without_a_list_of_its_files_counts_by_its_version(site):
    (site / "planted-1.0.dist-info/RECORD").unlink()
    before = digest()
    write_later(site / "planted/code.so", b"edoc")
    assert digest() == before
    assert before.startswith("1.0 ")


def test_one_that_is_not_installed_has_none():
    assert digest() == ""
