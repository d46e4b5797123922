"""The section of a case: YAML that reads back, and answers that are checked."""

from __future__ import annotations

import onnx_files as files
import yaml

from rnnbench.model_files import FileSection, answered, describe, section_of, section_yaml


def test_the_section_reads_back():
    section = FileSection("a b.onnx", {"h0": "hn", "on": "off: #"}, {"sr": 16000, "x": None}, {"T": 3}, None, 1)
    text = section_yaml(section)
    assert yaml.safe_load(text) == {"model": vars(section)}
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
