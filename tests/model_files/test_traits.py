"""What a file contains that compilers are known to get wrong, told by its operators, attributes and types."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_files as files
import pytest
import tflite_files as lite
import tflite_recurrent_files as recurrent
import torch
from onnx import TensorProto, helper, numpy_helper
from pt2_modules import Ring, Streaming

from rnnbench.model_files import answered, describe, network_of, section_of
from rnnbench.model_files.traits import TRAITS, Operation, dependences, reached

OF_QUANTISED_FILES = "quantised-states"
"""What every quantised file with a state has. It has a test of its own."""
SCALED = ["scale", "zero"]
QUANTISERS = ("QuantizeLinear", "DequantizeLinear")
CACHES = """
func.func public @main(%x: tensor<1x4xf32> loc("x"), %k: tensor<3x4xf32> loc("k"), %v: tensor<VALUESx4xf32> loc("v"),
    %i: tensor<i32> loc("i"), %h: tensor<1x4xf32> loc("h")) -> (tensor<1x4xf32> {jax.result_info = "y"},
    tensor<3x4xf32> {jax.result_info = "k_next"}, tensor<VALUESx4xf32> {jax.result_info = "v_next"},
    tensor<i32> {jax.result_info = "i_next"}, tensor<1x4xf32> {jax.result_info = "h_next"}) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.constant dense<1> : tensor<i32>
  %k1 = stablehlo.dynamic_update_slice %k, %x, %i, %0 : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
  %v1 = stablehlo.dynamic_update_slice %v, %x, %i, %0 : (tensor<VALUESx4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<VALUESx4xf32>
  %i1 = stablehlo.add %i, %1 : tensor<i32>
  %y = stablehlo.slice %k1 [0:1, 0:4] : (tensor<3x4xf32>) -> tensor<1x4xf32>
  %h1 = stablehlo.add %h, %x : tensor<1x4xf32>
  return %y, %k1, %v1, %i1, %h1 : tensor<1x4xf32>, tensor<3x4xf32>, tensor<VALUESx4xf32>, tensor<i32>, tensor<1x4xf32>
}
"""  # noqa: E501


def traits(path, *answers: str) -> dict[str, set[str]]:
    found = describe(path)
    section = answered(section_of(found, path.name), found, answers)
    told = network_of(path, section, found).traits
    return {name: {*arrays} for name, arrays in told.items() if name != OF_QUANTISED_FILES}


def of_onnx(tmp_path, model, *answers):
    return traits(files.saved(model, tmp_path / "network.onnx"), *answers)


def of_pt2(tmp_path, module):
    path = tmp_path / "network.pt2"
    torch.export.save(torch.export.export(module.eval(), (torch.zeros(1, 3),)), path)
    return traits(path)


def of_caches(tmp_path, values: int):
    path = tmp_path / "caches.mlir"
    path.write_text(CACHES.replace("VALUES", str(values)))
    states = [f"state.{name}={name}_next" for name in "kvih"]
    return traits(path, *states, "time=null", "batch=null")


def test_an_output_depends_on_what_its_operations_take():
    operations = [Operation(["a", "w"], ["b"]), Operation(["b", "c"], ["d"]), Operation([], ["e"])]
    ends = {"A": "a", "C": "c"}, {"B": "b", "D": "d", "E": "e"}
    assert dependences(operations, *ends) == {"B": ("A",), "D": ("A", "C"), "E": ()}
    assert reached(operations, {"c"}, ends[1]) == ("D",)


@pytest.mark.parametrize(
    ("operator", "attributes", "name"),
    [
        ("LSTM", {"activations": ["HardSigmoid", "Tanh", "Tanh"]}, "other-activations"),
        ("GRU", {"activations": ["Sigmoid", "Softsign"]}, "other-activations"),
        ("LSTM", {"input_forget": 1}, "joint-gates"),
        ("RNN", {"activations": ["ThresholdedRelu"]}, "default-threshold"),
        ("RNN", {"clip": 0.5}, "clipped-rnn"),
    ],
)
def test_an_operator_is_told_by_its_attributes(tmp_path, operator, attributes, name):
    plain = of_onnx(tmp_path, files.recurrent(operator))
    found = of_onnx(tmp_path, files.recurrent(operator, **attributes))
    assert not plain
    assert found.keys() == {name}
    assert {"y", "hn", "h0"} <= found[name]


@pytest.mark.parametrize(("alphas", "told"), [([], True), ([0.2], True), ([0.2, 0.5], False)])
def test_a_threshold_is_given_where_an_alpha_is_left_for_it(tmp_path, alphas, told):
    """The hard sigmoid takes the first one."""
    values = {"activation_alpha": alphas} if alphas else {}
    found = of_onnx(tmp_path, files.recurrent("GRU", activations=["HardSigmoid", "ThresholdedRelu"], **values))
    assert ("default-threshold" in found) is told


@pytest.mark.parametrize(("backward", "told"), [("Relu", True), ("tanh", False)])
@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
def test_other_activations_backward_are_told(tmp_path, operator, backward, told):
    gates = {"LSTM": ["Sigmoid", "Tanh"], "GRU": ["Sigmoid"], "RNN": []}[operator]
    names = [*gates, "Tanh", *gates, backward]
    both = files.recurrent(operator, direction="bidirectional", activations=names)
    assert ("unlike-directions" in of_onnx(tmp_path, both)) is told
    alone = files.recurrent(operator, activations=[*gates, "Tanh"])
    assert "unlike-directions" not in of_onnx(tmp_path, alone)


@pytest.mark.parametrize(
    ("activation", "told"), [("Relu", False), ("LeakyRelu", False), ("Tanh", True), ("Sigmoid", True)]
)
@pytest.mark.parametrize("is_inside", [False, True])
def test_the_activation_of_a_fused_gemm_is_told(tmp_path, activation, told, is_inside):
    nodes = [helper.make_node("FusedGemm", ["x", "w"], ["y"], domain="com.microsoft", activation=activation)]
    if is_inside:
        branch = helper.make_graph(nodes, "branch", [], files.arrays(("y", [1, 2])))
        nodes = [helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch)]
    weights = [files.weight("w", np.ones((2, 2), np.float32)), numpy_helper.from_array(np.array(True), "yes")]
    ends = files.arrays(("x", [1, 2])), files.arrays(("y", [1, 2]))
    opsets = [helper.make_opsetid("com.microsoft", 1)]
    found = of_onnx(tmp_path, files.model(nodes, *ends, weights, opsets=opsets))
    assert found == ({"fused-gemm": {"y"}} if told else {})


@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
def test_an_operator_whose_rows_come_first_is_told(tmp_path, operator, layout):
    found = of_onnx(tmp_path, files.with_layout(operator, layout))
    assert found == ({"rows-first-operator": {"y", "h0", "hn"}} if layout else {})


def test_peepholes_are_told_by_the_last_input_of_an_lstm(tmp_path):
    model = files.recurrent("LSTM", input_forget=0)
    model.graph.node[0].input.append("")
    assert not of_onnx(tmp_path, model)
    model.graph.node[0].input[-1] = "P"
    model.graph.initializer.append(files.weight("P", np.ones((1, 12), np.float32)))
    found = of_onnx(tmp_path, model)
    assert found.keys() == {"peepholes"}
    assert {"y", "hn", "cn"} <= found["peepholes"]


@pytest.mark.parametrize("is_inside", [False, True])
@pytest.mark.parametrize("raw", [False, True])
def test_numbers_of_bfloat16_in_a_list_are_told(tmp_path, raw, is_inside):
    bits = np.array([0x3F80, 0xC000], np.uint16)
    tensor = helper.make_tensor("w", TensorProto.BFLOAT16, [1, 2], bits.tobytes(), raw=True)
    if not raw:
        tensor.ClearField("raw_data")
        tensor.int32_data.extend(bits.tolist())
    nodes = [helper.make_node("Cast", ["w"], ["wide"], to=TensorProto.FLOAT)]
    if is_inside:
        constant = helper.make_node("Constant", [], ["w"], value=tensor)
        branch = helper.make_graph([constant, *nodes], "branch", [], files.arrays(("wide", [1, 2])))
        nodes = [helper.make_node("If", ["yes"], ["wide"], then_branch=branch, else_branch=branch)]
    model = files.model(
        [*nodes, helper.make_node("Add", ["x", "wide"], ["y"]), helper.make_node("Add", ["x", "h"], ["h_next"])],
        files.arrays(("x", [1, 2]), ("h", [1, 2])),
        files.arrays(("y", [1, 2]), ("h_next", [1, 2])),
        [files.weight("yes", np.array(True)), *([] if is_inside else [tensor])],
    )
    found = of_onnx(tmp_path, model, "state.h=h_next", "time=null", "batch=null")
    assert found == ({} if raw else {"bfloat-lists": {"y"}})


@pytest.mark.parametrize("is_inside", [False, True])
@pytest.mark.parametrize(
    ("operator", "version", "attributes", "told"),
    [
        ("Softmax", 10, {}, False),
        ("Softmax", 11, {}, True),
        ("Softmax", 12, {"axis": -2}, True),
        ("Softmax", 12, {"axis": 2}, False),
        ("Softmax", 12, {"axis": -1}, False),
        ("Softmax", 13, {"axis": 1}, False),
        ("LogSoftmax", 12, {}, False),
        ("ReduceL1", 12, {"axes": [1]}, False),
        ("ReduceL1", 13, {"axes": [1]}, True),
        ("ReduceLogSum", 17, {"axes": [-1]}, True),
        ("ReduceLogSumExp", 17, {"axes": [-1]}, True),
        ("ReduceLogSumExp", 17, {}, False),
        ("ReduceMax", 17, {"axes": [1]}, False),
    ],
)
def test_an_operator_that_a_later_version_changed_is_told(tmp_path, operator, version, attributes, told, is_inside):
    nodes = [helper.make_node("Tanh", ["x"], ["z"]), helper.make_node(operator, ["z"], ["y"], **attributes)]
    if is_inside:
        branch = helper.make_graph(nodes, "branch", [], files.arrays(("y", ["a", "b", "c"])))
        nodes = [helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=branch)]
    model = files.model(
        [*nodes, helper.make_node("Add", ["x", "h"], ["h_next"])],
        files.arrays(("x", [1, 2, 3]), ("h", [1, 2, 3])),
        files.arrays(("y", ["a", "b", "c"]), ("h_next", [1, 2, 3])),
        [files.weight("yes", np.array(True))],
        opset=version,
    )
    found = of_onnx(tmp_path, model, "state.h=h_next", "time=null", "batch=null")
    assert found == ({"older-operators": {"y"}} if told else {})


@pytest.mark.parametrize(
    ("shape", "slopes", "told"),
    [
        ([1, 3, 3], [3], True),
        ([1, "n", 3], [3], True),
        ([1, 4, 3], [3], False),
        ([1, 3, 3], [1], False),
        ([1, 3, 3], [1, 3], False),
        ([3, 3], [3], False),
    ],
)
def test_slopes_of_the_last_axis_that_may_be_those_of_axis_1_are_told(tmp_path, shape, slopes, told):
    model = files.model(
        [helper.make_node("PRelu", ["x", "slopes"], ["y"]), helper.make_node("Tanh", ["h"], ["h_next"])],
        files.arrays(("x", shape), ("h", [1, 2])),
        files.arrays(("y", shape), ("h_next", [1, 2])),
        [files.weight("slopes", np.ones(slopes, np.float32))],
    )
    sizes = ["sizes.n=3"] if "n" in shape else []
    found = of_onnx(tmp_path, model, "state.h=h_next", *sizes, "time=null", "batch=null")
    assert found == ({"slopes-of-one-axis": {"y"}} if told else {})


@pytest.mark.parametrize(("more", "told"), [({}, False), ({"strides": [1]}, False), ({"strides": [2]}, True)])
def test_a_strided_convolution_is_told(tmp_path, more, told):
    model = files.model(
        [helper.make_node("Conv", ["x", "w"], ["y"], **more), helper.make_node("Tanh", ["h"], ["h_next"])],
        files.arrays(("x", [1, 1, 1]), ("h", [1, 2])),
        files.arrays(("y", [1, 1, 1]), ("h_next", [1, 2])),
        [files.weight("w", np.ones((1, 1, 1), np.float32))],
    )
    found = of_onnx(tmp_path, model, "state.h=h_next", "time=null", "batch=null")
    assert found == ({"strided-convolution": {"y"}} if told else {})


@pytest.mark.parametrize(("depth", "told"), [(1, False), (2, False), (3, True), (4, True)])
def test_three_ifs_in_each_other_are_told(tmp_path, depth, told):
    inner = [helper.make_node("Neg", ["x"], ["r0"])]
    for place in range(depth):
        branch = helper.make_graph(inner, "branch", [], files.arrays((f"r{place}", [1, 2])))
        inner = [helper.make_node("If", ["yes"], [f"r{place + 1}"], then_branch=branch, else_branch=branch)]
    model = files.model(
        [*inner, helper.make_node("Add", [f"r{depth}", "h"], ["h_next"])],
        files.arrays(("x", [1, 2]), ("h", [1, 2])),
        files.arrays(("h_next", [1, 2])),
        [files.weight("yes", np.array(True))],
    )
    found = of_onnx(tmp_path, model, "state.h=h_next", "time=null", "batch=null")
    assert found == ({"nested-ifs": {"h_next", "h"}} if told else {})


def test_what_does_not_depend_on_it_is_not_spoiled(tmp_path):
    model = files.recurrent("RNN", clip=0.5)
    model.graph.node.append(helper.make_node("Tanh", ["g0"], ["gn"]))
    model.graph.input.extend(files.arrays(("g0", [1, 5])))
    model.graph.output.extend(files.arrays(("gn", [1, 5])))
    found = of_onnx(tmp_path, model, "state.g0=gn", "state.h0=hn")
    assert not {"g0", "gn"} & found["clipped-rnn"]


def test_a_ring_is_a_slice_of_a_state_with_new_values_behind_it(tmp_path):
    bounds = [files.weight(name, np.array([value])) for name, value in (("first", 1), ("last", 3), ("axis", 1))]
    nodes = [
        helper.make_node("Slice", ["ring", "first", "last", "axis"], ["rest"]),
        helper.make_node("Concat", ["rest", "x"], ["ring_next"], axis=1),
        helper.make_node("ReduceMax", ["ring_next"], ["y"], axes=[1], keepdims=1),
    ]
    given = files.arrays(("x", [1, 1, 2]), ("ring", [1, 3, 2]))
    model = files.model(nodes, given, files.arrays(("y", [1, 1, 2]), ("ring_next", [1, 3, 2])), bounds)
    assert of_onnx(tmp_path, model, "state.ring=ring_next") == {"ring": {"ring", "ring_next", "y"}}


def test_a_position_of_one_number_is_told_and_a_state_that_needs_x_is_not(tmp_path):
    found = of_pt2(tmp_path, Ring())
    assert found["one-element-state"] >= {"position", "count"}
    assert of_pt2(tmp_path, Streaming()) == {}


def test_two_caches_of_one_shape_are_told_and_caches_of_two_shapes_are_not(tmp_path):
    found = of_caches(tmp_path, 3)
    assert found["rows-in-equal-states"] == {"k", "v", "k_next", "v_next", "y"}
    assert found["one-element-state"] >= {"i", "k", "y"}
    assert not found["one-element-state"] & {"h", "h_next"}
    assert "rows-in-equal-states" not in of_caches(tmp_path, 2)


def quantised_chain(*between: str, biases: tuple[bool, bool] = (False, False)) -> lite.Writer:
    """x through a product, other operators and another product; h, which is added to itself. All in int8."""
    writer = lite.Writer()

    def value(name: str) -> int:
        number = writer.value(name, [1, 4])
        writer.graph.tensors[number].type = lite.schema.TensorType.INT8
        writer.graph.tensors[number].quantization = lite.scaled(0.1, 3)
        return number

    def product(number: int, name: str, bias: bool) -> int:
        made, weights = value(name), writer.whole(f"{name}/w", np.eye(4, dtype=np.int8), 0.1)
        of_bias = writer.whole(f"{name}/b", np.zeros(4, np.int32), 0.01) if bias else -1
        writer.operator("FULLY_CONNECTED", [number, weights, of_bias], made, "FullyConnectedOptions")
        return made

    x, h = value("x"), value("h")
    last = product(x, "first", biases[0])
    for kind in between:
        made = value(kind)
        shape = [writer.constant("shape", np.array([1, 4], np.int32))] if kind == "RESHAPE" else []
        writer.operator(kind, [last, *shape], made)
        last = made
    y, h_out = product(last, "second", biases[1]), value("h_out")
    writer.operator("ADD", [h, h], h_out, "AddOptions")
    writer.ends({"x": x, "h": h}, {"y": y, "h_out": h_out})
    return writer


def of_tflite(tmp_path, writer):
    return traits(lite.saved(writer, tmp_path / "network.tflite"), "state.h=h_out")


@pytest.mark.parametrize(("between", "biases"), [((), (False, False)), (("TANH",), (True, False)), ((), (False, True))])
def test_two_quantised_products_in_a_row_are_told_and_spoil_what_follows(tmp_path, between, biases):
    found = of_tflite(tmp_path, quantised_chain(*between, biases=biases))
    assert found == {"quantised-products": {"y"}}


@pytest.mark.parametrize(("between", "biases"), [(("RESHAPE",), (False, False)), (("TANH",), (True, True))])
def test_quantised_products_that_are_computed_apart_are_none(tmp_path, between, biases):
    assert of_tflite(tmp_path, quantised_chain(*between, biases=biases)) == {}


def test_quantised_arrays_of_16_bits_are_told(tmp_path):
    found = traits(lite.saved(lite.quantised(lite.elman(1), "int16"), tmp_path / "wide.tflite"), "state.h=h_out")
    assert found["two-byte-arrays"] == {"h", "h_out", "y"}
    assert "two-byte-arrays" not in traits(lite.saved(lite.quantised(lite.elman(1)), tmp_path / "cell.tflite"))


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize(("kept", "turned", "told"), [("s", "s", True), ("s", "other", False), ("other", "s", False)])
def test_a_convolution_of_a_transposed_value_that_is_an_output_is_told(tmp_path, operator, kept, turned, told):
    nodes = [
        helper.make_node("Add", ["x", "h"], ["s"]),
        helper.make_node("Tanh", ["s"], ["other"]),
        helper.make_node("Identity", [kept], ["h_next"]),
        helper.make_node("Transpose", [turned], ["t"], perm=[0, 2, 1]),
        helper.make_node(operator, ["t", "w"], ["y"]),
    ]
    ends = files.arrays(("x", [1, 4, 2]), ("h", [1, 4, 2])), files.arrays(("y", [1, 2, "n"]), ("h_next", [1, 4, 2]))
    model = files.model(nodes, *ends, [files.weight("w", np.ones((2, 2, 2), np.float32))])
    assert of_onnx(tmp_path, model, "state.h=h_next") == ({"convolution-of-an-output": {"y"}} if told else {})


@pytest.mark.parametrize("straight", ["x", "s"])
def test_a_convolution_without_a_transpose_or_of_an_input_is_not_told(tmp_path, straight):
    """The runtime copies the value there, or has no second place for it."""
    nodes = [
        helper.make_node("Add", ["x", "h"], ["s"]),
        helper.make_node("Identity", ["s"], ["h_next"]),
        helper.make_node("Conv", [straight, "w"], ["y"]),
    ]
    ends = files.arrays(("x", [1, 2, 4]), ("h", [1, 2, 4])), files.arrays(("y", [1, 2, "n"]), ("h_next", [1, 2, 4]))
    model = files.model(nodes, *ends, [files.weight("w", np.ones((2, 2, 2), np.float32))])
    assert of_onnx(tmp_path, model, "state.h=h_next") == {}


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"])
def test_a_tflite_convolution_of_an_output_is_told(tmp_path, operator, told):
    """Frontends put a Transpose before each: TFLite has the channels last."""
    writer = lite.Writer()
    x, y, s, other = (writer.value(name, [1, 1, 4, 2]) for name in ("x", "y", "s", "other"))
    h, held, after = (
        writer.value(name, shape) for name, shape in (("h", [1, 8]), ("held", [1, 1, 4, 2]), ("n", [1, 8]))
    )
    inside, outside, size = (
        writer.constant(name, np.array(shape, np.int32))
        for name, shape in (("i", [1, 1, 4, 2]), ("o", [1, 8]), ("size", [1, 1, 4, 2]))
    )
    writer.operator("RESHAPE", [h, inside], held, "ReshapeOptions")
    writer.operator("ADD", [x, held], s, "AddOptions")
    writer.operator("TANH", [s], other)
    writer.operator("RESHAPE", [s if told else other, outside], after, "ReshapeOptions")
    weights = writer.constant("w", np.ones((1 if operator.startswith("DEPTH") else 2, 1, 1, 2), np.float32))
    bias = writer.constant("b", np.zeros(2, np.float32))
    takes = [size, weights, s] if operator == "TRANSPOSE_CONV" else [s, weights, bias]
    kind = {"CONV_2D": "Conv2DOptions", "TRANSPOSE_CONV": "TransposeConvOptions"}.get(
        operator, "DepthwiseConv2DOptions"
    )
    more = {} if operator == "TRANSPOSE_CONV" else {"dilationWFactor": 1, "dilationHFactor": 1}
    writer.operator(operator, takes, y, kind, strideH=1, strideW=1, **more)
    writer.ends({"x": x, "h": h}, {"y": y, "h_out": after})
    assert of_tflite(tmp_path, writer) == ({"convolution-of-an-output": {"y"}} if told else {})


@pytest.mark.parametrize(("kind", "told"), [("uint16", True), ("int16", True), ("uint8", False)])
def test_a_quantizelinear_of_16_bits_is_told(tmp_path, kind, told):
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
        helper.make_node("Tanh", ["h"], ["h_next"]),
    ]
    weights = [files.weight("scale", np.float32(0.1)), files.weight("zero", np.array(0, kind))]
    ends = files.arrays(("x", [1, 4]), ("h", [1, 3])), files.arrays(("y", [1, 4]), ("h_next", [1, 3]))
    found = of_onnx(tmp_path, files.model(nodes, *ends, weights, opset=21, ir=10), "state.h=h_next")
    assert found == ({"two-byte-arrays": {"y"}} if told else {})


def of_quantised_concat(tmp_path, between=(), behind=(), last=("Conv",), first="Concat", kind="int8"):
    """A Concat of x and a state, operators, a pair of quantisers, operators, and a convolution or another pair."""
    nodes = [helper.make_node(first, ["h", "x"], ["v0"], **({"axis": 2} if first == "Concat" else {}))]
    for operator in (*between, *QUANTISERS, *behind, *last):
        own = {"Conv": ["w"], "QuantizeLinear": SCALED, "DequantizeLinear": SCALED}.get(operator, [])
        nodes.append(helper.make_node(operator, [nodes[-1].output[0], *own], [f"v{len(nodes)}"]))
    nodes[-1].output[0] = "y"
    unpacked, own = ("DequantizeLinear", SCALED) if kind == "int8" else ("Identity", [])
    nodes = [helper.make_node(unpacked, ["bytes", *own], ["w"]), *nodes, helper.make_node("Tanh", ["h"], ["h_next"])]
    values = {"scale": np.float32(0.1), "zero": np.int8(3), "bytes": np.ones((2, 2, 1), kind)}
    width = 6 if first == "Concat" else 3
    ends = files.arrays(("x", [1, 2, 3]), ("h", [1, 2, 3])), files.arrays(("y", [1, 2, width]), ("h_next", [1, 2, 3]))
    return of_onnx(tmp_path, files.model(nodes, *ends, [*map(files.weight, values, values.values())]), "state.h=h_next")


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({}, True),
        ({"between": ["Relu"], "behind": ["Relu", "Identity"]}, True),
        ({"first": "Add"}, False),
        ({"between": ["Tanh"]}, False),
        ({"behind": ["Tanh"]}, False),
        ({"kind": "float32"}, False),
    ],
)
def test_a_convolution_of_a_quantised_concat_is_told(tmp_path, parts, told):
    assert of_quantised_concat(tmp_path, **parts) == ({"quantised-concat": {"y"}} if told else {})


@pytest.mark.parametrize(
    ("parts", "told"),
    [({}, True), ({"between": ["Relu"]}, True), ({"behind": ["Tanh"]}, False), ({"first": "Add"}, False)],
)
def test_a_concat_that_is_quantised_twice_is_told(tmp_path, parts, told):
    found = of_quantised_concat(tmp_path, last=QUANTISERS, **parts)
    assert found == ({"concat-quantised-twice": {"y"}} if told else {})


@pytest.mark.parametrize(("state", "quantised", "told"), [("h", True, True), ("h", False, False), ("", True, False)])
def test_states_of_a_quantised_file_are_told(tmp_path, state, quantised, told):
    path = files.saved(files.quantised_cell() if quantised else files.recurrent("GRU"), tmp_path / "network.onnx")
    found = describe(path)
    answers = [] if state else ["state={}", "constants.h=0"]
    traits = network_of(path, answered(section_of(found, path.name), found, answers), found).traits
    assert (OF_QUANTISED_FILES in traits) is told
    assert not told or {*traits[OF_QUANTISED_FILES]} == {"y", "h", "h_out"}


@pytest.mark.parametrize(("largest", "told"), [(63, False), (127, True)])
def test_weights_of_8_bits_in_quantised_products_are_told(tmp_path, largest, told):
    assert of_onnx(tmp_path, files.quantised_cell(largest_byte=largest)) == (
        {"eight-bit-products": {"y", "h", "h_out"}} if told else {}
    )


@pytest.mark.parametrize(("largest", "told"), [(64, False), (-65, True)])
def test_weights_of_8_bits_in_a_tflite_product_are_told(tmp_path, largest, told):
    writer = quantised_chain("RESHAPE")
    writer.model.buffers[-1].data = np.array([*np.zeros(15), largest], np.int8).view(np.uint8)
    assert of_tflite(tmp_path, writer) == ({"eight-bit-products": {"y"}} if told else {})


def test_every_trait_has_an_entry_and_a_line_in_the_docs():
    checkout = Path(__file__).parents[2]
    entries, docs = (checkout / file for file in ("cases/expectations.yaml", "docs/upstream/README.md"))
    assert {*re.findall(r"contains: (\S+)", entries.read_text())} == TRAITS.keys()
    assert TRAITS.keys() <= {*re.findall(r"^\| `([a-z-]+)` \|", docs.read_text(), re.MULTILINE)}


def test_a_plan_of_an_older_run_has_files_without_traits(tmp_path):
    path = files.saved(files.recurrent("RNN", clip=0.5), tmp_path / "network.onnx")
    found = describe(path)
    network = network_of(path, section_of(replace(found, features=()), path.name), replace(found, features=()))
    assert network.traits == {}


@pytest.mark.parametrize(
    ("parts", "kind", "time_major", "told"),
    [
        (("merged",), "float32", False, True),
        ((), "float32", False, False),
        (("merged",), "float32", True, False),
        (("merged",), "weights", False, False),
    ],
)
def test_directions_in_one_array_are_told_where_several_rows_come_first(tmp_path, parts, kind, time_major, told):
    """With int8 weights, the file has one row."""
    writer = recurrent.lstm("BIDIRECTIONAL_SEQUENCE_LSTM", kind, parts, time_major=time_major)
    found = traits(lite.saved(writer, tmp_path / "network.tflite"))
    states = {f"{side}_{state}" for side in ("forward", "backward") for state in "hc"}
    assert found == ({"merged-directions": {"y0", *states, *(f"{state}_next" for state in states)}} if told else {})


@pytest.mark.parametrize(
    ("kind", "auxiliary", "time_major", "told"),
    [
        ("weights", "", True, True),
        ("weights", "", False, False),
        ("float32", "", True, False),
        ("float32", "with weights", True, True),
        ("float32", "with weights", False, False),
        ("weights", "with weights", False, True),
        ("float32", "alone", False, True),
        ("float32", "alone", True, False),
    ],
)
def test_an_rnn_of_both_directions_is_told_in_the_forms_that_are_wrong(tmp_path, kind, auxiliary, time_major, told):
    writer = recurrent.rnn("BIDIRECTIONAL_SEQUENCE_RNN", kind, auxiliary=auxiliary, time_major=time_major)
    found = traits(lite.saved(writer, tmp_path / "network.tflite"))
    states = {f"{side}_h{after}" for side in ("forward", "backward") for after in ("", "_next")}
    assert found == ({"rnn-directions": {"y0", "y1", *states}} if told else {})


@pytest.mark.parametrize("kind", ["TANH", "NONE"])
@pytest.mark.parametrize("operator", ["LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM"])
def test_an_lstm_without_an_activation_is_told(tmp_path, operator, kind):
    writer = with_activation(recurrent.lstm(operator), kind)
    found = traits(lite.saved(writer, tmp_path / "lstm.tflite"))
    both = operator.startswith("BI")
    sides, outputs = (("forward", "backward"), {"y0", "y1"}) if both else (("lstm",), {"y0"})
    states = {f"{side}_{name}{after}" for side in sides for name in "hc" for after in ("", "_next")}
    assert found == ({"lstm-activation": {*outputs, *states}} if kind == "NONE" else {})


@pytest.mark.parametrize("kind", ["TANH", "RELU", "NONE"])
def test_an_lstm_of_whole_numbers_is_told_with_another_activation_than_tanh(tmp_path, kind):
    found = traits(lite.saved(with_activation(lite.lstm("int8"), kind), tmp_path / "lstm.tflite"))
    assert ("lstm-activation" in found) is (kind != "TANH")


def with_activation(writer, kind: str):
    chosen = getattr(recurrent.schema.ActivationFunctionType, kind)
    writer.graph.operators[0].builtinOptions.fusedActivationFunction = chosen
    return writer


def test_the_basic_kernel_has_a_tanh_whatever_its_file_says(tmp_path):
    writer = with_activation(recurrent.basic_lstm(), "NONE")
    assert traits(lite.saved(writer, tmp_path / "basic.tflite")) == {}


@pytest.mark.parametrize(
    ("kind", "parts", "told"),
    [("weights", ["diagonal"], True), ("float32", ["diagonal"], False), ("weights", [], False)],
)
def test_diagonals_of_whole_numbers_are_told(tmp_path, kind, parts, told):
    found = traits(lite.saved(recurrent.lstm("UNIDIRECTIONAL_SEQUENCE_LSTM", kind, parts), tmp_path / "lstm.tflite"))
    states = {f"lstm_{name}{after}" for name in "hc" for after in ("", "_next")}
    assert found == ({"whole-diagonals": {"y0", *states}} if told else {})
