"""Environments are made from requirements in two layers, used again, and made again where they are damaged."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import zipfile
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness_trials import make_trial
from packaging.requirements import Requirement
from waiting import PATIENCE_S

from rnnbench import __version__
from rnnbench.cases.trial import Target, Trial
from rnnbench.pipeline import SideError
from rnnbench.pipeline import made_environments as made
from rnnbench.pipeline.made_environments import extras_of, make_environment, own_versions, this_suite
from rnnbench.results import StoreError


def wheel(folder: Path, name: str, number: str) -> None:
    """A wheel of a fake package with one module, which says its version."""
    info = f"{name}-{number}.dist-info"
    files = {
        f"{name}.py": f"VERSION = '{number}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [
        f"{file},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip('=')},"
        for file, text in files.items()
    ]
    with zipfile.ZipFile(folder / f"{name}-{number}-py3-none-any.whl", "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        archive.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,"]) + "\n")


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Releases 1.0 and 2.0 of a fake package, and a fake suite."""
    folder = tmp_path_factory.mktemp("index")
    for name, number in (("fakepackage", "1.0"), ("fakepackage", "2.0"), ("fakesuite", "1.0"), ("fakebeside", "1.0")):
        wheel(folder, name, number)
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
    monkeypatch.setattr(made, "_needs", lambda backends, named: ["fakebeside", "fakepackage==2.0"])


def seen(python: str, module: str) -> str:
    code = f"import {module}; print({module}.VERSION)"
    return subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    ).stdout.strip()


def test_releases_share_a_lower_layer_and_are_used_again_until_damaged(cache, offline, monkeypatch):
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
    assert make_environment("fakepackage==1.0", ["fake"], cache) == first
    assert ran == []
    (info,) = Path(first.python).parents[1].rglob("fakepackage-1.0.dist-info")
    shutil.rmtree(info)
    assert make_environment("fakepackage==1.0", ["fake"], cache) == first
    assert len(ran) == 2, "the environment and its packages, and not the lower layer"
    assert info.exists()


def test_a_lower_layer_s_editable_packages_are_found_above_it(cache, offline, tmp_path, monkeypatch):
    (tmp_path / "fakesource.py").write_text("VERSION = 'source'\n")
    make_lower = made._make

    def with_editable(wanted, pins, lower, *rest):
        done = make_lower(wanted, pins, lower, *rest)
        if lower is None:
            (made.site_packages(Path(done.python).parents[1]) / "fake-editable.pth").write_text(f"{tmp_path}\n")
        return done

    monkeypatch.setattr(made, "_make", with_editable)
    assert seen(make_environment("fakepackage==2.0 fakebeside", ["fake"], cache).python, "fakesource") == "source"


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


def test_a_withdrawn_release_has_the_reason_of_its_makers(cache, offline, monkeypatch):
    warning = (
        "WARNING: The candidate selected for download or install is a yanked version: 'fakepackage' candidate\n"
        "Reason for being yanked: wrong numbers\n"
    )
    run = made.run_installer
    monkeypatch.setattr(made, "run_installer", lambda *given: run(*given) + warning)
    assert make_environment("fakepackage==1.0 fakebeside", ["fake"], cache).yanked == "wrong numbers"
    assert make_environment("fakepackage==1.0 fakebeside", ["fake"], cache).yanked == "wrong numbers"


def test_what_the_requirements_name_is_not_asked_for_by_the_suite_s_extras():
    needed = made._needs(["onnxruntime"], {"onnxruntime"})
    assert any(text.startswith(("onnx==", "onnx>=")) for text in needed)
    assert not any(text.startswith(("onnxruntime", "numpy")) for text in needed)
    assert any(text.startswith("onnxruntime") for text in made._needs(["onnxruntime"], set()))


def test_the_suite_s_own_packages_are_pinned():
    assert f"numpy=={version('numpy')}" in own_versions()
    assert not any(pin.startswith("onnx") for pin in own_versions())


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, [f"rnnbench=={__version__}"]),
        ({"url": "file:///some/where", "dir_info": {"editable": True}}, ["--editable", "/some/where"]),
        ({"url": "file:///some/where", "dir_info": {}}, ["rnnbench @ file:///some/where"]),
        (
            {"url": "https://host/r.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            ["rnnbench @ git+https://host/r.git@abc"],
        ),
    ],
)
def test_the_suite_is_installed_from_where_it_came_from(monkeypatch, origin, expected):
    text = None if origin is None else json.dumps(origin)
    monkeypatch.setattr(made, "distribution", lambda name: SimpleNamespace(read_text=lambda file: text))
    assert this_suite() == expected


def test_a_device_has_an_extra_and_so_may_a_backend_on_it() -> None:
    trial = replace(make_trial(), target=Target("tvm", "relax"))
    on_both = [trial, replace(trial, device="cuda")]
    assert {"apache-tvm", "cuda-bindings", "nvidia-ml-py", "nvidia-cuda-nvrtc"} <= needs(on_both)
    assert "rnnbench" not in needs(on_both)
    assert not {"cuda-bindings", "nvidia-cuda-nvrtc"} & needs([trial])


@pytest.mark.parametrize("devices", [["cuda"], ["cpu", "cuda"]])
def test_a_package_of_another_name_stands_in_place_of_the_processor_s(devices: list[str]) -> None:
    trials = [replace(make_trial(), target=Target("onnxruntime", "onnx"), device=device) for device in devices]
    assert {"onnxruntime-gpu", "onnx", "cuda-bindings"} <= needs(trials)
    assert "onnxruntime" not in needs(trials)
    assert not {name for name in made._needs(extras_of(trials), {"onnxruntime-gpu"}) if name.startswith("onnxruntime")}


def test_what_is_not_named_has_its_extra_and_the_version_that_runs() -> None:
    assert f"jax[cuda13]=={version('jax')}" in made._needs(["jax", "cuda", "jax-cuda"], {"jaxlib"})


def test_what_a_package_needs_within_an_upper_limit_is_left_to_its_versions(monkeypatch) -> None:
    """Another version may ask for another one: here one that asks for less than 2 would keep a later one away."""
    asked = ["free", "least>=1", "above>1", "but!=1.5", "capped<2", "both>=1,<2", "exact==1", "near~=1.0"]
    monkeypatch.setattr(made, "_requirements_of", lambda name: [Requirement(text) for text in asked])
    kept = {Requirement(text).name for text in made._needs([], {"package"})}
    assert kept == {"free", "least", "above", "but"}


def needs(trials: list[Trial]) -> set[str]:
    return {Requirement(text).name for text in made._needs(extras_of(trials), set())}


@pytest.mark.parametrize(
    ("text", "extras", "made_of"),
    [
        ("jax==0.10.2", ["jax", "cuda", "jax-cuda"], "jax[cuda13]==0.10.2"),
        ("jax==0.10.2", ["cpu", "jax", "jax-cpu"], "jax==0.10.2"),
        ("Jax[extra]==0.10.2", ["jax-cuda"], "Jax[cuda13,extra]==0.10.2"),
        ("tensorflow==2.21.0", ["tensorflow-cuda"], "tensorflow[and-cuda]==2.21.0"),
        ("onnxruntime-gpu==1.31.1", ["onnxruntime-cuda"], "onnxruntime-gpu[cuda,cudnn]==1.31.1"),
        ("not a requirement", ["jax-cuda"], "not a requirement"),
    ],
)
def test_a_version_for_a_device_has_the_packages_own_extra(text: str, extras: list[str], made_of: str) -> None:
    assert made._with_its_extras(text, extras) == made_of


def test_a_pipe_in_the_place_of_what_an_environment_has_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / made.READY)
    assert made._intact(tmp_path) is None


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
