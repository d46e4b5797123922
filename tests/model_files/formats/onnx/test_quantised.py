"""Files with QuantizeLinear: the oracle saturates, and the tolerance finds a lost state and wrong scales."""

from __future__ import annotations

import numpy as np
import onnx_files as files
import pytest
from onnx import helper, numpy_helper
from quick_tests import for_proof

from rnnbench.conformance.rounding import Y, expected_rounding
from rnnbench.conformance.tolerance import FACTOR
from rnnbench.model_files import ModelFileError, describe, network_of, oracle_of, section_of
from rnnbench.model_files.formats.onnx.quantised import fixed_ranges
from rnnbench.rnn import Arithmetic, RandomRounding, Weights, draw_inputs, run_reference

onnxruntime = pytest.importorskip("onnxruntime")
KINDS = [("uint8", False), *for_proof(("int8", False), ("uint8", True)), ("int8", True)]
STEPS = 32


@pytest.mark.parametrize(("kind", "per_channel"), KINDS)
def test_rounded_to_the_nearest_it_is_what_onnxruntime_gives(tmp_path, kind, per_channel):
    path = files.saved(files.quantised_cell(kind, per_channel), tmp_path / "cell.onnx")
    session = onnxruntime.InferenceSession(str(path))
    nearest = oracle_of(path).in_arithmetic(Arithmetic("int8_static"))
    theirs, ours = [np.zeros((1, 4), np.float32)] * 2
    for x in np.random.default_rng(1).standard_normal((STEPS, 1, 3)).astype(np.float32) * 2:
        y, theirs = session.run(["y", "h_out"], {"x": x, "h": theirs})
        made = nearest.run({"x": x, "h": ours})
        ours = made["h_out"]
        # A value near a half may be rounded either way.
        assert np.abs(y - made["y"]).max() <= 3.01 * 3 / 127
        assert np.abs(theirs - ours).max() <= 2.01 / 127


def test_it_saturates_in_float64_and_is_rounded_at_random_by_half_a_step(tmp_path):
    oracle = oracle_of(files.saved(files.quantised_cell(), tmp_path / "cell.onnx"))
    far, end = ({"x": np.full((1, 3), value), "h": np.full((1, 4), value)} for value in (1e4, 5.0))
    assert np.array_equal(oracle.run(far)["y"], oracle.run(end)["y"])
    given = {"x": np.ones((1, 3)), "h": np.ones((1, 4)) / 2}
    exact = oracle.run(given)["y"]
    spread = [
        max(
            np.abs(oracle.in_arithmetic(RandomRounding(dtype, seed, 0)).run(given)["y"] - exact).max()
            for seed in range(8)
        )
        for dtype in ("float32", "int8_static")
    ]
    assert spread[0] < 1e-5
    assert 3 / 127 / 4 < spread[1] < 0.3


@pytest.mark.parametrize(("kind", "per_channel"), [*KINDS[:-1], *for_proof(("int8", True))])
def test_a_right_runtime_passes_and_planted_faults_are_found(tmp_path, kind, per_channel):
    proto = files.quantised_cell(kind, per_channel)
    path = files.saved(proto, tmp_path / "cell.onnx")
    description = describe(path)
    assert description.activations == "static"
    assert [(pair.before, pair.after) for pair in description.state] == [("h", "h_out")]
    network = network_of(path, section_of(description, path.name), description)
    x = draw_inputs(network, STEPS, 1, 0)
    expected = run_reference(network, Weights(), x)
    allowed = FACTOR * expected_rounding(network, Weights(), x, None, "float32", 0)[Y].over(STEPS).max(axis=(1, 2))

    def share(proto, keeps=1):
        session, h, largest = onnxruntime.InferenceSession(proto.SerializeToString()), np.zeros((1, 4), np.float32), 0.0
        for step in range(STEPS):
            y, h = session.run(["y", "h_out"], {"x": x[step], "h": h * np.float32(keeps)})
            largest = max(largest, np.abs(y - expected.y[step]).max() / allowed[step])
        return largest

    assert share(proto) < 1
    assert share(proto, keeps=0) > 1
    for name in ("W_scale", "R_scale", "V_scale"):
        faulty = type(proto)()
        faulty.CopyFrom(proto)
        tensor = next(each for each in faulty.graph.initializer if each.name == name)
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.5), name))
        assert share(faulty) > 1, name


def without_scale(proto):
    """The scale of x is an input's value."""
    node = next(node for node in proto.graph.node if node.op_type == "QuantizeLinear")
    node.input[1] = "h"


def another_scale(proto):
    node = next(n for n in proto.graph.node if n.op_type == "DequantizeLinear" and n.input[0] == "x_q")
    node.input[1] = "h_scale"


def another_operator(proto):
    node = next(n for n in proto.graph.node if n.op_type == "DequantizeLinear" and n.input[0] == "x_q")
    node.CopyFrom(helper.make_node("Cast", ["x_q"], list(node.output), to=files.FLOAT))


def an_output(proto):
    proto.graph.output.append(files.arrays(("x_q", helper.np_dtype_to_tensor_dtype(np.dtype("uint8")), (1, 3)))[0])


def zero_scale(proto):
    tensor = next(each for each in proto.graph.initializer if each.name == "x_scale")
    tensor.CopyFrom(numpy_helper.from_array(np.float32(0), "x_scale"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (without_scale, "QuantizeLinear without one fixed scale and zero point"),
        (another_scale, "DequantizeLinear of the same scale and zero point"),
        (another_operator, "goes into Cast"),
        (an_output, "is an output"),
        (zero_scale, "a scale that is not above 0"),
    ],
)
def test_other_forms_are_refused_with_what_to_do(tmp_path, change, says):
    proto = files.quantised_cell()
    change(proto)
    with pytest.raises(ModelFileError, match=says):
        oracle_of(files.saved(proto, tmp_path / "cell.onnx"))


def test_the_quantisers_operators_for_16_bits_are_onnxs_own(tmp_path):
    """Before version 21 of ONNX's operators, which have 16 and 4 bits, it writes those of com.microsoft."""
    proto = files.quantised_cell("int16")
    for node in proto.graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            node.domain = "com.microsoft"
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    path = files.saved(proto, tmp_path / "cell.onnx")
    assert describe(path).activations == "static"
    session, oracle = onnxruntime.InferenceSession(str(path)), oracle_of(path)
    given = {"x": np.ones((1, 3), np.float32), "h": np.full((1, 4), 0.5, np.float32)}
    made = oracle.run(given)
    for name, theirs in zip(("y", "h_out"), session.run(["y", "h_out"], given), strict=True):
        assert np.abs(theirs - made[name]).max() < 0.1
        assert not np.array_equal(theirs, made[name])


@pytest.mark.parametrize(
    ("zero", "low", "high"),
    [(None, 0, 255), (np.uint8(0), 0, 255), (np.uint8(7), -7, 248), (np.int8(-128), 0, 255), (np.int8(3), -131, 124)],
)
def test_a_range_is_that_of_the_zero_points_type_and_of_uint8_without_one(zero, low, high):
    given = [numpy_helper.from_array(np.float32(0.5), "scale")]
    names = ["scale"]
    if zero is not None:
        given.append(numpy_helper.from_array(zero, "zero"))
        names.append("zero")
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *names], ["q"]),
        helper.make_node("DequantizeLinear", ["q", *names], ["y"]),
    ]
    model = files.model(nodes, files.arrays(("x", (1, 3))), files.arrays(("y", (1, 3))), given)
    found = fixed_ranges(model)["q"]
    assert (found.low, found.high) == (0.5 * low, 0.5 * high)
