"""`model: {file: …}`: a case of a model file, and its mistakes with their places."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx_files as files
import pytest
from onnx import TensorProto

from rnnbench.cases import CaseError, load_case, select
from rnnbench.cases.trial import Target

CASE = """\
schema: 1
name: mine
model: {file: network.onnx}
workload: {steps: 8, chunk: [1, 4], batch: [1, 2]}
strategy: {time: given, state: stitched}
"""


@pytest.fixture
def case(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files.saved(files.recurrent("LSTM"), tmp_path / "network.onnx")

    def write(replaced="", by="", **overrides):
        assert replaced in CASE
        Path("case.yaml").write_text(CASE.replace(replaced, by))
        return load_case("case.yaml", **overrides)

    return write


def refused(case, replaced, by):
    with pytest.raises(CaseError) as caught:
        case(replaced, by)
    return str(caught.value)


def test_it_has_a_trial_for_each_point_by_the_files_own_name(case):
    trials = case().trials([Target("onnxruntime", "onnx")])
    assert Counter(trial.id.split("/")[-1][:10] for trial in trials) == {"network-b1": 2, "network-b2": 2}
    assert {trial.params["model"]["file"] for trial in trials} == {"network.onnx"}
    assert case().file_formats == {"onnx"}
    assert len(select(trials, filters=["network=file,chunk=4"])) == 2


def test_another_file_of_the_same_name_makes_other_trials(case):
    before = {trial.id for trial in case().trials([Target("onnxruntime", "onnx")])}
    files.saved(files.recurrent("LSTM", hidden=5), Path("network.onnx"))
    assert not before & {trial.id for trial in case().trials([Target("onnxruntime", "onnx")])}


def test_the_type_of_its_arrays_is_read_from_the_file(case):
    files.saved(files.typed(files.recurrent("LSTM"), TensorProto.FLOAT16), Path("network.onnx"))
    assert {trial.dtype for trial in case().trials([Target("onnxruntime", "onnx")])} == {"float16"}


@pytest.mark.parametrize(
    ("replaced", "by", "told"),
    [
        ("network.onnx", "netwrk.onnx", "case.yaml:3:15: model.file: does not exist; did you mean 'network.onnx'?"),
        ("file: network.onnx", "network: file", "case.yaml:3:1: the key 'file' is missing in model"),
        ("network.onnx", "network.onnx, tmie: 0", "case.yaml:3:29: unknown key 'tmie' in model; did you mean 'time'?"),
        ("network.onnx", "network.onnx, time: soon", "case.yaml:3:35: model.time: expected a whole number"),
        ("network.onnx", 'network.onnx, sizes: {"": 5}', "expected a text of 1 to 1,000 characters as the key, got ''"),
        ("network.onnx", "network.onnx, ranges: {x: [0]}", "ranges.x: expected a list of a whole number and a whole"),
        (
            "network.onnx",
            "network.onnx, ranges: {x: [0, b]}",
            "model.ranges.x[1]: expected a whole number, got the text",
        ),
        ("network.onnx", "network.onnx, constants: {x: b}", "true or false or a whole number or a finite number"),
        ("network.onnx", "network.onnx, state: {h9: hn}", "case.yaml:3:37: model.state.h9: it has no input h9"),
        ("network.onnx", "network.onnx, state: {h0: hm}", "case.yaml:3:41: model.state.h0: it has no output hm"),
        ("network.onnx", "network.onnx, constants: {sr: 1}", "case.yaml:3:41: model.constants.sr: it has no input sr"),
        ("network.onnx", "network.onnx, outputs: [y, z]", "case.yaml:3:42: model.outputs[1]: it has no output z"),
        ("network.onnx", "network.onnx, sizes: {Q: 2}", "case.yaml:3:37: model.sizes.Q: it leaves no size Q open"),
        ("network.onnx", "network.onnx, ranges: {q: [0, 1]}", "case.yaml:3:38: model.ranges.q: it has no input q that"),
        ("network.onnx", "network.onnx, time: 9", "case.yaml:3:35: model.time: x has 3 axes, and the case says"),
        ("network.onnx", "network.onnx, inputs: a.npz", "case.yaml:3:37: model.inputs: a.npz: does not exist"),
        (
            "network.onnx",
            "network.onnx, state: {h0: hn}, constants: {h0: 0}",
            "model.constants.h0: h0 is a state and a constant as the case has it; write it as one of them",
        ),
        ("time: given", "time: looped", "case.yaml:5:18: strategy.time: a model file brings its own program"),
        ("stitched", "none", "case.yaml:5:32: strategy.state: network.onnx takes the state h0, c0: write stitched"),
        ("batch: [1, 2]", "dtype: int8_dynamic", "write dtype: float32; for int8, quantise the file and give that one"),
        ("batch: [1, 2]", "dtype: float64", "workload.dtype: network.onnx is called in float32, not float64"),
    ],
)
def test_a_mistake_is_told_at_its_place(case, replaced, by, told):
    assert told in refused(case, replaced, by)


def test_a_constant_is_no_state(case):
    case()
    called = CASE.replace("onnx}", "onnx, constants: {h0: 0, c0: 0}}").replace("stitched", "none")
    Path("case.yaml").write_text(called.replace(", batch: [1, 2]", ""))
    assert len(load_case("case.yaml").trials([Target("onnxruntime", "onnx")])) == 2


def test_a_file_that_is_no_onnx_is_refused_in_a_sentence(case):
    case()
    Path("network.onnx").write_bytes(b"\x80\x04pickle")
    assert "case.yaml:3:15: model.file: it is a pickle" in refused(case, "", "")


def test_given_is_for_files_alone(case):
    told = refused(case, "{file: network.onnx}", "{cell: lstm, input: 2, hidden: 2}")
    assert "strategy.time: given is for a model file, which brings its own program" in told


def test_a_case_says_which_numbers_are_new_and_which_outputs_are_compared(case):
    files.saved(files.reset(()), Path("network.onnx"))
    said = "{file: network.onnx, ranges: {reset: [0, 1]}, outputs: [y]}"
    by = f"{said}\nworkload: {{steps: 8, chunk: 1, batch: 1}}"
    replaced = CASE[CASE.index("{file") : CASE.index("strategy")].rstrip()
    (trial,) = case(replaced, by).trials([Target("onnxruntime", "onnx")])
    model = trial.model
    assert [array.name for array in (*model.inputs, *model.results)] == ["x", "reset", "y"]
