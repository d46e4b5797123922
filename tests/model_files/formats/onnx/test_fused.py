"""Fused operators of ONNX Runtime: the oracle computes the operators that they stand for."""

from __future__ import annotations

import numpy as np
import onnx_files as files
import pytest
from onnx import helper, numpy_helper

from rnnbench.model_files import ModelFileError, describe, oracle_of
from rnnbench.model_files.formats.onnx.fused import MICROSOFT, in_own_operators
from rnnbench.rnn import Arithmetic, RandomRounding

onnxruntime = pytest.importorskip("onnxruntime")
DRAW = np.random.default_rng(0)


def drawn(*shape):
    return DRAW.standard_normal(shape).astype(np.float32)


def whole(*shape, kind="int8"):
    return DRAW.integers(-63, 63, shape).astype(kind)


SQUARE, ROW = drawn(6, 6), drawn(6)
FLOATS = [
    ("FusedMatMul", [drawn(2, 4, 6), drawn(2, 4, 5)], {"transA": 1, "alpha": 0.5}),
    ("FusedMatMul", [drawn(2, 4, 6), drawn(2, 5, 6)], {"transB": 1}),
    ("FusedMatMul", [drawn(2, 4, 6), drawn(6, 2, 5)], {"transBatchB": 1}),
    ("FusedMatMul", [drawn(4, 2, 6), drawn(5, 2, 6)], {"transBatchA": 1, "transBatchB": 1, "transB": 1}),
    ("FusedGemm", [drawn(3, 6), SQUARE, ROW], {"transB": 1, "activation": "Relu"}),
    ("FusedGemm", [drawn(3, 6), SQUARE], {"alpha": 0.5, "activation": "LeakyRelu", "activation_alpha": 0.25}),
    ("FusedConv", [drawn(1, 3, 8), drawn(4, 3, 3), drawn(4)], {"activation": "Tanh", "pads": [2, 0]}),
    (
        "FusedConv",
        [drawn(1, 3, 8), drawn(4, 3, 3)],
        {"activation": "LeakyRelu", "activation_params": [0.25], "strides": [2]},
    ),
    ("FusedConv", [drawn(1, 3, 8), drawn(4, 3, 3)], {"activation": "Clip", "activation_params": [-0.5, 1.5]}),
    (
        "FusedConv",
        [drawn(1, 3, 8, 4), drawn(4, 3, 3, 1), drawn(4), drawn(1, 4, 6, 4)],
        {"activation": "HardSigmoid", "activation_params": [0.25, 0.5]},
    ),
    ("Gelu", [drawn(3, 6)], {}),
    ("BiasGelu", [drawn(3, 6), ROW], {}),
    ("FastGelu", [drawn(3, 6), ROW], {}),
    ("FastGelu", [drawn(3, 6)], {}),
    ("QuickGelu", [drawn(3, 6)], {"alpha": 1.5}),
    ("SkipLayerNormalization", [drawn(1, 3, 6), drawn(1, 3, 6), ROW, drawn(6), drawn(6)], {"epsilon": 1e-5}),
    ("SkipLayerNormalization", [drawn(1, 3, 6), drawn(1, 3, 6), ROW], {}),
    ("SkipSimplifiedLayerNormalization", [drawn(1, 3, 6), drawn(1, 3, 6), ROW], {"epsilon": 1e-5}),
]


def fused(operator, inputs, attributes, outputs=("y",), domain=MICROSOFT):
    """A file of one node. The first input is the caller's, the others are weights, or left out where None."""
    names = ["x", *("" if value is None else f"w{place}" for place, value in enumerate(inputs[1:]))]
    weights = [files.weight(name, value) for name, value in zip(names[1:], inputs[1:], strict=True) if name]
    node = helper.make_node(operator, names, [*outputs], domain=domain, **attributes)
    ends = files.arrays(*((name, [None] * inputs[0].ndim) for name in outputs if name))
    given = files.arrays(("x", helper.np_dtype_to_tensor_dtype(inputs[0].dtype), inputs[0].shape))
    return files.model([node], given, ends, weights, opset=13, opsets=[helper.make_opsetid(MICROSOFT, 1)])


@pytest.mark.parametrize(("operator", "inputs", "attributes"), FLOATS)
def test_it_is_what_onnxruntime_computes(tmp_path, operator, inputs, attributes):
    path = files.saved(fused(operator, inputs, attributes), tmp_path / "fused.onnx")
    assert describe(path).operators == {f"{MICROSOFT}.{operator}": 1}
    feed = {"x": inputs[0]}
    theirs = onnxruntime.InferenceSession(str(path)).run(None, feed)[0]
    oracle = oracle_of(path)
    exact = oracle.run(feed)["y"]
    spread = max(
        np.abs(oracle.in_arithmetic(RandomRounding("float32", seed, 0)).run(feed)["y"] - exact).max()
        for seed in range(4)
    )
    assert exact.dtype == np.float64
    assert 0 < np.abs(theirs - exact).max() <= 4 * spread < 1e-4


def test_the_sum_before_a_normalisation_may_be_a_result(tmp_path):
    names = ("y", "", "", "sum")
    inputs = [drawn(1, 3, 6), drawn(1, 3, 6), ROW, drawn(6)]
    proto = fused("SkipLayerNormalization", inputs, {}, names)
    made = oracle_of(files.saved(proto, tmp_path / "norm.onnx")).run({"x": inputs[0]})
    assert np.allclose(made["sum"], inputs[0].astype(float) + inputs[1])


GIVEN, RESULT = (np.float32(0.02), np.uint8(120)), (np.float32(0.03), np.uint8(110))
COLUMNS = np.linspace(0.01, 0.02, 4, dtype=np.float32)
OTHER = [whole(6, kind="uint8"), np.float32(0.03), np.uint8(9)]
LEAST = (np.float32(1 / 256), np.uint8(0))
X, Q = "x", "y"
QUANTISED = [
    ("QLinearMatMul", "", (3, 6), [X, whole(6, 4), COLUMNS, np.zeros(4, np.int8), Q], RESULT, {}),
    (
        "QLinearConv",
        "",
        (1, 3, 6),
        [X, whole(4, 3, 3), COLUMNS, np.zeros(4, np.int8), Q, whole(4, kind="int32")],
        RESULT,
        {"pads": [1, 1]},
    ),
    (
        "QLinearConv",
        MICROSOFT,
        (1, 6, 5, 3),
        [X, whole(4, 3, 3, 1), np.float32(0.01), np.int8(0), Q, whole(4, kind="int32")],
        RESULT,
        {"channels_last": 1},
    ),
    ("QLinearAdd", MICROSOFT, (3, 6), [X, *OTHER, Q], RESULT, {}),
    ("QLinearMul", MICROSOFT, (3, 6), [X, *OTHER, Q], RESULT, {}),
    ("QLinearConcat", MICROSOFT, (6,), [Q, X, *OTHER], RESULT, {"axis": 0}),
    ("QLinearSigmoid", MICROSOFT, (3, 6), [X, Q], LEAST, {}),
    ("QLinearLeakyRelu", MICROSOFT, (3, 6), [X, Q], RESULT, {"alpha": 0.25}),
    ("QLinearSoftmax", MICROSOFT, (3, 6), [X, Q], LEAST, {"axis": -1, "opset": 13}),
    (
        "QGemm",
        MICROSOFT,
        (3, 6),
        [X, whole(5, 6), np.float32(0.01), np.int8(0), whole(5, kind="int32"), Q],
        RESULT,
        {"transB": 1},
    ),
    ("QGemm", MICROSOFT, (3, 6), [X, whole(6, 5), np.float32(0.01), np.int8(0), None, Q], RESULT, {"alpha": 0.5}),
]


def between_floats(operator, domain, shape, inputs, result, attributes):
    """x in float, quantised, through one operator, and in float again."""
    weights, names = [], list[str]()

    def constants(*values):
        for value in values:
            weights.append(numpy_helper.from_array(np.asarray(value), f"w{len(weights)}"))
            yield weights[-1].name

    given, made = [*constants(*GIVEN)], [*constants(*result)]
    for value in inputs:
        if isinstance(value, str):
            names += ["xq", *given] if value == X else made
        else:
            names += [""] if value is None else constants(value)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", *given], ["xq"]),
        helper.make_node(operator, names, ["q"], domain=domain, **attributes),
        helper.make_node("DequantizeLinear", ["q", *made], ["y"]),
    ]
    opsets = [helper.make_opsetid(MICROSOFT, 1)]
    return files.model(
        nodes, files.arrays(("x", shape)), files.arrays(("y", [None] * len(shape))), weights, opset=13, opsets=opsets
    )


@pytest.mark.parametrize(("operator", "domain", "shape", "inputs", "result", "attributes"), QUANTISED)
def test_a_quantised_operator_is_its_float_operator_between_ranges(
    tmp_path, operator, domain, shape, inputs, result, attributes
):
    path = files.saved(between_floats(operator, domain, shape, inputs, result, attributes), tmp_path / "fused.onnx")
    assert describe(path).activations == "static"
    feed = {"x": drawn(*shape)}
    theirs = onnxruntime.InferenceSession(str(path)).run(None, feed)[0]
    nearest = oracle_of(path).in_arithmetic(Arithmetic("int8_static")).run(feed)["y"]
    step = result[0]
    assert theirs.shape == nearest.shape
    assert np.abs(theirs - nearest).max() <= 1.01 * step  # A value near a half may be rounded either way.
    assert np.abs(theirs - nearest).mean() <= step / 8


@pytest.mark.parametrize("is_integer", [False, True])
def test_a_product_in_whole_numbers_has_the_range_of_each_call(tmp_path, is_integer):
    given = [whole(6, 4), COLUMNS, np.zeros(4, np.int8), drawn(4)]
    weights = [files.weight(f"w{place}", value) for place, value in enumerate(given)]
    nodes = [helper.make_node("DynamicQuantizeMatMul", ["x", "w0", "w1", "w2", "w3"], ["y"], domain=MICROSOFT)]
    if is_integer:
        names = ["xq", "w0", "scale", "w1", "zero", "w2", "w3"]
        nodes = [
            helper.make_node("DynamicQuantizeLinear", ["x"], ["xq", "scale", "zero"]),
            helper.make_node("MatMulIntegerToFloat", names, ["y"], domain=MICROSOFT),
        ]
    opsets = [helper.make_opsetid(MICROSOFT, 1)]
    ends = files.arrays(("x", (3, 6))), files.arrays(("y", (3, 4)))
    path = files.saved(files.model(nodes, *ends, weights, opset=13, opsets=opsets), tmp_path / "fused.onnx")
    assert describe(path).activations == "dynamic"
    feed = {"x": drawn(3, 6)}
    oracle = oracle_of(path)
    theirs = onnxruntime.InferenceSession(str(path)).run(None, feed)[0]
    nearest = oracle.in_arithmetic(Arithmetic("int8_dynamic")).run(feed)["y"]
    exact = feed["x"].astype(float) @ (given[0] * COLUMNS.astype(float)) + given[3]
    assert np.allclose(oracle.run(feed)["y"], exact)
    assert 0 < np.abs(theirs - nearest).max() < 0.05
    assert np.abs(theirs - exact).max() < 0.05


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "names", "says"),
    [
        ("FusedConv", [drawn(1, 3, 8), drawn(4, 3, 3)], {"activation": "Swish"}, ["y"], "the activation Swish"),
        ("FusedGemm", [drawn(3, 6), SQUARE], {"gamma": 2.0}, ["y"], "gamma = 2.0"),
        ("SkipLayerNormalization", [drawn(1, 3, 6), drawn(1, 3, 6), ROW], {}, ["y", "mean"], "a mean as a result"),
        ("Attention", [drawn(1, 3, 6), drawn(6, 18)], {"num_heads": 2}, ["y"], "is no operator of ONNX"),
        ("FusedConv", [drawn(1, 3, 8), drawn(4, 3, 3)], {"activation": 3}, ["y"], "it cannot be computed"),
    ],
)
def test_another_form_is_described_and_not_computed(tmp_path, operator, inputs, attributes, names, says):
    path = files.saved(fused(operator, inputs, attributes, names), tmp_path / "fused.onnx")
    with pytest.raises(ModelFileError, match=says):
        oracle_of(path)
    if says != "it cannot be computed":
        assert describe(path).operators == {f"{MICROSOFT}.{operator}": 1}


def test_a_file_without_fused_operators_is_the_same_object():
    proto = files.recurrent()
    assert in_own_operators(proto) is proto


def test_a_file_of_fused_operators_alone_need_not_name_a_version_of_onnxs_own(tmp_path):
    x = drawn(3, 6)
    proto = fused("QuickGelu", [x], {})
    del proto.opset_import[:]
    proto.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    made = oracle_of(files.saved(proto, tmp_path / "fused.onnx")).run({"x": x})
    assert np.allclose(made["y"], x / (1 + np.exp(-1.702 * x.astype(float))))
