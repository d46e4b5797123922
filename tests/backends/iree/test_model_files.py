"""Users' ONNX files whose arrays are not float32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_files as files
import pytest
import typed_streams as typed
from onnx import helper
from quick_tests import for_proof

from rnnbench.backends.base import BuildError
from rnnbench.backends.iree import IreeBackend
from rnnbench.cases.expected_failures import read_expected_failures
from rnnbench.cases.files import SHIPPED
from rnnbench.conformance import CHECKS_BY_NAME
from rnnbench.model_files import FileSection


@pytest.mark.proof
@pytest.mark.parametrize(
    ("dtype", "activation"), [("float16", "Tanh"), *for_proof(("bfloat16", "Tanh"), ("float64", "Sigmoid"))]
)
def test_a_file_of_another_type_of_floats(tmp_path, dtype, activation):
    typed.assert_right(IreeBackend(), typed.cell_request(dtype, tmp_path, activation=activation), tmp_path)


def test_an_operator_without_a_function_in_float64_is_unsupported(tmp_path):
    support = IreeBackend().support(typed.cell_request("float64", tmp_path))
    assert support.level == "unsupported"
    assert "Tanh in float64 calls one (undefined symbol)" in support.reason


@pytest.mark.parametrize(
    ("dtype", "state"), [("uint8", "stateful"), *for_proof(("int64", "stitched"), ("bool", "stitched"))]
)
def test_a_state_of_whole_numbers(tmp_path, dtype, state):
    typed.assert_right(IreeBackend(), typed.ring_request(dtype, tmp_path, state), tmp_path)


@pytest.mark.proof
def test_a_file_whose_weights_are_inputs_as_in_old_files(tmp_path):
    """The importer makes its operators newer, and that needs weights among the inputs, or a newer format."""
    proto = files.cell("x", ["h"], ["next_h"])
    proto.ir_version, proto.opset_import[0].version = 3, 7
    proto.graph.input.extend(files.arrays(*((each.name, list(each.dims)) for each in proto.graph.initializer)))
    path = files.saved(proto, tmp_path / "old.onnx")
    typed.assert_right(
        IreeBackend(), typed.request_for(path, "stitched", FileSection(path.name, {"h": "next_h"})), tmp_path
    )


@pytest.mark.proof
@pytest.mark.parametrize(
    ("operator", "version", "scales", "attributes"),
    [
        ("Hardmax", 12, (), {"axis": -1}),
        *for_proof(
            ("Upsample", 9, (1, 1, 2, 2), {"mode": "linear"}),
            ("Hardmax", 7, (), {}),
            ("Hardmax", 12, (), {"axis": 2}),
            ("Softmax", 11, (), {}),
            ("Resize", 10, (1, 1, 2, 1.5), {"mode": "nearest"}),
        ),
    ],
)
def test_an_older_operator_that_onnx_has_changed(tmp_path, operator, version, scales, attributes):
    """Hardmax takes several axes for one, and the places of a Resize are others than later ones."""
    given = ["mixed", *(["scales"] if scales else [])]
    nodes = [
        helper.make_node("Add", ["x", "h"], ["mixed"]),
        helper.make_node(operator, given, ["y"], **attributes),
        helper.make_node("Tanh", ["mixed"], ["h_next"]),
    ]
    ends = [1, 2, 4, 6]
    model = files.model(
        nodes,
        files.arrays(("x", ends), ("h", ends)),
        files.arrays(
            ("y", [int(size * scale) for size, scale in zip(ends, scales or [1] * 4, strict=True)]), ("h_next", ends)
        ),
        [files.weight("scales", np.array(scales, np.float32))] if scales else [],
        opset=version,
    )
    path = files.saved(model, tmp_path / "older.onnx")
    section = FileSection(path.name, {"h": "h_next"}, outputs=("y",))
    typed.assert_right(IreeBackend(), typed.request_for(path, "stitched", section), tmp_path)


def test_a_strided_convolution_with_one_result_does_not_compile_as_expected(tmp_path):
    entries = read_expected_failures(SHIPPED[0], CHECKS_BY_NAME)
    (entry,) = (each for each in entries if "strided-convolution" in each.contains)
    nodes = [
        helper.make_node("Add", ["x", "h"], ["h_next"]),
        helper.make_node("Conv", ["h_next", "w"], ["y"], strides=[2], pads=[1, 1]),
    ]
    ends = files.arrays(("x", (1, 1, 2)), ("h", (1, 1, 2))), files.arrays(("y", (1, 1, 1)), ("h_next", (1, 1, 2)))
    weights = [files.weight("w", np.ones((1, 1, 3), np.float32))]
    path = files.saved(files.model(nodes, *ends, weights), tmp_path / "strided.onnx")
    request = typed.request_for(path, "stitched", FileSection(path.name, {"h": "h_next"}, outputs=("y",)))
    assert "strided-convolution" in request.model.traits
    with pytest.raises(BuildError) as error:
        IreeBackend().build(request, tmp_path / "cache")
    assert any(text in str(error.value) for text in entry.says)


def test_an_lstm_that_onnx_runtime_quantised_is_unsupported(tmp_path):
    request = typed.cell_request("float16", tmp_path)
    quantised = request.model.model_copy(update={"operators": ("com.microsoft.DynamicQuantizeLSTM",)})
    support = IreeBackend().support(replace(request, model=quantised))
    assert support.level == "unsupported"
    assert "not com.microsoft.DynamicQuantizeLSTM" in support.reason
