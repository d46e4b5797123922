"""Users' ONNX files whose arrays are not float32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_files as files
import pytest
import typed_streams as typed
from harness_trials import make_trial
from onnx import TensorProto, helper

from rnnbench.backends import request_of
from rnnbench.backends.base import BuildError
from rnnbench.backends.onnxruntime import OnnxRuntimeBackend, options
from rnnbench.conformance import ReferenceTrajectories, magnitudes, run_checks, suite
from rnnbench.model_files import FileSection, describe, network_of


@pytest.mark.first(1)
@pytest.mark.parametrize("state", ["stitched", "stateful"])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_a_file_of_another_type_of_floats(tmp_path, dtype, state):
    typed.assert_right(OnnxRuntimeBackend(), typed.cell_request(dtype, tmp_path, state), tmp_path)


@pytest.mark.first(2)
@pytest.mark.parametrize("state", ["stitched", "stateful"])
@pytest.mark.parametrize("dtype", typed.WHOLE)
def test_a_state_of_whole_numbers(tmp_path, dtype, state):
    typed.assert_right(OnnxRuntimeBackend(), typed.ring_request(dtype, tmp_path, state), tmp_path)


def test_a_product_in_bfloat16_is_refused_with_the_runtimes_reason(tmp_path):
    with pytest.raises(BuildError, match="Could not find an implementation for MatMul"):
        OnnxRuntimeBackend().build(typed.cell_request("bfloat16", tmp_path), tmp_path / "cache")


def test_the_casts_that_the_runtime_put_in_are_told(tmp_path):
    program = OnnxRuntimeBackend().build(typed.cell_request("float16", tmp_path), tmp_path / "cache")
    assert any("put in" in note and "casts" in note for note in program.artifact.notes)


def test_an_operator_that_has_no_kernel_for_float64_is_unsupported(tmp_path):
    path = files.saved(files.typed(files.recurrent("GRU"), TensorProto.DOUBLE), tmp_path / "gru.onnx")
    request = typed.request_for(path, "stitched", FileSection(path.name, {"h0": "hn"}, time=0, batch=1))
    support = OnnxRuntimeBackend().support(request)
    assert support.level == "unsupported"
    assert "compute in float32 only" in support.reason


@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_a_flag_that_makes_the_state_zero(tmp_path, state):
    typed.assert_right(OnnxRuntimeBackend(), typed.flag_request(tmp_path, state), tmp_path)


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_products_of_bytes_do_not_saturate_on_any_processor(tmp_path, kind):
    path = files.saved(files.quantised_cell(kind, largest_byte=127), tmp_path / "cell.onnx")
    typed.assert_right(OnnxRuntimeBackend(), typed.asked(path, "onnx", [], "stitched"), tmp_path)


@pytest.mark.parametrize(("largest", "precise"), [(63, False), (127, True)])
def test_sums_of_weights_of_7_bits_need_no_option(tmp_path, monkeypatch, largest, precise):
    """The option does not load some files, such as an unrolled loop."""
    monkeypatch.setattr(options, "overflows", lambda: True)
    path = files.saved(files.quantised_cell(largest_byte=largest), tmp_path / "cell.onnx")
    request = typed.request_for(path, "stitched", FileSection(path.name, {"h": "h_out"}))
    assert options.adds_precisely(request) is precise
    assert (f"{options.PRECISE}=1" in options.flags(request)) is precise


def test_a_product_by_weights_that_alone_are_quantised_stays_in_float(tmp_path):
    draw = np.random.default_rng(0)
    weights = [
        files.weight("q", draw.integers(-128, 128, (3, 4)).astype(np.int8)),
        files.weight("scale", np.full(4, 0.02, np.float32)),
        files.weight("zero", draw.integers(-5, 5, 4).astype(np.int8)),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["W"], axis=1),
        helper.make_node("MatMul", ["x", "W"], ["xw"]),
        helper.make_node("Add", ["xw", "h"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["h_out"]),
        helper.make_node("Relu", ["h_out"], ["y"]),
    ]
    ends = files.arrays(("x", (1, 3)), ("h", (1, 4))), files.arrays(("y", (1, 4)), ("h_out", (1, 4)))
    path = files.saved(files.model(nodes, *ends, weights), tmp_path / "cell.onnx")
    request = typed.request_for(path, "stitched", FileSection(path.name, {"h": "h_out"}))
    assert f"{options.IN_FLOAT}=1" in options.flags(request)
    typed.assert_right(OnnxRuntimeBackend(), request, tmp_path)


def test_steps_of_a_call_may_share_the_range_of_eight_bits(tmp_path, monkeypatch):
    """Beside an input of 1,000 in the same call, one of 1 keeps no digits."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    monkeypatch.setattr(suite, "CHECKS", magnitudes.MAGNITUDE_CHECKS)
    proto, path = files.recurrent("LSTM"), tmp_path / "bytes.onnx"
    size = proto.graph.input[0].type.tensor_type.shape.dim[2].dim_value
    weight = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    proto.graph.initializer.append(files.weight("D", weight))
    proto.graph.node[0].input[0] = "mixed"
    proto.graph.node.insert(0, helper.make_node("MatMul", ["x", "D"], ["mixed"]))
    quantization.quantize_dynamic(files.saved(proto, tmp_path / "float.onnx"), path, reduce_range=True)
    section = FileSection(path.name, {"h0": "hn", "c0": "cn"}, time=0, batch=1)
    trial = replace(make_trial("onnxruntime:onnx", "given"), model=network_of(path, section, describe(path)))
    reference = ReferenceTrajectories(trial, tmp_path)
    program = OnnxRuntimeBackend().build(request_of(trial, reference.weights), tmp_path / "cache")
    assert {name: check.verdict for name, check in run_checks(program, reference)} == {
        "saturation": "not-applicable",
        "denormals": "pass",
        "magnitudes": "pass",
    }
