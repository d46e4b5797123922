"""A side is the environment that the user named, and runs the same suite. Every mistake in it has a message."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import version
from shlex import quote

import pytest
from forked_workers import fork_workers
from harness_trials import make_trial

from rnnbench.pipeline import SideError, environments
from rnnbench.pipeline.environment_worker import Describe, describe, source_digest
from rnnbench.pipeline.environments import check_side, differences, open_side

TRIALS = [make_trial(), make_trial(time="fused")]


@pytest.fixture
def forked(monkeypatch):
    """The running environment is described in a fork of this process: another environment's Python is started below."""
    fork_workers(monkeypatch)


def environment(folder, script):
    """A folder that looks like a virtual environment, whose Python is a script."""
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return str(folder)


@pytest.mark.proof
def test_no_text_is_the_running_environment(forked, tmp_path):
    side = open_side(None, TRIALS, tmp_path)
    assert side.interpreter == sys.executable
    honest, fused = side.examined()
    assert honest.failure is None
    assert honest.support.interpreter == sys.executable
    assert honest.support.environment == {"RNNBENCH_FAKE": "honest"}
    assert fused.failure.outcome == "unsupported"
    assert side.facts.packages["numpy"] == version("numpy")


def test_a_folder_is_the_environment_in_it(tmp_path):
    folder = environment(tmp_path / "old", f'exec {quote(sys.executable)} "$@"')
    side = open_side(folder, TRIALS, tmp_path)
    assert side.interpreter == f"{folder}/bin/python"
    assert side.text == folder


@pytest.mark.proof
def test_distributions_in_other_versions_are_listed(tmp_path):
    own = describe(Describe(()))
    other = environments.replace(own, python="3.99.0", packages={**own.packages, "numpy": "0.1"})
    lines = differences(own, other)
    assert f"numpy {version('numpy')} → 0.1" in lines
    assert any(line.endswith("→ 3.99.0") for line in lines)
    assert differences(own, own) == []


@pytest.mark.proof
def test_a_package_of_one_version_with_other_files_is_a_difference():
    own = describe(Describe(()))
    edited = environments.replace(own, files={**own.files, "numpy": "another digest"})
    assert differences(own, edited) == [f"numpy {version('numpy')} (same version, different files)"]
    upgraded = environments.replace(edited, packages={**own.packages, "numpy": "0.1"})
    assert differences(own, upgraded) == [f"numpy {version('numpy')} → 0.1"]


@pytest.mark.proof
def test_a_distribution_in_the_place_of_another_one_is_one_difference():
    own = describe(Describe(()))
    a, b = (
        environments.replace(own, packages={name: version})
        for name, version in (("onnxruntime", "1.30.0"), ("onnxruntime-gpu", "1.31.1"))
    )
    assert differences(a, b) == ["onnxruntime 1.30.0 → 1.31.1 (onnxruntime-gpu)"]


def test_a_package_that_has_lost_its_metadata_is_none(tmp_path, monkeypatch):
    """An interrupted pip leaves such folders."""
    (tmp_path / "gone-1.0.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert describe(Describe(())).packages == {}


@pytest.mark.parametrize("text", [".venv-nowhere", "some/where", "~/nowhere-at-all"])
def test_a_folder_without_a_python_is_refused(tmp_path, text):
    with pytest.raises(SideError, match=r"no virtual environment.*python -m venv"):
        open_side(text, TRIALS, tmp_path)


@pytest.mark.parametrize("text", ["venv-odl", "onnxruntime", "  ", ""])
def test_a_name_that_is_no_folder_and_has_no_version_is_never_installed(tmp_path, text, monkeypatch):
    monkeypatch.setattr(environments, "make_environment", pytest.fail)
    with pytest.raises(SideError, match="is no folder here, and names no version; give a virtual environment's folder"):
        open_side(text, TRIALS, tmp_path)


@pytest.mark.parametrize("text", ["onnxruntime==", "onnxruntime==1.30.0 numpy=2", "==1.30.0", "onnxruntime>=1,<", "a@"])
def test_a_requirement_without_its_version_is_refused_before_anything_is_made(tmp_path, text, monkeypatch):
    monkeypatch.setattr(environments, "make_environment", pytest.fail)
    with pytest.raises(SideError, match="is no requirement: "):
        open_side(text, TRIALS, tmp_path)


def test_the_index_is_asked_for_the_versions_of_an_environment_that_is_not_there(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        environments, "require_release", lambda requirement, text: asked.append((requirement.name, text))
    )
    check_side("numpy==1 scipy~=1.9 packaging", TRIALS, tmp_path)
    check_side("--pre numpy==1", TRIALS, tmp_path)  # pip's options may name another index.
    monkeypatch.setattr(environments, "is_made", lambda *_: True)
    check_side("numpy==99", TRIALS, tmp_path)
    assert asked == [(name, "numpy==1 scipy~=1.9 packaging") for name in ("numpy", "scipy")]


def test_an_environment_whose_python_is_damaged_is_told(tmp_path):
    folder = environment(tmp_path / "old", "")
    (tmp_path / "old" / "bin" / "python").write_bytes(b"\x7fELF")
    with pytest.raises(SideError, match=r"old/bin/python\) does not run: Exec format error; make it again$"):
        open_side(folder, TRIALS, tmp_path)


def test_an_environment_without_the_suite_is_refused_with_what_to_install(tmp_path):
    folder = environment(tmp_path / "bare", f'exec {quote(sys.executable)} -I -S "$@"')
    with pytest.raises(SideError, match=r"rnnbench.*pip install"):
        open_side(folder, TRIALS, tmp_path)


def test_an_environment_without_the_backend_is_refused_with_what_to_install(forked, tmp_path):
    with pytest.raises(SideError, match=r"the running environment: absent:honest: .*pip install 'rnnbench\[absent\]'"):
        open_side(None, [make_trial("absent:honest")], tmp_path)


def test_an_environment_with_another_source_of_the_suite_is_refused(forked, tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "source_digest", cache(lambda: "another"))
    with pytest.raises(SideError, match="another source of rnnbench"):
        open_side(None, TRIALS, tmp_path)


@pytest.mark.proof
def test_a_suite_that_was_edited_while_the_command_ran_is_told_as_that(forked, tmp_path, monkeypatch):
    read = cache(iter(["before the edit", "after it"]).__next__)
    read()
    monkeypatch.setattr(environments, "source_digest", read)
    with pytest.raises(SideError, match="the source of rnnbench was edited while this command ran"):
        open_side(None, TRIALS, tmp_path)


def test_the_suite_s_digest_is_of_its_own_files():
    assert source_digest() == describe(Describe(())).source
    assert len(source_digest()) == 64
