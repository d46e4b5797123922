"""The toy of the backends' README is a working one: every conformance check passes it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from harness_trials import make_trial

import rnnbench.backends
from rnnbench.backends import request_of
from rnnbench.cases.trial import State, Strategy
from rnnbench.conformance import ReferenceTrajectories, run_checks

README = Path(rnnbench.backends.__file__).with_name("README.md")


@pytest.mark.parametrize("state", ["none", "stitched", "stateful"])
def test_the_toy_conforms(tmp_path: Path, state: State) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    found: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), found)
    backend = found["ToyBackend"]()
    trial = replace(make_trial(), strategy=Strategy("looped", state, 4))
    reference = ReferenceTrajectories(trial, tmp_path)
    request = request_of(trial, reference.weights)
    assert backend.support(request).level != "unsupported"
    program = backend.build(request, tmp_path)
    assert [name for name, figure in run_checks(program, reference) if figure.verdict == "fail"] == []
