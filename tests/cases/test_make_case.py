"""A case in Python is the case of the same file, and its mistakes are told by key."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rnnbench.cases import CaseError, Target, load_case, make_case

SHIPPED = Path(__file__).parents[2] / "cases"
TINY = {
    "name": "tiny",
    "model": {"cell": "lstm", "input": 8, "hidden": (16, 32)},
    "workload": {"steps": 10, "chunk": [1, 4]},
    "strategy": {"time": ["looped", "unrolled"], "state": "stitched"},
}


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("lstm_*.yaml")), ids=lambda path: path.stem)
def test_it_is_the_case_of_the_same_file(path):
    sections = {key: value for key, value in yaml.safe_load(path.read_text()).items() if key != "schema"}
    made, loaded = make_case(**sections), load_case(path)
    targets = [Target("numpy", "eager")]
    assert made.trials(targets) == loaded.trials(targets)
    assert (made.description, made.endurance) == (loaded.description, loaded.endurance)
    assert (made.path, made.expected_failures_file) == (None, None)
    assert (loaded.path, loaded.expected_failures_file) == (str(path), SHIPPED / "expectations.yaml")


def test_a_list_a_tuple_and_a_range_are_axes():
    assert len(make_case(**TINY).points) == 8
    assert len(make_case(**{**TINY, "model": {**TINY["model"], "hidden": range(1, 4)}}).points) == 12


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        (
            "model",
            {"hidden": [16, "32"]},
            "model.hidden[1]: expected a whole number from 1 to 65,536, got the text '32'",
        ),
        ("model", {"hiden": 16}, "model.hiden: unknown key 'hiden' in model; did you mean 'hidden'?"),
        ("workload", {"chunk": 11}, "workload.chunk: a call of 11 steps is longer than the workload of 10; write a"),
        ("limits", {"build": "9min"}, "limits.build: 540 s is more than the 300 s of limits.trial"),
        ("measure", {"budget": 3, "period": "1s"}, "measure.period: 3 processes of at least 4 s take 12 s, more than"),
        ("matrix", {"exclude": [{"hidden": 17}]}, "matrix.exclude[0].hidden: hidden is never 17 in this case, only"),
        ("limit", {}, "limit: unknown key 'limit'; did you mean 'limits'?"),
    ],
)
def test_a_mistake_is_told_by_its_key(section, values, message):
    with pytest.raises(CaseError) as caught:
        make_case(**{**TINY, section: {**TINY.get(section, {}), **values}})
    assert str(caught.value).startswith(message)


def test_a_missing_key_is_told_at_its_section():
    with pytest.raises(CaseError, match=r"^workload: the key 'steps' is missing in workload; add it: a whole number"):
        make_case(**{**TINY, "workload": {}})


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"network": "silero-vad", "input": 100}, "model.input: input should be a multiple of 8, not 100"),
        ({"network": "rnnt-decoder", "input": 20}, "model.input: input should be greater than 28, not 20"),
    ],
)
def test_a_size_that_a_network_cannot_have_is_told_at_its_key(model, message):
    with pytest.raises(CaseError) as caught:
        make_case("sized", model=model, workload={"steps": 4}, strategy={"time": "looped", "state": "stitched"})
    assert str(caught.value) == message
