"""The conformance cases are what their generator writes, and every pair of values that can meet does."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import get_args

import pytest

from rnnbench.cases import Lengths, load_case
from rnnbench.cases.quantity import SECONDS, parse
from rnnbench.rnn import DTYPES, Model, families
from rnnbench.rnn.composed import ComposedNetwork

FOLDER = Path(__file__).parents[2] / "cases" / "conformance"
pytest.importorskip("allpairspy")
SPEC = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
generate = importlib.util.module_from_spec(SPEC)
sys.modules["generate"] = generate  # its dataclasses look for it there
SPEC.loader.exec_module(generate)


@pytest.mark.parametrize("name", generate.CASES)
def test_the_stored_array_is_current(name):
    assert (FOLDER / f"{name}.yaml").read_text() == generate.text(name), "run cases/conformance/generate.py"


@pytest.mark.parametrize("name", generate.CASES)
def test_every_pair_that_can_meet_does_and_every_row_is_a_trial(name):
    case = generate.CASES[name]
    rows = generate.rows_of(case)
    met = {pair for row in rows for pair in generate.pairs(row)}
    lost = [pair for pair in generate.every_pair(case.axes) if pair not in met]
    assert all(generate.completed(dict(pair), case.axes) is None for pair in lost)
    loaded = load_case(FOLDER / f"{name}.yaml")
    assert len(loaded.points) == len(rows)
    assert loaded.endurance == parse(case.endurance, SECONDS)


def test_every_pair_meets_for_each_value_of_time():
    axes = generate.NETWORKS.axes
    for time in generate.TIMES:
        rows = [row for row in generate.rows_of(generate.NETWORKS) if row["time"] == time]
        met = {pair for row in rows for pair in generate.pairs(row)}
        others = {**axes, "time": [time]}
        lost = {pair for pair in generate.every_pair(others) if pair not in met}
        assert all(generate.completed(dict(pair), others) is None for pair in lost)


def test_what_cannot_meet_is_only_what_contradicts_itself():
    axes = generate.NETWORKS.axes
    met = {pair for row in generate.rows_of(generate.NETWORKS) for pair in generate.pairs(row)}
    lost = {tuple(name for name, _ in pair) for pair in generate.every_pair(axes) if pair not in met}
    assert lost == {("time", "chunk"), ("state", "direction")}


def test_every_key_of_a_model_that_changes_its_numbers_varies():
    """What the schema knows and no conformance case has would never be checked."""
    trials = [point for name in generate.CASES for point in load_case(FOLDER / f"{name}.yaml").points]
    for leaf in Model.model_fields:
        assert len({getattr(point.model, leaf) for point in trials}) > 1, leaf
    assert {point.lengths for point in trials} == set(get_args(Lengths))
    assert {point.dtype for point in trials} == set(DTYPES)


def test_every_family_of_composed_networks_has_a_case():
    checked = {point.model.network for point in load_case(FOLDER / "families.yaml").points}
    assert checked == {name for name, family in families().items() if issubclass(family, ComposedNetwork)}
