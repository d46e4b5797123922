"""Files of `onnxruntime.quantization.quantize_dynamic`: the tolerance finds a lost state and wrong scales."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_files as files
import pytest
from onnx import helper, numpy_helper
from quick_tests import for_proof

from rnnbench.backends.shared import overflows
from rnnbench.conformance.rounding import Y, expected_rounding
from rnnbench.conformance.tolerance import FACTOR
from rnnbench.model_files import ModelFileError, describe, network_of, oracle_of, section_of
from rnnbench.rnn import Arithmetic, RandomRounding, Weights, draw_inputs, run_reference

onnxruntime = pytest.importorskip("onnxruntime")
quantization = pytest.importorskip("onnxruntime.quantization")
STEPS = 32
WAYS = [(False, True), (True, True), *([] if overflows() else [(False, False), (True, False)])]
"""Whether each row of weights has a scale, and whether they have 7 bits. Sums with 8 may saturate without VNNI."""


def network(operator="LSTM"):
    """A convolution over the channels of x, an operator and a dense layer, all in float."""
    proto = files.recurrent(operator, hidden=8)
    draw = np.random.default_rng(5)
    proto.graph.initializer.extend(
        [
            files.weight("D", (draw.standard_normal((8, 2)) * 0.5).astype(np.float32)),
            files.weight("K", (draw.standard_normal((3, 3, 1)) * 0.8).astype(np.float32)),
        ]
    )
    proto.graph.node[0].input[0] = "mixed"
    proto.graph.node.insert(0, helper.make_node("Transpose", ["convolved"], ["mixed"], perm=[0, 2, 1]))
    proto.graph.node.insert(0, helper.make_node("Conv", ["turned", "K"], ["convolved"], kernel_shape=[1]))
    proto.graph.node.insert(0, helper.make_node("Transpose", ["x"], ["turned"], perm=[0, 2, 1]))
    proto.graph.node.append(helper.make_node("MatMul", ["y", "D"], ["dense"]))
    (y,) = files.arrays(("dense", ("T", "B", 2)))
    proto.graph.output[0].CopyFrom(y)
    return proto


def quantised(tmp_path, operator="LSTM", per_channel=False, reduce_range=False):
    plain, path = files.saved(network(operator), tmp_path / "float.onnx"), tmp_path / "bytes.onnx"
    quantization.quantize_dynamic(plain, path, per_channel=per_channel, reduce_range=reduce_range)
    return path


@pytest.mark.parametrize("operator", ["LSTM", *for_proof("GRU")])
@pytest.mark.parametrize(("per_channel", "reduce_range"), [WAYS[0], *for_proof(*WAYS[1:])])
def test_a_right_runtime_passes_and_planted_faults_are_found(tmp_path, operator, per_channel, reduce_range):
    path = quantised(tmp_path, operator, per_channel, reduce_range)
    description = describe(path)
    assert description.activations == "dynamic"
    assert {"ConvInteger", "MatMulInteger"} < description.operators.keys()
    assert {pair.before: (pair.after, pair.found) for pair in description.state}["h0"] == ("hn", "traced")
    section = section_of(description, path.name)
    assert (section.time, section.batch) == (0, 1)
    network = network_of(path, section, description)
    x = draw_inputs(network, STEPS, 1, 0)
    expected = run_reference(network, Weights(), x)
    allowed = FACTOR * expected_rounding(network, Weights(), x, None, "float32", 0)[Y].over(STEPS).max(axis=(1, 2))

    def share(proto, keeps=1):
        session = onnxruntime.InferenceSession(proto.SerializeToString())
        states = {name: np.zeros((1, 1, 8), np.float32) for name in section.state}
        largest = 0.0
        for step in range(STEPS):
            kept = {name: array * np.float32(keeps) for name, array in states.items()}
            y, *after = session.run(["dense", *section.state.values()], {"x": x[step : step + 1], **kept})
            states = dict(zip(section.state, after, strict=True))
            largest = max(largest, np.abs(y[0] - expected.y[step]).max() / allowed[step])
        return largest

    proto = onnx.load(path)
    assert share(proto) < 0.5
    assert share(proto, keeps=0) > 1
    scales = [tensor.name for tensor in proto.graph.initializer if tensor.name.endswith("_scale")]
    assert len(scales) == (4 if operator == "LSTM" else 2)
    for name in scales:
        faulty = onnx.ModelProto()
        faulty.CopyFrom(proto)
        tensor = next(each for each in faulty.graph.initializer if each.name == name)
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.5), name))
        assert share(faulty) > 1, name


@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_rounded_to_8_bits_it_is_near_what_onnxruntime_gives(tmp_path, operator):
    path = quantised(tmp_path, operator)
    session, oracle = onnxruntime.InferenceSession(path), oracle_of(path)
    draw = np.random.default_rng(1)
    given = {one.name: draw.standard_normal((1, 1, one.shape[2])).astype(np.float32) for one in session.get_inputs()}
    theirs = session.run(["dense"], given)[0]
    exact, nearest = (
        oracle.in_arithmetic(arithmetic).run(given)["dense"]
        for arithmetic in (Arithmetic(), Arithmetic("int8_dynamic"))
    )
    assert 0 < np.abs(nearest - exact).max() < 0.05
    assert 0 < np.abs(theirs - exact).max() < 0.05


def test_what_stays_in_float_is_not_rounded_to_8_bits(tmp_path):
    """`quantize_dynamic` leaves a GRU in float."""
    oracle = oracle_of(quantised(tmp_path, "GRU"))
    given = {"x": np.zeros((1, 1, 3)), "h0": np.full((1, 1, 8), 0.3)}
    exact = oracle.run(given)["hn"]
    for arithmetic in (Arithmetic("int8_dynamic"), RandomRounding("int8_dynamic", 0, 0)):
        assert np.abs(oracle.in_arithmetic(arithmetic).run(given)["hn"] - exact).max() < 1e-6


def an_output(proto):
    name = next(node for node in proto.graph.node if node.op_type == "DynamicQuantizeLinear").output[1]
    proto.graph.output.extend(files.arrays((name, ())))


def another_product(proto):
    node = next(node for node in proto.graph.node if node.op_type == "MatMulInteger")
    node.input[0] = node.input[1]


def another_zero_point(proto):
    first = next(node for node in proto.graph.node if node.op_type == "DynamicQuantizeLinear")
    next(node for node in proto.graph.node if node.op_type == "MatMulInteger").input[2] = first.output[2]


def another_operator(proto):
    name = next(node for node in proto.graph.node if node.op_type == "DynamicQuantizeLinear").output[0]
    proto.graph.node.append(helper.make_node("Cast", [name], ["cast"], to=files.FLOAT))


def fixed_ranges_too(proto):
    proto.graph.initializer.extend([files.weight("s", np.float32(0.1)), files.weight("z", np.uint8(128))])
    proto.graph.node.append(helper.make_node("QuantizeLinear", ["dense", "s", "z"], ["bytes"]))
    proto.graph.node.append(helper.make_node("DequantizeLinear", ["bytes", "s", "z"], ["float"]))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (an_output, "is an output"),
        (another_product, "MatMulInteger of something else"),
        (another_zero_point, "goes into MatMulInteger"),
        (another_operator, "goes into Cast as input 0"),
        (fixed_ranges_too, "fixed ranges and by those of each call"),
    ],
)
def test_other_forms_are_refused_with_what_to_do(tmp_path, change, says):
    proto = onnx.load(quantised(tmp_path))
    change(proto)
    with pytest.raises(ModelFileError, match=says):
        oracle_of(files.saved(proto, tmp_path / "other.onnx"))


def test_a_bias_in_whole_numbers_is_not_rounded(tmp_path):
    """Quantisers of ONNX Runtime 1.5 to 1.7 divide it by the scale of the product, in each call."""
    draw = np.random.default_rng(3)
    weight, bias = draw.integers(1, 127, (4, 3, 1)).astype(np.uint8), draw.standard_normal(4).astype(np.float32)
    given = {"W": weight, "w_scale": np.float32(0.02), "w_zero": np.uint8(64), "B": bias, "rows": np.array([1, 4, 1])}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
        helper.make_node("Mul", ["scale", "w_scale"], ["step"]),
        helper.make_node("Div", ["B", "step"], ["steps"]),
        helper.make_node("Floor", ["steps"], ["floor"]),
        helper.make_node("Cast", ["floor"], ["whole"], to=onnx.TensorProto.INT32),
        helper.make_node("Reshape", ["whole", "rows"], ["bias"]),
        helper.make_node("ConvInteger", ["q", "W", "zero", "w_zero"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["real"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", ["real", "step"], ["y"]),
    ]
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in given.items()]
    proto = files.model(nodes, files.arrays(("x", [1, 3, 5])), files.arrays(("y", [1, 4, 5])), weights)
    path = files.saved(proto, tmp_path / "older.onnx")
    oracle, x = oracle_of(path), draw.standard_normal((1, 3, 5)).astype(np.float32)
    exact = np.einsum("oi,bit->bot", (weight[:, :, 0] - 64.0) * np.float32(0.02), x) + bias[:, None]
    assert np.allclose(oracle.run({"x": x})["y"], exact)
    theirs = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})[0]
    spread = max(
        np.abs(oracle.in_arithmetic(RandomRounding("int8_dynamic", seed, 0)).run({"x": x})["y"] - exact).max()
        for seed in range(16)
    )
    assert 0 < np.abs(theirs - exact).max() < 2 * spread
