"""The toy of the backends' README is a working one: every conformance check passes it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness_trials import make_trial

import rnnbench.backends
from rnnbench.backends import BuildError, check_program, request_of
from rnnbench.backends.shared import support_of
from rnnbench.cases.trial import Precision, State, Strategy
from rnnbench.conformance import ReferenceTrajectories, run_checks
from rnnbench.rnn import draw_weights

README = Path(rnnbench.backends.__file__).with_name("README.md")


@pytest.fixture(scope="module")
def toy() -> Any:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    return names["ToyBackend"]()


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("state", "activations"),
    [
        *(("none", {}), ("stitched", {}), ("stateful", {})),
        ("stateful", {"activation": "relu", "recurrent_activation": "hard_sigmoid"}),
    ],
)
def test_the_toy_conforms(toy: Any, tmp_path: Path, state: State, activations: dict[str, str]) -> None:
    trial = replace(make_trial(), strategy=Strategy("looped", state, 4))
    trial = replace(trial, model=trial.model.model_copy(update=activations))
    reference = ReferenceTrajectories(trial, tmp_path)
    request = request_of(trial, reference.weights)
    assert support_of(toy, request).level != "unsupported"
    program = toy.build(request, tmp_path)
    check_program(toy.name, program, request, tmp_path)
    assert any(program.artifact.operations.values())
    assert [name for name, figure in run_checks(program, reference) if figure.verdict == "fail"] == []


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8_dynamic", "int4"])
def test_the_toy_refuses_numbers_that_it_does_not_compute_with(toy: Any, tmp_path: Path, dtype: str) -> None:
    trial = make_trial()
    request = request_of(trial, draw_weights(trial.model, 0))
    with pytest.raises(BuildError, match="computes in float32"):
        toy.build(replace(request, precision=Precision.of(dtype)), tmp_path)
