"""The commands of an alert select the trial that it is about: its case's file, and the settings of the run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rnnbench.history import Detection
from rnnbench.reports.commands import Commands

TRIAL = "a/torch:eager/fused-stitched/gru-h96-b1-c1-float32-{}-t1-3f9a01c2"


def found(device: str, **changes: Any) -> Detection:
    content: dict[str, Any] = {
        "machine": "m",
        "backend": "torch",
        "what": "bound",
        "evidence": "compared",
        "night": "2026-01-07",
        "run": "r",
        "versions": ("torch 2.12.0", "torch 2.13.0"),
        "members": (TRIAL.format(device),),
    }
    return Detection(**{**content, **changes})


def lines(found: Detection, *commands: str) -> list[str]:
    runs: Any = [SimpleNamespace(command=command) for command in commands]
    return Commands(runs).block(found).split("\n")


def test_settings_of_the_newest_run_with_the_case_are_given_again() -> None:
    """Without them no trial has the id: those of the case file are for the processor."""
    compared, searched, *_ = lines(
        found("cuda"),
        "rnnbench night my/a.yaml --set target.device=vulkan",
        "rnnbench night my/a.yaml --backend=torch --set target.device=cuda '--set=model.hidden=[96, 8]'",
        "rnnbench run cases/other.yaml --set target.device=cpu",
    )[1:]
    selected = (
        "my/a.yaml --set target.device=cuda '--set=model.hidden=[96, 8]' --backend torch:eager "
        f"--only {TRIAL.format('cuda')}"
    )
    assert compared == f"rnnbench ab {selected} --a torch==2.12.0 --b torch==2.13.0"
    assert searched == f"rnnbench bisect {selected} --good 2.12.0 --bad 2.13.0"


def test_a_check_is_made_again_on_the_device_of_its_trial() -> None:
    on_gpu = lines(found("cuda", what="outcome", evidence="checked"))[1]
    on_processor = lines(found("cpu", what="outcome", evidence="checked"))[1]
    assert "rnnbench check cases/conformance --set target.device=cuda --backend torch:eager --only" in on_gpu
    assert "rnnbench check cases/conformance --backend torch:eager --only" in on_processor
