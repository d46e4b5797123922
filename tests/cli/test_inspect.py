"""`rnnbench inspect`: what is in a model file; a wrong file is one sentence."""

from __future__ import annotations

import json
import os

import onnx_files as files
import pytest
import yaml


def section_in(printed):
    return yaml.safe_load(printed[printed.index("model:") :])["model"]


def test_it_prints_arrays_states_a_legend_and_the_section_of_a_case(rnnbench, folder):
    files.saved(files.recurrent("LSTM"), folder / "network.onnx")
    printed = rnnbench("inspect", "network.onnx").stdout
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
    assert [array["name"] for array in printed["description"]["arrays"]] == ["x", "h0", "y", "hn"]


def test_what_only_the_user_knows_is_asked(rnnbench, folder):
    proto = files.recurrent("GRU")
    proto.graph.input.extend(files.arrays(("sr", files.INT64, ())))
    files.saved(proto, folder / "network.onnx")
    printed = rnnbench("inspect", "network.onnx").stdout
    assert "sr: it is one int64" in printed
    assert section_in(printed)["constants"] == {"sr": None}


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
    "missing": (lambda path: None, "No such file"),
    "empty": (lambda path: path.touch(), "it is empty"),
    "cut": (lambda path: path.write_bytes(files.recurrent().SerializeToString()[:200]), "cut short"),
    "random": (lambda path: path.write_bytes(b"\x07\xff" * 100), "no ONNX file"),
    "folder": (lambda path: path.mkdir(), "it is a folder"),
    "huge": (sparse, "files up to 1 GiB are read"),
    "outside": (in_etc, "only files in the model's own folder are read"),
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
    ("name", "says"), [("a.pt", "pickle"), ("a.h5", "Python code"), ("a.txt", ".onnx files are read")]
)
def test_other_kinds_of_files_are_not_opened(rnnbench, folder, name, says):
    assert says in rnnbench("inspect", name, status=2).stderr
