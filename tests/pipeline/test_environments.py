"""A side is the environment that the user named, and runs the same suite. Every mistake in it has a message."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from shlex import quote
from types import SimpleNamespace

import pytest
from harness_trials import make_trial

from rnnbench import __version__
from rnnbench.pipeline import environments
from rnnbench.pipeline.environment_worker import Describe, describe, source_digest
from rnnbench.pipeline.environments import SideError, differences, make_environment, open_side, own_versions, this_suite

TRIALS = [make_trial(), make_trial(time="fused")]


def environment(folder, script):
    """A folder that looks like a virtual environment, whose Python is a script."""
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return str(folder)


def test_no_text_is_the_running_environment(tmp_path):
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


def test_distributions_in_other_versions_are_listed(tmp_path):
    own = describe(Describe(()))
    other = environments.replace(own, python="3.99.0", packages={**own.packages, "numpy": "0.1"})
    lines = differences(own, other)
    assert f"numpy {version('numpy')} → 0.1" in lines
    assert any(line.endswith("→ 3.99.0") for line in lines)
    assert differences(own, own) == []


@pytest.mark.parametrize("text", [".venv-nowhere", "some/where", "~/nowhere-at-all"])
def test_a_folder_without_a_python_is_refused(tmp_path, text):
    with pytest.raises(SideError, match=r"no virtual environment.*python -m venv"):
        open_side(text, TRIALS, tmp_path)


def test_an_environment_without_the_suite_is_refused_with_what_to_install(tmp_path):
    folder = environment(tmp_path / "bare", f'exec {quote(sys.executable)} -I -S "$@"')
    with pytest.raises(SideError, match=r"rnnbench.*pip install"):
        open_side(folder, TRIALS, tmp_path)


def test_an_environment_without_the_backend_is_refused_with_what_to_install(tmp_path):
    with pytest.raises(SideError, match=r"the running environment: absent:honest: .*pip install 'rnnbench\[absent\]'"):
        open_side(None, [make_trial("absent:honest")], tmp_path)


def test_an_environment_with_another_source_of_the_suite_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(environments, "source_digest", lambda: "another")
    with pytest.raises(SideError, match="another source of rnnbench"):
        open_side(None, TRIALS, tmp_path)


def test_requirements_that_cannot_be_met_have_pip_s_own_message(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(environments, "this_suite", lambda extras: [])
    run = environments._run

    def run_but_for_venv(command, requirements):
        """This environment's pip says the same, and need not be installed first."""
        if command[1:3] == ["-m", "venv"]:
            environment(Path(command[3]), f'exec {quote(sys.executable)} "$@"')
        else:
            run(command, requirements)

    monkeypatch.setattr(environments, "_run", run_but_for_venv)
    with pytest.raises(SideError, match=r"'no-such-thing==1': .*No matching distribution found for no-such-thing==1"):
        make_environment("no-such-thing==1", ["fake"], tmp_path)
    assert not list(tmp_path.glob("*/ready"))


def test_an_environment_that_is_ready_is_used_again(tmp_path, monkeypatch):
    ran = []

    def run(command, requirements):
        ran.append(command)
        if command[1:3] == ["-m", "venv"]:
            os.makedirs(command[3])

    monkeypatch.setattr(environments, "_run", run)
    first = make_environment("onnxruntime==1.30.0", ["onnxruntime"], tmp_path)
    assert len(ran) == 2
    assert ran[1][-1] == "onnxruntime==1.30.0"
    assert "[onnxruntime]" in " ".join(ran[1])
    assert make_environment("onnxruntime==1.30.0", ["onnxruntime"], tmp_path) == first
    assert len(ran) == 2
    assert make_environment("onnxruntime==1.29.0", ["onnxruntime"], tmp_path) != first


def test_the_suite_s_own_packages_are_pinned_unless_named():
    pins = own_versions("onnxruntime==1.30.0")
    assert f"numpy=={version('numpy')}" in pins
    assert not any(pin.startswith("onnx") for pin in pins)
    assert not any(pin.startswith("numpy") for pin in own_versions("onnxruntime==1.20.0 NumPy<2"))


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, [f"rnnbench[x]=={__version__}"]),
        ({"url": "file:///some/where", "dir_info": {"editable": True}}, ["--editable", "/some/where[x]"]),
        ({"url": "file:///some/where", "dir_info": {}}, ["rnnbench[x] @ file:///some/where"]),
        (
            {"url": "https://host/r.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            ["rnnbench[x] @ git+https://host/r.git@abc"],
        ),
    ],
)
def test_the_suite_is_installed_from_where_it_came_from(monkeypatch, origin, expected):
    text = None if origin is None else json.dumps(origin)
    monkeypatch.setattr(environments, "distribution", lambda name: SimpleNamespace(read_text=lambda file: text))
    assert this_suite(["x"]) == expected


def test_the_suite_s_digest_is_of_its_own_files():
    assert source_digest() == describe(Describe(())).source
    assert len(source_digest()) == 64
