"""Environments are made from requirements in two layers, used again, and made again where they are damaged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from real_releases import wheel
from waiting import PATIENCE_S

from rnnbench.pipeline import SideError
from rnnbench.pipeline import made_environments as made
from rnnbench.pipeline.made_environments import is_made, make_environment
from rnnbench.results import StoreError
from rnnbench.temporary import MADE


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Releases 1.0 and 2.0 of a fake package, and a fake suite."""
    folder = tmp_path_factory.mktemp("index")
    for name, number in (("fakepackage", "1.0"), ("fakepackage", "2.0"), ("fakesuite", "1.0"), ("fakebeside", "1.0")):
        wheel(folder, name, number, {f"{name}.py": f"VERSION = '{number}'\n"})
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("environments")


@pytest.fixture
def offline(monkeypatch, index):
    """pip finds the fake packages only, and the fake suite stands for this one, which needs a fake package."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setattr(made, "this_suite", lambda: ["fakesuite==1.0"])
    monkeypatch.setattr(made, "own_versions", list)
    monkeypatch.setattr(made, "requirements_beside", lambda backends, named: ["fakebeside", "fakepackage==2.0"])


@pytest.fixture
def pip_says(monkeypatch):
    """Environments are made as ever, but for pip, which installs nothing and prints a text."""
    run = made.run_installer

    def says(text: str) -> None:
        monkeypatch.setattr(
            made, "run_installer", lambda command, *rest: run(command, *rest) if "venv" in command else text
        )

    return says


def seen(python: str, module: str) -> str:
    code = f"import {module}; print({module}.VERSION)"
    return subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    ).stdout.strip()


@pytest.mark.proof
def test_releases_share_a_lower_layer_and_are_used_again_until_damaged(cache, offline, monkeypatch, capsys):
    assert not is_made("fakepackage==1.0", ["fake"], cache)
    first = make_environment("fakepackage==1.0", ["fake"], cache)
    earlier = {*cache.glob("*/bin/python")}
    second = make_environment("fakepackage==2.0", ["fake"], cache)
    assert first.python != second.python
    assert len({*cache.glob("*/bin/python")} - earlier) == 1, "the lower layer is that of the first"
    assert seen(first.python, "fakepackage") == "1.0", "the upper layer's release wins over the lower layer's"
    assert seen(first.python, "fakesuite") == "1.0"
    assert seen(second.python, "fakepackage") == "2.0"

    ran = []
    run = made.run_installer
    monkeypatch.setattr(made, "run_installer", lambda command, *rest: ran.append(command) or run(command, *rest))
    assert is_made("fakepackage==1.0", ["fake"], cache)
    assert make_environment("fakepackage==1.0", ["fake"], cache) == first
    assert ran == []
    told = [line.partition(" into ")[0] for line in capsys.readouterr().err.splitlines()]
    assert told == [f"installing {what}" for what in ("this suite", "fakepackage==1.0", "fakepackage==2.0")]
    (info,) = Path(first.python).parents[1].rglob("fakepackage-1.0.dist-info")
    shutil.rmtree(info)
    assert make_environment("fakepackage==1.0", ["fake"], cache) == first
    assert len(ran) == 2, "the environment and its packages, and not the lower layer"
    assert info.exists()


CHANGES = {
    "clone": lambda patch: patch.setattr(made, "this_suite", lambda: ["--editable", "/another/clone"]),
    "entry points": lambda patch: patch.setattr(made, "own_metadata", lambda: ["1.0", "rnnbench.backends: new = a:B"]),
    "user": lambda patch: patch.setattr(os, "geteuid", lambda: 12345),
    "Python": lambda patch: patch.setattr(sys, "base_prefix", "/another/python"),
}


@pytest.mark.proof
def test_clones_users_and_interpreters_share_no_environment(tmp_path, offline, pip_says, monkeypatch):
    """A user may not read the Python of another one, and an editable installation keeps the entry points of its day."""
    pip_says("")
    monkeypatch.setattr(made, "this_suite", lambda: ["--editable", "/a/clone"])
    pythons = [make_environment("fakepackage==1.0", ["fake"], tmp_path).python]
    for change in CHANGES.values():
        with monkeypatch.context() as patch:
            change(patch)
            pythons.append(make_environment("fakepackage==1.0", ["fake"], tmp_path).python)
    assert len(set(pythons)) == 1 + len(CHANGES)
    assert make_environment("fakepackage==1.0", ["fake"], tmp_path).python == pythons[0]


def test_an_environment_is_the_same_from_every_working_folder(tmp_path, offline, pip_says, monkeypatch):
    """The upper layer names the lower one."""
    pip_says("")
    monkeypatch.chdir(tmp_path)
    relative = make_environment("fakepackage==1.0", ["fake"], Path("environments"))
    assert relative == make_environment("fakepackage==1.0", ["fake"], tmp_path / "environments")


def test_a_lower_layer_s_editable_packages_are_found_above_it(cache, offline, tmp_path):
    """Of a source that pip would write into the lower layer. It is written here, into that of an environment above."""
    (tmp_path / "fakesource.py").write_text("VERSION = 'source'\n")
    environment = make_environment("fakepackage==2.0", ["fake"], cache)
    (lower,) = {path.parents[3] for path in cache.glob("*/lib/python*/site-packages/fakesuite-1.0.dist-info")}
    (made.site_packages(lower) / "fake-editable.pth").write_text(f"{tmp_path}\n")
    assert seen(environment.python, "fakesource") == "source"


@pytest.mark.proof
def test_requirements_that_cannot_be_met_have_pip_s_own_message(cache, offline):
    with pytest.raises(SideError, match=r"'fakepackage==3.0': .*No matching distribution found for fakepackage==3.0"):
        make_environment("fakepackage==3.0", ["fake"], cache)


def test_of_the_versions_that_pip_lists_only_the_newest_are_told(monkeypatch):
    listed = ", ".join(f"1.{minor}" for minor in range(40))
    error = f"ERROR: Could not find a version that satisfies the requirement x==9 (from versions: {listed})"
    failed = subprocess.CompletedProcess([], 1, stdout="", stderr=error)
    monkeypatch.setattr(made, "run_helper", lambda command, limit, stop: failed)
    with pytest.raises(SideError, match=r"the newest of 40 versions: 1\.32, 1\.33, .*, 1\.39\)$"):
        made.run_installer([], "x==9")


def test_a_withdrawn_release_has_the_reason_of_its_makers(tmp_path, offline, pip_says):
    pip_says(
        "WARNING: The candidate selected for download or install is a yanked version: 'fakepackage' candidate\n"
        "Reason for being yanked: wrong numbers\n"
    )
    assert make_environment("fakepackage==1.0", ["fake"], tmp_path).yanked == "wrong numbers"
    assert make_environment("fakepackage==1.0", ["fake"], tmp_path).yanked == "wrong numbers"


def test_a_pipe_in_the_place_of_what_an_environment_has_is_not_waited_for(tmp_path, offline, pip_says):
    pip_says("")
    made_before = make_environment("fakepackage==1.0", ["fake"], tmp_path)
    ready = Path(made_before.python).parents[1] / MADE
    ready.unlink()
    os.mkfifo(ready)
    assert make_environment("fakepackage==1.0", ["fake"], tmp_path) == made_before
    assert ready.is_file(), "the environment was made again"


@pytest.mark.parametrize("may_write", [True, False])
def test_a_place_in_which_none_can_be_made_is_told_with_the_option_that_names_another(tmp_path, monkeypatch, may_write):
    cache = tmp_path / "environments"
    if may_write:
        cache.write_text("a file")
    else:  # Root may write everywhere.
        monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StoreError, match=f"cannot write to {cache}: .* another place with --environments"):
        make_environment("fake==1", [], cache)


def test_a_user_without_a_home_makes_no_folder_of_that_name(tmp_path, monkeypatch):
    """Python leaves `~` as it is for a user that the machine does not know, as in a container."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=r"this user has no home folder; .* with --environments"):
        make_environment("fakepackage==1.0", [], Path("~/.cache/rnnbench/environments"))
    assert list(tmp_path.iterdir()) == []
