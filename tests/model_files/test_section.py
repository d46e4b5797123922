"""The section of a case: YAML that reads back, and answers that are checked."""

from __future__ import annotations

import onnx_files as files
import pytest
import yaml
from onnx import helper
from ruamel.yaml import YAML

from rnnbench.model_files import (
    FileSection,
    ModelFileError,
    answered,
    describe,
    keys_of,
    open_questions,
    section_of,
    section_yaml,
)


def test_the_section_reads_back():
    section = FileSection("a b.onnx", {"h0": "hn", "on": "off: #"}, {"sr": 16000, "x": None}, {"T": 3}, None, 1)
    text = section_yaml(section)
    assert yaml.safe_load(text) == {
        "model": {key: value for key, value in vars(section).items() if value not in ({}, ())}
    }
    assert [line.partition(":")[0].strip() for line in text.splitlines()] == [
        "model",
        "file",
        "state",
        "constants",
        "sizes",
        "time",
        "batch",
    ]


def test_what_is_empty_is_left_out():
    assert yaml.safe_load(section_yaml(FileSection("a.onnx"))) == {
        "model": {"file": "a.onnx", "time": None, "batch": None}
    }


def test_an_output_is_the_next_value_of_one_input(tmp_path):
    description = describe(files.saved(files.recurrent("LSTM"), tmp_path / "network.onnx"))
    section = answered(section_of(description, "a.onnx"), description, ["state.h0=cn"])
    assert section.state == {"h0": "cn"}


def test_a_key_may_be_written_as_in_a_case(tmp_path):
    description = describe(files.saved(files.recurrent("LSTM"), tmp_path / "network.onnx"))
    section = answered(section_of(description, "a.onnx"), description, ["model.state.h0=cn"])
    assert section.state == {"h0": "cn"}
    assert keys_of(["model.state.h0=cn"]) == {"state.h0"}


def test_an_input_that_becomes_a_constant_is_no_more_asked_for_its_axes(tmp_path):
    proto = files.recurrent("GRU")
    proto.graph.input.insert(0, files.arrays(("lengths", files.INT64, ("B",)))[0])
    description = describe(files.saved(proto, tmp_path / "network.onnx"))
    before = section_of(description, "network.onnx")
    assert [question.key for question in open_questions(before, description, ())] == ["time"]
    after = answered(before, description, ["constants.lengths=4"])
    assert not open_questions(after, description, ())
    assert (after.time, after.batch) == (0, 1)


def test_an_output_may_be_called_as_a_number(tmp_path):
    path = files.saved(files.cell("x", ["yes"], ["012"]), tmp_path / "cell.onnx")
    description = describe(path)
    assert answered(section_of(description, path.name), description, ["state.yes=012"]).state == {"yes": "012"}


def test_ranges_are_answers(tmp_path):
    path = files.saved(files.embedding(), tmp_path / "embedding.onnx")
    description = describe(path)
    section = section_of(description, path.name)
    assert answered(section, description, ["ranges.tokens=[0, 9]"]).ranges == {"tokens": (0, 9)}
    for wrong in ("9", "[0]", "[0, x]", "[0, 0.5]"):
        with pytest.raises(ModelFileError, match="a range is two whole numbers"):
            answered(section, description, [f"ranges.tokens={wrong}"])


def test_a_single_number_with_a_range_is_no_constant(tmp_path):
    path = files.saved(files.reset(()), tmp_path / "reset.onnx")
    description = describe(path)
    section = section_of(description, path.name)
    (question,) = open_questions(section, description, ())
    assert question.text.endswith("If it is new in each call, say which numbers it takes (--set 'ranges.reset=[0,1]').")
    said = answered(section, description, ["ranges.reset=[0, 1]", "outputs=[y]"])
    assert (said.constants, open_questions(said, description, {"ranges.reset"})) == ({}, ())
    assert yaml.safe_load(section_yaml(said))["model"]["outputs"] == ["y"]
    with pytest.raises(ModelFileError, match=r"outputs=y: the outputs that are compared are a list, as in \[y\]"):
        answered(section, description, ["outputs=y"])


@pytest.mark.parametrize(
    "name", ["1e3", "012", "0o17", ".5", "-1", "null", "yes", "~", "2026-11-23", "[x]", "a: b", "é #1"]
)
def test_a_name_that_is_like_a_number_reads_back_by_any_yaml(name):
    text = section_yaml(FileSection("f.onnx", {name: name}))
    assert yaml.safe_load(text)["model"]["state"] == {name: name}
    assert YAML(typ="safe").load(text)["model"]["state"] == {name: name}


@pytest.mark.parametrize(("answer", "state"), [("state.b=q", {"b": "q"}), ("state={}", {})])
def test_who_says_which_inputs_are_states_is_asked_no_more(tmp_path, answer, state):
    nodes = [helper.make_node("Add", ["a", "b"], ["p"]), helper.make_node("Tanh", ["p"], ["q"])]
    ends = files.arrays(("a", (1, 2)), ("b", (1, 2))), files.arrays(("p", (1, 2)), ("q", (1, 2)))
    description = describe(files.saved(files.model(nodes, *ends), tmp_path / "two.onnx"))
    section = section_of(description, "two.onnx")
    assert [question.array for question in open_questions(section, description, ())] == ["a", "b"]
    said = answered(section, description, [answer])
    assert said.state == state
    assert not open_questions(said, description, keys_of([answer]))
    assert yaml.safe_load(section_yaml(said, [answer]))["model"]["state"] == state


def test_a_state_that_becomes_a_constant_is_no_more_a_state(tmp_path):
    description = describe(files.saved(files.recurrent("LSTM"), tmp_path / "network.onnx"))
    section = answered(section_of(description, "a.onnx"), description, ["constants.h0=0"])
    assert (section.state, section.constants) == ({"c0": "cn"}, {"h0": 0})
    again = answered(section, description, ["state.h0=hn"])
    assert (again.state, again.constants) == ({"c0": "cn", "h0": "hn"}, {})


def test_with_a_state_a_fixed_number_of_steps_is_one_step(tmp_path):
    """A stream needs calls of one step, or of any: only so can a case run the file."""
    description = describe(files.saved(files.recurrent("LSTM"), tmp_path / "network.onnx"))
    section = section_of(description, "network.onnx")
    assert (section.time, section.batch) == (0, 1)
    said = answered(section, description, ["sizes.T=6"])
    assert (said.time, said.batch) == (None, 1)
    assert answered(section, description, ["sizes.T=6", "time=0"]).time == 0
    assert answered(section, description, ["sizes.T=1"]).time == 0
    assert answered(section, description, ["sizes.T=6", "constants.h0=0", "constants.c0=0"]).time == 0


def test_a_name_may_have_an_equals_sign(tmp_path):
    path = files.saved(files.cell("x", ["h=0"], ["h=n"]), tmp_path / "cell.onnx")
    description = describe(path)
    section = section_of(description, path.name)
    assert answered(section, description, ["state.h=0=h=n"]).state == {"h=0": "h=n"}
    assert answered(section, description, ["constants.h=0=1"]).constants == {"h=0": 1}
