"""`rnnbench new`: the case that it writes can be run as it stands."""

from __future__ import annotations

import shlex

import numpy as np
import onnx_files as files
import pytest
import stablehlo_files
import yaml
from onnx import helper


@pytest.mark.parametrize(("what", "trials"), [("lstm", 12), ("rnnoise", 8), ("mingru", 12)])
def test_a_case_for_a_cell_or_a_network(rnnbench, folder, what, trials):
    rnnbench("new", what, "-o", "my.yaml")
    listed = rnnbench("list", "my.yaml", "--backend=numpy")
    assert f"{trials} trials" in listed.stderr
    lines = (folder / "my.yaml").read_text().splitlines()
    assert all(" # " in line for line in lines if "#" in line), "YAML takes no comment without a space before it"


def test_the_command_that_is_printed_can_be_given(rnnbench):
    told = rnnbench("new", "lstm", "-o", "my case.yaml").stdout
    words = shlex.split(told.rpartition("Run it: ")[2])
    assert words[:2] == ["rnnbench", "run"]
    rnnbench("list", *words[2:], "--backend=numpy")


@pytest.mark.proof
def test_a_case_for_a_file_runs_to_a_report(rnnbench, folder):
    (folder / "models").mkdir()
    files.saved(files.recurrent("GRU"), folder / "models" / "network.onnx")
    rnnbench("new", "models/network.onnx", "-o", "my.yaml")
    fewer = ("--set", "measure.budget=50ms", "--set", "measure.processes=1", "--filter", "chunk=1")
    rnnbench("run", "my.yaml", "--backend=onnxruntime", "--no-baseline", *fewer)
    (report,) = folder.glob("reports/*/report.md")
    text = report.read_text()
    assert "network.onnx" in text
    assert "2 trials: 2 ok" in text


def test_what_a_file_does_not_say_is_asked(rnnbench, folder):
    files.saved(files.odd(), folder / "odd.onnx")
    told = rnnbench("new", "odd.onnx", "-o", "my.yaml", status=2).stderr
    assert "(--set constants.gain=VALUE)" in told
    assert not (folder / "my.yaml").exists()
    answers = ("--set", "constants.gain=0.5", "--set", "time=null", "--set", "batch=0", "--set", "state.s=next_s")
    assert "note:" not in rnnbench("new", "odd.onnx", "-o", "my.yaml", *answers).stderr
    assert "2 trials" in rnnbench("list", "my.yaml", "--backend=onnxruntime").stderr


@pytest.mark.proof
def test_that_there_is_no_state_is_in_the_case(rnnbench, folder):
    """The case would ask again: by their shapes, a and b may be states."""
    nodes = [helper.make_node("Add", ["a", "b"], ["p"]), helper.make_node("Tanh", ["p"], ["q"])]
    ends = files.arrays(("a", (1, 2)), ("b", (1, 2))), files.arrays(("p", (1, 2)), ("q", (1, 2)))
    files.saved(files.model(nodes, *ends), folder / "two.onnx")
    assert "--set state.a=OUTPUT" in rnnbench("new", "two.onnx", "-o", "my.yaml", status=2).stderr
    rnnbench("new", "two.onnx", "-o", "my.yaml", "--set", "state={}")
    assert "1 trial" in rnnbench("list", "my.yaml", "--backend=onnxruntime").stderr
    case = (folder / "my.yaml").read_text()
    (folder / "my.yaml").write_text(case.replace("  state: {}\n", ""))
    assert "a: is it a state" in rnnbench("list", "my.yaml", "--backend=onnxruntime", status=2).stderr


@pytest.mark.parametrize(
    ("what", "told"),
    [("lsmt", "did you mean 'lstm'"), ("nosuch.onnx", "does not exist"), ("weights.pth", "weights.pth")],
)
def test_a_wrong_name_is_told(rnnbench, folder, what, told):
    assert told in rnnbench("new", what, "-o", "my.yaml", status=2).stderr


def test_it_overwrites_nothing(rnnbench, folder):
    (folder / "my.yaml").write_text("mine")
    assert "is there already" in rnnbench("new", "gru", "-o", "my.yaml", status=2).stderr
    assert (folder / "my.yaml").read_text() == "mine"


def test_it_overwrites_nothing_that_was_written_meanwhile(rnnbench, folder, monkeypatch):
    def slowly(what, name):
        (folder / "my.yaml").write_text("mine")
        return "schema: 1\n"

    monkeypatch.setattr("rnnbench.cases.case_of_network", slowly)
    assert "is there already" in rnnbench("new", "gru", "-o", "my.yaml", status=2).stderr
    assert (folder / "my.yaml").read_text() == "mine"


def test_a_case_of_whole_numbers_says_their_range(rnnbench, folder):
    files.saved(files.embedding(), folder / "tokens.onnx")
    told = rnnbench(
        "new", "tokens.onnx", "-o", "t.yaml", "--set", "batch=0", "--set", "state.h=next_h", status=2
    ).stderr
    assert "ranges: {tokens: [0, 99]} in a case, or --set 'ranges.tokens=[0, 99]' for `new` and `inspect`" in told
    answers = ("--set", "batch=0", "--set", "state.h=next_h", "--set", "ranges.tokens=[0, 9]")
    rnnbench("new", "tokens.onnx", "-o", "t.yaml", *answers)
    assert yaml.safe_load((folder / "t.yaml").read_text())["model"]["ranges"] == {"tokens": [0, 9]}
    assert "2 trials" in rnnbench("list", "t.yaml", "--backend=onnxruntime").stderr


def test_a_file_that_cannot_be_computed_gets_no_case(rnnbench, folder):
    proto = files.cell("x", ["h"], ["next_h"])
    proto.graph.node.append(helper.make_node("RandomNormalLike", ["x"], ["noise"]))
    files.saved(proto, folder / "random.onnx")
    told = rnnbench("new", "random.onnx", "-o", "random.yaml", status=2).stderr
    assert "RandomNormalLike draws random numbers" in told
    assert not (folder / "random.yaml").exists()


def test_sizes_of_outputs_that_only_a_call_shows_are_in_the_case(rnnbench, folder):
    nodes = [
        helper.make_node("NonZero", ["ones"], ["places"]),
        helper.make_node("Cast", ["places"], ["numbers"], to=files.FLOAT),
        helper.make_node("Concat", ["numbers", "x"], ["y"], axis=1),
    ]
    ends = files.arrays(("x", (1, 3))), files.arrays(("y", (1, "found")))
    ones = files.weight("ones", np.ones(3, np.float32))
    files.saved(files.model(nodes, *ends, [ones]), folder / "found.onnx")
    rnnbench("new", "found.onnx", "-o", "found.yaml")
    assert yaml.safe_load((folder / "found.yaml").read_text())["model"]["sizes"] == {"y.1": 6}
    assert "1 trial" in rnnbench("list", "found.yaml", "--backend=onnxruntime").stderr


@pytest.mark.proof
def test_a_file_that_takes_one_row_gets_a_case_of_one(rnnbench, folder):
    files.saved(files.one_row(), folder / "one.onnx")
    answers = ("--set", "batch=0", "--set", "time=null", "--set", "state.h=hn")
    assert "one row: calls of several rows fail" in rnnbench("inspect", "one.onnx", *answers).stdout
    rnnbench("new", "one.onnx", "-o", "one.yaml", *answers)
    case = yaml.safe_load((folder / "one.yaml").read_text())
    assert case["model"]["sizes"] == {"y.1": 1, "x.0": 1, "h.0": 1}
    assert case["workload"]["batch"] == 1
    assert "2 trials" in rnnbench("list", "one.yaml", "--backend=onnxruntime").stderr


def test_a_case_in_a_linked_folder_finds_its_file(rnnbench, folder):
    files.saved(files.cell("x", ["h"], ["next_h"]), folder / "cell.onnx")
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "link").symlink_to("deep/er")
    rnnbench("new", "cell.onnx", "-o", "link/cell.yaml")
    assert "2 trials" in rnnbench("list", "link/cell.yaml", "--backend=onnxruntime").stderr


def test_a_file_that_is_no_stream_gets_no_case(rnnbench, folder):
    files.saved(files.recurrent("GRU", direction="bidirectional"), folder / "both.onnx")
    told = rnnbench("new", "both.onnx", "-o", "both.yaml", status=2).stderr
    assert "two halves of a stream differ from the whole" in told.lower()
    assert "h0 → hn (traced)" in told
    assert not (folder / "both.yaml").exists()
    rnnbench("new", "both.onnx", "-o", "both.yaml", "--set", "constants.h0=0")
    assert "2 trials" in rnnbench("list", "both.yaml", "--backend=onnxruntime").stderr


def test_a_file_that_has_lost_a_state_gets_no_case(rnnbench, folder):
    proto = files.recurrent("GRU")
    proto.graph.node[0].input[5] = ""
    files.saved(proto, folder / "lost.onnx")
    told = rnnbench("new", "lost.onnx", "-o", "lost.yaml", "--set", "state.h0=hn", status=2).stderr
    assert "The state h0 → hn (shape) is lost: no output depends on it" in told
    assert "--set state.h0=OUTPUT" in told
    assert not (folder / "lost.yaml").exists()


def test_what_its_user_should_know_is_told_and_in_the_case(rnnbench, folder):
    path = stablehlo_files.saved("kept", folder)
    path.write_text(path.read_text().replace("@h(dense<0.0>", "@h(dense<0.5>"))
    told = rnnbench("new", path.name, "-o", "kept.yaml").stderr
    assert "note: h begins in the file with values that are not zero" in told
    assert "# h begins in the file with values that are not zero" in (folder / "kept.yaml").read_text()
    assert "2 trials" in rnnbench("list", "kept.yaml", "--backend=iree:stablehlo").stderr


def test_an_answer_that_a_message_shows_can_be_given(rnnbench, folder):
    proto = files.recurrent("GRU")
    proto.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "width"
    files.saved(proto, folder / "wide.onnx")
    told = rnnbench("new", "wide.onnx", "-o", "w.yaml", status=2).stderr
    words = shlex.split(told.partition("--set")[2])
    assert words[0] == "sizes.x.2=16"
    rnnbench("new", "wide.onnx", "-o", "w.yaml", "--set", words[0].replace("16", "3"))
    assert "4 trials" in rnnbench("list", "w.yaml", "--backend=onnxruntime").stderr


def test_a_choice_that_is_the_only_output_beside_states_can_be_left_out(rnnbench, folder):
    proto = files.cell("x", ["h"], ["next_h"])
    del proto.graph.output[0]
    proto.graph.node.append(helper.make_node("ArgMax", ["next_h"], ["choice"], axis=1))
    proto.graph.output.extend(files.arrays(("choice", files.INT64, [1, None])))
    files.saved(proto, folder / "greedy.onnx")
    told = rnnbench("new", "greedy.onnx", "-o", "g.yaml", "--set", "state.h=next_h", status=2).stderr
    assert "or compare the others (--set 'outputs=[next_h]')" in told
    rnnbench("new", "greedy.onnx", "-o", "g.yaml", "--set", "state.h=next_h", "--set", "outputs=[next_h]")
