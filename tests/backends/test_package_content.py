"""The digest of an installed package changes with what Python would import of it, and with nothing else."""

from __future__ import annotations

import os
import py_compile
import shutil
import sys
from importlib.metadata import distribution

import pytest
from planted_package import IN_A_PACKAGE, INSTALLED, install, write_later, write_with_the_old_time

from rnnbench.backends import installed_files, package_digest


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


def files():
    return installed_files(distribution("planted"))


@pytest.mark.parametrize("change", IN_A_PACKAGE.values(), ids=IN_A_PACKAGE)
def test_the_files_of_two_environments_are_other_ones_where_one_was_edited_and_equal_otherwise(
    site, tmp_path, monkeypatch, change
):
    before = files()
    monkeypatch.syspath_prepend(install(tmp_path / "other"))
    record = tmp_path / "other/planted-1.0.dist-info/RECORD"
    of_environment = "../../bin/planted,sha256=of_a_path,200\nplanted-1.0.dist-info/INSTALLER,sha256=y,2\n"
    write_with_the_old_time(record, of_environment.encode() + record.read_bytes())
    assert files() == before != ""
    change(tmp_path / "other")
    assert files() != before


def test_the_files_of_an_editable_install_are_those_of_its_source(tmp_path, monkeypatch):
    environments = []
    for name in ("one", "two"):
        info, source = tmp_path / name / "planted-1.0.dist-info", tmp_path / f"source of {name}"
        info.mkdir(parents=True)
        (source / "planted").mkdir(parents=True)
        write_later(source / "planted/__init__.py", b"A = 1\n")
        write_later(info / "METADATA", b"Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
        write_later(info / "direct_url.json", b'{"dir_info": {"editable": true}, "url": "file:///source"}')
        write_later(info / "RECORD", b"__editable__.planted-1.0.pth,sha256=x,9\n")
        environments.append((str(tmp_path / name), str(source)))

    def files_in(number):
        with monkeypatch.context() as patch:
            for path in environments[number]:
                patch.syspath_prepend(path)
            return files()

    before = files_in(0)
    assert files_in(1) == before
    write_later(tmp_path / "source of two/planted/inner.py", b"B = 2\n")
    assert files_in(1) != before == files_in(0)


def test_one_that_is_not_installed_has_none():
    assert digest() == ""
