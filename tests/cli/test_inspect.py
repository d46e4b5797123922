"""`rnnbench inspect`: what is in a model file; a wrong file is one sentence."""

from __future__ import annotations

import json
import os

import onnx_files as files
import pytest
import yaml
from onnx import helper


def section_in(printed):
    return yaml.safe_load(printed[printed.index("model:") :])["model"]


def test_it_prints_arrays_states_a_legend_and_the_section_of_a_case(rnnbench, folder):
    files.saved(files.recurrent("LSTM"), folder / "network.onnx")
    printed = rnnbench("inspect", "network.onnx").stdout
    assert "checked: h0, c0: moves" in printed
    assert "two halves equal the whole" in printed
    assert "LSTM 1" in printed
    assert "hn (traced)" in printed
    assert "traced: followed through the graph" in printed
    section = {"file": "network.onnx", "state": {"h0": "hn", "c0": "cn"}, "time": 0, "batch": 1}
    assert section_in(printed) == section


def test_json_has_the_same(rnnbench, folder):
    files.saved(files.recurrent("GRU"), folder / "network.onnx")
    printed = json.loads(rnnbench("inspect", "network.onnx", "--json").stdout)
    assert printed["model"]["state"] == {"h0": "hn"}
    assert printed["description"]["operators"]["GRU"] == 1
    assert printed["check"] == {
        "moved": {"h0": True},
        "used": {"h0": True},
        "halves": 0.0,
        "large_halves": 0.0,
        "not_compared": "",
        "made_sizes": {},
        "one_row": "",
        "failing_steps": {},
    }
    assert [array["name"] for array in printed["description"]["arrays"]] == ["x", "h0", "y", "hn"]


def test_what_only_the_user_knows_is_asked(rnnbench, folder):
    proto = files.recurrent("GRU")
    proto.graph.input.extend(files.arrays(("sr", files.INT64, ())))
    files.saved(proto, folder / "network.onnx")
    printed = rnnbench("inspect", "network.onnx").stdout
    assert "sr: it is one int64" in printed
    assert "not checked: answer the questions with --set first" in printed
    assert "OUTPUT: the name of its next value" not in printed, "no question is about a state"
    assert section_in(printed)["constants"] == {"sr": None}
    printed = rnnbench("inspect", "network.onnx", "--set", "constants.sr=16000").stdout
    assert "The file does not say" not in printed
    assert "checked: h0: moves" in printed
    assert section_in(printed)["constants"] == {"sr": 16000}


def test_one_number_may_be_a_state_too(rnnbench, folder):
    """As a counter, or the mean of what was heard. Nothing but its user says so."""
    nodes = [helper.make_node("Mul", ["x", "level"], ["y"]), helper.make_node("Cos", ["level"], ["after"])]
    ends = files.arrays(("x", (1, 2)), ("level", ())), files.arrays(("y", (1, 2)), ("after", ()))
    files.saved(files.model(nodes, *ends), folder / "level.onnx")
    printed = " ".join(rnnbench("inspect", "level.onnx").stdout.split())
    assert "Which value has it in every call? Or is it a state, and after its next value (model.state)?" in printed
    assert "checked: level: moves" in rnnbench("inspect", "level.onnx", "--set", "state.level=after").stdout


def test_a_lost_state_is_status_1(rnnbench, folder):
    proto = files.recurrent("GRU")
    proto.graph.node[0].output[1] = "last"
    proto.graph.node.append(helper.make_node("Identity", ["h0"], ["hn"]))
    files.saved(proto, folder / "network.onnx")
    assert "state lost: h0: its next value never changes" in rnnbench("inspect", "network.onnx", status=1).stdout


def test_a_file_that_cannot_be_computed_is_still_described(rnnbench, folder):
    files.saved(files.recurrent("LSTM", activations=["Sine", "Tanh", "Tanh"]), folder / "network.onnx")
    printed = rnnbench("inspect", "network.onnx").stdout
    assert "not checked: network.onnx: LSTM with the activations sine, tanh, tanh" in printed
    assert "No case runs it so: it cannot be checked: LSTM with the activations sine" in printed


def test_a_file_that_is_no_stream_is_told_how_it_could_run(rnnbench, folder):
    files.saved(files.recurrent("GRU", direction="bidirectional"), folder / "both.onnx")
    printed = rnnbench("inspect", "both.onnx", status=1).stdout
    assert "No case runs it so: two halves of a stream differ from the whole" in printed
    assert "--set constants.h0=0" in printed


def test_a_size_that_is_said_is_in_a_case_that_runs(rnnbench, folder):
    files.saved(files.recurrent("GRU"), folder / "network.onnx")
    printed = rnnbench("inspect", "network.onnx", "--set", "sizes.T=6").stdout
    assert "The section of a case that runs it" in printed
    assert "sizes: {T: 6}\n  time: null" in printed


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("constants.sr", "expected KEY=VALUE"),
        ("constants.h1=3", "no input 'h1'; it has x, h0"),
        ("constants.h0=[1]", "a constant is a number"),
        ("state.h0=y2", "no output 'y2'"),
        ("time=-1", "an axis is 0, 1, 2"),
        ("frames=1", "the keys are state.NAME"),
        ("time={", "is no YAML"),
    ],
)
def test_a_wrong_answer_is_one_sentence(rnnbench, folder, answer, says):
    files.saved(files.recurrent("GRU"), folder / "network.onnx")
    errors = rnnbench("inspect", "network.onnx", "--set", answer, status=2).stderr
    assert says in errors
    assert errors.count("\n") == 1


def test_one_key_with_two_answers_is_refused(rnnbench, folder):
    files.saved(files.recurrent("GRU"), folder / "network.onnx")
    errors = rnnbench("inspect", "network.onnx", "--set", "time=0", "--set", "time=null", status=2).stderr
    assert errors == "rnnbench: --set time=null: it is answered twice; give one of the two\n"


def sparse(path):
    path.touch()
    os.truncate(path, 2 << 30)


def in_etc(path):
    proto = files.recurrent("LSTM")
    (weights,) = (tensor for tensor in proto.graph.initializer if tensor.name == "W")
    weights.ClearField("raw_data")
    weights.data_location = weights.EXTERNAL
    weights.external_data.add(key="location", value="/etc/passwd")
    files.saved(proto, path)


WRONG = {
    "missing": (lambda path: None, "does not exist; correct its path"),
    "empty": (lambda path: path.touch(), "it is empty"),
    "cut": (lambda path: path.write_bytes(files.recurrent().SerializeToString()[:200]), "cut short"),
    "random": (lambda path: path.write_bytes(b"\x07\xff" * 100), "no ONNX file"),
    "folder": (lambda path: path.mkdir(), "it is a folder"),
    "huge": (sparse, "files up to 1 GiB are read"),
    "outside": (in_etc, "only files in the model's own folder are read"),
    "pointer": (lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\n"), "`git lfs pull`"),
    "page": (lambda path: path.write_text("\n<!DOCTYPE html>\n<html>"), "it is a page of the web"),
    "fifo": (lambda path: os.mkfifo(path), "no plain file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_one_sentence(rnnbench, folder, name):
    make, says = WRONG[name]
    make(folder / "network.onnx")
    errors = rnnbench("inspect", "network.onnx", status=2).stderr
    assert says in errors
    assert "network.onnx" in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "says"),
    [("a.pt", "pickle"), ("a.txt", ".keras, .h5, .hdf5, .onnx, .pt2, .pb, .mlir, .tflite files are read")],
)
def test_other_kinds_of_files_are_not_opened(rnnbench, folder, name, says):
    (folder / name).touch()
    assert says in rnnbench("inspect", name, status=2).stderr


def test_what_is_no_file_is_said_so(rnnbench, folder):
    (folder / "models").mkdir()
    assert "models: it is a folder, and not that of a SavedModel" in rnnbench("inspect", "models", status=2).stderr
    assert "nothing: does not exist; correct its path" in rnnbench("inspect", "nothing", status=2).stderr
    (folder / "model.onnx").touch()
    for name in ("modl.onnx", "model.onx"):
        assert f"{name}: does not exist; did you mean 'model.onnx'?" in rnnbench("inspect", name, status=2).stderr
