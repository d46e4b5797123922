"""Users' ONNX files whose arrays are not float32."""

from __future__ import annotations

import pytest
import typed_streams as typed

from rnnbench.backends.openvino import OpenVinoBackend


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_a_file_in_a_narrow_type(tmp_path, state, dtype):
    typed.assert_right(OpenVinoBackend(), typed.cell_request(dtype, tmp_path, state), tmp_path)


def test_a_file_in_float64_is_unsupported(tmp_path):
    support = OpenVinoBackend().support(typed.cell_request("float64", tmp_path))
    assert support.level == "unsupported"
    assert "it converts the model to float32" in support.reason


@pytest.mark.parametrize("state", ["stitched", "stateful"])
@pytest.mark.parametrize("dtype", typed.WHOLE)
def test_a_state_of_whole_numbers(tmp_path, dtype, state):
    typed.assert_right(OpenVinoBackend(), typed.ring_request(dtype, tmp_path, state), tmp_path)


@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_a_flag_that_makes_the_state_zero(tmp_path, state):
    typed.assert_right(OpenVinoBackend(), typed.flag_request(tmp_path, state), tmp_path)
