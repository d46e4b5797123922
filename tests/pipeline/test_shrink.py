"""A failure is made as small as it goes, and the command printed beside it checks exactly that trial."""

from __future__ import annotations

import shlex
from dataclasses import replace
from itertools import pairwise

import pytest
from harness_trials import check_trial, context_in, make_trial

from rnnbench.cases import Strategy, Target, load_case
from rnnbench.cases.schema import LEAVES
from rnnbench.pipeline import reproduce_command
from rnnbench.pipeline.shrink import first_failed_check, shrink
from rnnbench.rnn.spec import Model

pytestmark = pytest.mark.usefixtures("few_checks")

CASE = """\
schema: 1
name: wide
model: {cell: lstm, input: [3, 5], hidden: 8, layers: 2, bias: false}
workload: {steps: 64, chunk: [4, 16], batch: [1, 4]}
strategy: {time: [looped, fused], state: [stitched, stateful]}
matrix: {exclude: [{time: fused, chunk: 4}]}
"""


@pytest.mark.proof
def test_a_failure_is_halved_for_as_long_as_it_fails(tmp_path, monkeypatch):
    monkeypatch.setattr("rnnbench.pipeline.shrink.BUDGET_S", float("inf"))
    trial = replace(
        make_trial("fake:wrong-third-step", chunk=4),
        model=Model(cell="lstm", input=2, hidden=2, layers=2),
        batch=2,
        steps=8,
    )
    context = context_in(tmp_path)
    failed = check_trial(trial, context)
    assert first_failed_check(failed) == "values"
    smallest = shrink(failed, context.folders)
    assert first_failed_check(smallest) == "values"
    model = smallest.trial.model
    assert (model.hidden, model.input, model.layers, smallest.trial.batch) == (1, 1, 1, 1)
    assert 2 < smallest.trial.steps <= 4, "the third step is the first that is wrong"


@pytest.mark.parametrize(
    "model",
    [
        Model(cell="lstm", input=2, hidden=3, projection=2, cell_clip=0.5),
        Model(cell="gru", input=1, hidden=1, reset_after=False),
        Model(cell="rnn", input=1, hidden=2, activation="relu", layers=1, bias=True),
        Model(cell="counter", input=2, hidden=2),
    ],
    ids=lambda model: model.cell,
)
def test_the_command_reproduces_exactly_the_trial(model, tmp_path):
    path = tmp_path / "wide.yaml"
    path.write_text(CASE)
    trial = replace(make_trial(), case="wide", model=model, strategy=Strategy("looped", "stitched", 2), steps=5, seed=7)
    words = shlex.split(reproduce_command(trial, path))
    assert words[:4] == ["rnnbench", "check", str(path), "--backend=fake:honest"]
    case = load_case(path, [word for flag, word in pairwise(words) if flag == "--set"])
    (again,) = case.trials([Target("fake", "honest")])
    assert again.id == trial.id


def test_the_command_carries_every_key_that_makes_a_trial(tmp_path):
    """What it left out would be the case's own, and the trial another one."""
    words = shlex.split(reproduce_command(make_trial(), tmp_path / "wide.yaml"))
    carried = {word.partition("=")[0] for flag, word in pairwise(words) if flag == "--set"}
    others = {f"{section}.{leaf}" for leaf, section in LEAVES.items() if section != "model"}
    assert carried == others | {f"model.{key}" for key in ("network", *Model.model_fields)} | {"matrix"}


def test_the_command_sets_what_the_case_has_and_the_trial_has_not(tmp_path):
    path = tmp_path / "wide.yaml"
    path.write_text(CASE.replace("model: {", "model: {clip: [null, 0.5], "))
    trial = replace(make_trial(), case="wide")
    words = shlex.split(reproduce_command(trial, path))
    case = load_case(path, [word for flag, word in pairwise(words) if flag == "--set"])
    (again,) = case.trials([Target("fake", "honest")])
    assert again.id == trial.id
