"""An environment that is made has this suite, and what its extras ask for beside the packages that a user names."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness_trials import make_trial
from packaging.requirements import Requirement

from rnnbench import __version__
from rnnbench.cases.trial import Target, Trial
from rnnbench.pipeline import environment_packages
from rnnbench.pipeline.environment_packages import (
    extras_of,
    own_versions,
    requirements_beside,
    this_suite,
    with_extras,
)


def test_what_the_requirements_name_is_not_asked_for_by_the_suite_s_extras():
    needed = requirements_beside(["onnxruntime"], {"onnxruntime"})
    assert any(text.startswith(("onnx==", "onnx>=")) for text in needed)
    assert not any(text.startswith(("onnxruntime", "numpy")) for text in needed)
    assert any(text.startswith("onnxruntime") for text in requirements_beside(["onnxruntime"], set()))


def test_the_suite_s_own_packages_are_pinned():
    assert f"numpy=={version('numpy')}" in own_versions()
    assert not any(pin.startswith("onnx") for pin in own_versions())


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, [f"rnnbench=={__version__}"]),
        ({"url": "file:///some/where", "dir_info": {}}, ["rnnbench @ file:///some/where"]),
        (
            {"url": "https://host/r.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            ["rnnbench @ git+https://host/r.git@abc"],
        ),
    ],
)
def test_the_suite_is_installed_from_where_it_came_from(monkeypatch, origin, expected):
    text = None if origin is None else json.dumps(origin)
    monkeypatch.setattr(environment_packages, "own_clone", lambda: None)
    monkeypatch.setattr(environment_packages, "distribution", lambda name: SimpleNamespace(read_text=lambda file: text))
    assert this_suite() == expected


def test_a_clone_is_installed_itself_also_where_it_runs_with_the_packages_of_another_one(monkeypatch):
    """Of two worktrees with one environment, `direct_url.json` names one."""
    other = json.dumps({"url": "file:///some/where", "dir_info": {"editable": True}})
    monkeypatch.setattr(
        environment_packages, "distribution", lambda name: SimpleNamespace(read_text=lambda file: other)
    )
    assert this_suite() == ["--editable", str(Path(__file__).parents[2])]


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
    assert not {
        name for name in requirements_beside(extras_of(trials), {"onnxruntime-gpu"}) if name.startswith("onnxruntime")
    }


def test_what_is_not_named_has_its_extra_and_the_version_that_runs() -> None:
    assert f"jax[cuda13]=={version('jax')}" in requirements_beside(["jax", "cuda", "jax-cuda"], {"jaxlib"})


def test_what_a_package_needs_within_an_upper_limit_is_left_to_its_versions(monkeypatch) -> None:
    """Another version may ask for another one: here one that asks for less than 2 would keep a later one away."""
    asked = ["free", "least>=1", "above>1", "but!=1.5", "capped<2", "both>=1,<2", "exact==1", "near~=1.0"]
    monkeypatch.setattr(environment_packages, "requirements_of", lambda name: [Requirement(text) for text in asked])
    kept = {Requirement(text).name for text in requirements_beside([], {"package"})}
    assert kept == {"free", "least", "above", "but"}


def needs(trials: list[Trial]) -> set[str]:
    return {Requirement(text).name for text in requirements_beside(extras_of(trials), set())}


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
    assert with_extras(text, extras) == made_of
