"""A trial of a real backend comes through a whole run: built in a fork, checked, sampled beside its least program.

tests/benchmarks/test_sampled.py has all backends: a run imports a framework three times.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from harness_trials import assert_all_figures, make_trial, run_trials
from quick_tests import for_proof

from rnnbench.backends import registry
from rnnbench.cases.trial import Measure, Target


@pytest.mark.parametrize("name", ["numpy:eager", *for_proof("onnxruntime:onnx")])
def test_a_run_has_all_of_its_figures(name: str, tmp_path: Path) -> None:
    target = Target(*name.split(":"))
    if lack := registry.find(target.backend).probe().lack(target.route):
        pytest.skip(f"{name} {lack.reason}; {lack.install}")
    trial = make_trial(name, state="stateful", measure=Measure(budget=0.1, processes=1))
    _, records = run_trials([trial], tmp_path)
    assert_all_figures(records[trial.id])
