"""Reading any file ends with a description or with one sentence."""

from __future__ import annotations

import pytest
import tflite_files

from rnnbench.model_files import ModelFileError, describe, oracle_of


@pytest.mark.parametrize("read", [describe, oracle_of])
def test_an_operator_that_no_exporter_writes_is_a_sentence(tmp_path, read):
    writer = tflite_files.lstm("int8")
    writer.graph.operators[0].inputs = []
    path = tflite_files.saved(writer, tmp_path / "odd.tflite")
    with pytest.raises(ModelFileError, match=r"odd\.tflite: it is damaged, or is not made as expected: IndexError"):
        read(path)
