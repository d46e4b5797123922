"""The oracle gives what ONNX Runtime gives, within float32's rounding, and refuses what it would compute wrongly."""

from __future__ import annotations

import numpy as np
import onnx_files as files
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from rnnbench.model_files import ModelFileError, oracle_of
from rnnbench.model_files.formats.onnx.other_cells import activations_of
from rnnbench.rnn import Arithmetic, RandomRounding

onnxruntime = pytest.importorskip("onnxruntime")
SIZES = {"T": 5, "B": 2}


def draw(session, seed=0):
    """Inputs of a file, with the sizes that it leaves open."""
    generator = np.random.default_rng(seed)
    shapes = {one.name: [SIZES.get(dim, dim) for dim in one.shape] for one in session.get_inputs()}
    return {name: generator.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def run_both(tmp_path, proto, feed=None):
    """What ONNX Runtime gives and what the oracle gives, by name."""
    path = files.saved(proto, tmp_path / "network.onnx")
    options = onnxruntime.SessionOptions()
    # Optimised, it computes a product with quantised weights from quantised inputs.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options)
    given = draw(session) if feed is None else feed
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, given), strict=True)), oracle_of(path).run(given)


def assert_same(theirs, ours):
    assert theirs.keys() == ours.keys()
    for name, array in theirs.items():
        assert ours[name].dtype == np.float64
        np.testing.assert_allclose(ours[name], array, rtol=2e-5, atol=2e-6, err_msg=name)


VARIANTS = {
    "plain": {},
    "reverse": {"direction": "reverse"},
    "bidirectional": {"direction": "bidirectional"},
    "clipped": {"clip": 0.5},
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
def test_recurrent_operators_agree_with_onnxruntime(tmp_path, operator, variant):
    assert_same(*run_both(tmp_path, files.recurrent(operator, **VARIANTS[variant])))


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("GRU", {"linear_before_reset": 1}),
        ("GRU", {"activations": ["HardSigmoid", "Relu"]}),
        ("LSTM", {"activations": ["HardSigmoid", "Tanh", "Tanh"]}),
        ("LSTM", {"activations": ["Sigmoid", "Relu", "Relu"]}),
        ("LSTM", {"activations": ["Sigmoid", "Tanh", "Tanh"] * 2, "direction": "bidirectional"}),
        ("RNN", {"activations": ["Relu"]}),
    ],
)
def test_variants_agree_with_onnxruntime(tmp_path, operator, attributes):
    assert_same(*run_both(tmp_path, files.recurrent(operator, **attributes)))


OTHER_FORMS = {
    "joint gates": ("LSTM", {"input_forget": 1}),
    "an activation for each gate": ("LSTM", {"activations": ["HardSigmoid", "Softsign", "Elu"]}),
    "a hard sigmoid of another slope": (
        "LSTM",
        {"activations": ["HardSigmoid", "Tanh", "Tanh"], "activation_alpha": [0.3]},
    ),
    "values of activations": (
        "LSTM",
        {
            "activations": ["HardSigmoid", "ScaledTanh", "LeakyRelu"],
            "activation_alpha": [0.3, 1.7, 0.1],
            "activation_beta": [0.4, 0.6],
        },
    ),
    "others for each direction": (
        "LSTM",
        {
            "activations": ["Sigmoid", "Tanh", "Relu", "HardSigmoid", "Affine", "Tanh"],
            "activation_alpha": [0.3, 0.7],
            "activation_beta": [0.4, 0.1],
            "direction": "bidirectional",
        },
    ),
    "a clip": ("LSTM", {"input_forget": 1, "clip": 0.3}),
    "gru": ("GRU", {"activations": ["Sigmoid", "Softplus"]}),
    "gru, reset after": (
        "GRU",
        {"activations": ["HardSigmoid", "ThresholdedRelu"], "activation_alpha": [0.2, 0.1], "linear_before_reset": 1},
    ),
    "rnn backward": ("RNN", {"activations": ["Elu"], "activation_alpha": [0.7], "direction": "reverse"}),
}
"""Forms that a cell of the suite does not have, by what they have."""


@pytest.mark.parametrize("name", OTHER_FORMS)
@pytest.mark.parametrize("lengths", [False, True])
def test_other_forms_agree_with_onnxruntime(tmp_path, name, lengths):
    operator, attributes = OTHER_FORMS[name]
    proto = files.recurrent(operator, **attributes)
    if lengths:
        with_lengths(proto)
    assert_same(*run_both(tmp_path, proto))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_peepholes_agree_with_onnxruntime(tmp_path, direction):
    proto = files.recurrent("LSTM", direction=direction)
    proto.graph.node[0].input.append("P")
    directions = 2 if direction == "bidirectional" else 1
    values = np.random.default_rng(1).standard_normal((directions, 12)).astype(np.float32)
    proto.graph.initializer.append(files.weight("P", values))
    assert_same(*run_both(tmp_path, proto))


def with_lengths(proto):
    proto.graph.node[0].input[4] = "lengths"
    proto.graph.initializer.append(files.weight("lengths", np.array([5, 3], np.int32)))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_lengths_of_sequences_agree_with_onnxruntime(tmp_path, direction):
    proto = files.recurrent("LSTM", direction=direction)
    with_lengths(proto)
    assert_same(*run_both(tmp_path, proto))


def test_a_batch_first_operator_is_the_other_one_transposed(tmp_path):
    """ONNX Runtime's CPU kernels have no layout 1."""
    rows = files.recurrent_weights("GRU", 3, 4)
    made = {}
    for layout in (0, 1):
        node = helper.make_node("GRU", ["x", "W", "R", "B"], ["y", "hn"], hidden_size=4, layout=layout)
        ends = files.arrays(("y", (None,) * 4), ("hn", (None,) * 3))
        path = files.saved(
            files.model([node], files.arrays(("x", (None, None, 3))), ends, rows), tmp_path / f"{layout}.onnx"
        )
        made[layout] = oracle_of(path)
    x = np.random.default_rng(0).standard_normal((5, 2, 3))
    time_first, batch_first = made[0].run({"x": x}), made[1].run({"x": x.swapaxes(0, 1)})
    np.testing.assert_array_equal(batch_first["y"], time_first["y"].transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(batch_first["hn"], time_first["hn"].swapaxes(0, 1))


def test_a_layout_that_onnx_does_not_have_is_refused(tmp_path):
    proto = files.recurrent("LSTM")
    proto.graph.node[0].attribute.append(helper.make_attribute("layout", 7))
    with pytest.raises(ModelFileError, match="LSTM has layout = 7; it is 0"):
        oracle_of(files.saved(proto, tmp_path / "network.onnx"))


@pytest.mark.parametrize(("hidden", "rows"), [(7, 16), (4, 24)])
def test_a_hidden_size_that_is_not_that_of_the_weights_is_refused(tmp_path, hidden, rows):
    """As exporters write an LSTM with a projection, which ONNX does not have."""
    proto = files.recurrent("LSTM")
    next(entry for entry in proto.graph.node[0].attribute if entry.name == "hidden_size").i = hidden
    for tensor, values in zip(proto.graph.initializer, ((1, rows, 3), (1, rows, 4), (1, 2 * rows)), strict=False):
        tensor.CopyFrom(files.weight(tensor.name, np.zeros(values, np.float32)))
    oracle = oracle_of(files.saved(proto, tmp_path / "lstm.onnx"))
    with pytest.raises(ModelFileError, match=rf"hidden_size of {hidden}, .* R is \[1, {rows}, 4\]; ONNX has no"):
        oracle.run({"x": np.zeros((1, 1, 3)), "h0": np.zeros((1, 1, 4)), "c0": np.zeros((1, 1, 4))})


@pytest.mark.parametrize("peepholes", [False, True])
def test_a_state_of_another_width_than_the_weights_is_refused(tmp_path, peepholes):
    """As torch's exporter writes an LSTM with a projection. A width of 1 would fit each other one."""
    proto = files.recurrent("LSTM", input_forget=int(peepholes))
    proto.graph.input[2].type.tensor_type.shape.dim[2].dim_value = 1
    oracle = oracle_of(files.saved(proto, tmp_path / "network.onnx"))
    given = {"x": np.zeros((5, 2, 3)), "h0": np.zeros((1, 2, 4)), "c0": np.zeros((1, 2, 1))}
    said = r"initial c of the shape \[1, 2, 1\]; x and the weights call for \[1, 2, 4\]; ONNX has no projection"
    with pytest.raises(ModelFileError, match=said):
        oracle.run(given)
    with pytest.raises(ModelFileError, match=r"initial h of the shape \[1, 1, 4\]; .* call for \[1, 2, 4\]$"):
        oracle.run(given | {"h0": np.zeros((1, 1, 4))})


@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_weights_that_do_not_fit_each_other_are_told_as_a_fault_of_the_file(tmp_path, operator):
    proto = files.recurrent(operator)
    proto.graph.node[0].input[1] = "joined"
    proto.graph.node.insert(0, helper.make_node("Concat", ["W", "B"], ["joined"], axis=0))
    oracle = oracle_of(files.saved(proto, tmp_path / "network.onnx"))
    given = {"x": np.zeros((5, 2, 3)), "h0": np.zeros((1, 2, 4)), "c0": np.zeros((1, 2, 4))}
    with pytest.raises(ModelFileError, match="no call of it is right: export the network again") as told:
        oracle.run({name: given[name] for name in oracle.inputs})
    assert ("proj_size" in str(told.value)) is (operator == "LSTM")


def test_an_output_without_a_name_is_no_later_input(tmp_path):
    """The evaluator keeps what is left out under the empty name."""
    proto = files.recurrent("LSTM")
    proto.graph.node[0].output[1] = ""
    del proto.graph.output[1]
    second = helper.make_node("LSTM", ["moved3", "W2", "R", "", "", "", ""], ["Y2"], hidden_size=4)
    proto.graph.node.extend([helper.make_node("Identity", ["y"], ["moved3"]), second])
    proto.graph.initializer.append(files.weight("W2", np.full((1, 16, 4), 0.1, np.float32)))
    proto.graph.output.extend(files.arrays(("Y2", ("T", 1, "B", 4))))
    assert_same(*run_both(tmp_path, proto))


def feed_forward(nodes, weights=(), inputs=("x",), shape=("B", 6), outputs=("y",)):
    rank = [None] * 2
    return files.model(
        nodes, files.arrays(*((name, shape) for name in inputs)), files.arrays(*((o, rank) for o in outputs)), weights
    )


GENERATOR = np.random.default_rng(7)
MATRIX = files.weight("w", GENERATOR.standard_normal((6, 6)).astype(np.float32))
NODES = {
    "constants": [
        helper.make_node("Constant", [], ["a"], value_float=0.3),
        helper.make_node("Mul", ["x", "a"], ["m"]),
        helper.make_node("Constant", [], ["f"], value_floats=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
        helper.make_node("Add", ["m", "f"], ["y"]),
    ],
    "casts": [
        helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64),
        helper.make_node("Cast", ["i"], ["j"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "j"], ["y"]),
    ],
    "zeros": [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["z"]),
        helper.make_node("Add", ["x", "z"], ["y"]),
    ],
    "gemm": [helper.make_node("Gemm", ["x", "w"], ["y"], alpha=0.5, transB=1)],
    "softmax": [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Softmax", ["m"], ["y"])],
    "einsum": [helper.make_node("Einsum", ["x", "w"], ["y"], equation="bi,ij->bj")],
    "activations": [
        helper.make_node(operator, [before], [after])
        for operator, before, after in [("Softplus", "x", "p"), ("LeakyRelu", "p", "l"), ("HardSwish", "l", "y")]
    ],
}


@pytest.mark.parametrize("name", NODES)
def test_other_operators_agree_with_onnxruntime(tmp_path, name):
    assert_same(*run_both(tmp_path, feed_forward(NODES[name], [MATRIX])))


def test_inner_graphs_are_in_float64_too(tmp_path):
    def branch(name, factor):
        nodes = [
            helper.make_node("Constant", [], ["f"], value_float=factor),
            helper.make_node("MatMul", ["x", "w"], ["m"]),
            helper.make_node("Mul", ["m", "f"], ["out"]),
        ]
        return helper.make_graph(nodes, name, [], files.arrays(("out", [None, None])))

    nodes = [
        helper.make_node("Constant", [], ["yes"], value=files.weight("", np.array(True))),
        helper.make_node("If", ["yes"], ["y"], then_branch=branch("then", 0.1), else_branch=branch("else", 7.0)),
    ]
    assert_same(*run_both(tmp_path, feed_forward(nodes, [MATRIX])))


def test_functions_of_the_file_are_in_float64_too(tmp_path):
    body = [
        helper.make_node("Constant", [], ["f"], value_float=0.1),
        helper.make_node("Mul", ["a", "f"], ["b"]),
    ]
    function = helper.make_function("own", "scale", ["a"], ["b"], body, [helper.make_opsetid("", files.OPSET)])
    proto = files.model(
        [helper.make_node("scale", ["x"], ["y"], domain="own")],
        files.arrays(("x", ("B", 6))),
        files.arrays(("y", ("B", 6))),
        opsets=[helper.make_opsetid("own", 1)],
        functions=[function],
    )
    assert_same(*run_both(tmp_path, proto))


@pytest.mark.parametrize("given", [{}, {"slope": 0.2}])
def test_a_call_of_a_function_may_leave_out_attributes_that_have_a_default(tmp_path, given):
    leaky = helper.make_node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.add(name="alpha", ref_attr_name="slope", type=AttributeProto.FLOAT)
    own, opset = helper.make_opsetid("own", 1), helper.make_opsetid("", files.OPSET)
    default = [helper.make_attribute("slope", 0.7)]
    function = helper.make_function("own", "f", ["a"], ["b"], [leaky], [opset], attribute_protos=default)
    ends = files.arrays(("x", ("B", 6))), files.arrays(("y", ("B", 6)))
    calls = [helper.make_node("f", ["x"], ["y"], domain="own", **given)]
    path = files.saved(files.model(calls, *ends, opsets=[own], functions=[function]), tmp_path / "f.onnx")
    x = np.full((1, 6), -1.0)
    assert oracle_of(path).run({"x": x})["y"] == pytest.approx(x * given.get("slope", 0.7))


def test_an_exported_network_agrees_with_onnxruntime_and_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    network = torch.nn.LSTM(3, 4, 2, bidirectional=True)
    given = torch.randn(5, 2, 3), (torch.randn(4, 2, 4), torch.randn(4, 2, 4))
    path = files.exported(network, given, tmp_path / "network.onnx", ["x", "h0", "c0"], ["y", "hn", "cn"])
    feed = {"x": given[0].numpy(), "h0": given[1][0].numpy(), "c0": given[1][1].numpy()}
    ours = oracle_of(path).run(feed)
    y, (h, c) = network.double()(given[0].double(), tuple(state.double() for state in given[1]))
    for name, tensor in {"y": y, "hn": h, "cn": c}.items():
        np.testing.assert_allclose(ours[name], tensor.detach().numpy(), rtol=1e-11, atol=1e-12)


def test_weights_beside_the_file_are_read(tmp_path):
    import onnx

    proto = files.recurrent("LSTM")
    plain = oracle_of(files.saved(proto, tmp_path / "plain.onnx"))
    path = tmp_path / "beside.onnx"
    onnx.save(proto, str(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    feed = {"x": np.ones((2, 1, 3)), "h0": np.zeros((1, 1, 4)), "c0": np.zeros((1, 1, 4))}
    np.testing.assert_array_equal(oracle_of(path).run(feed)["y"], plain.run(feed)["y"])


def test_the_values_of_a_hard_sigmoid_by_the_standard_may_be_written_down(tmp_path):
    hard = {"activations": ["HardSigmoid", "Tanh", "Tanh"]}
    values = {"activation_alpha": [0.2], "activation_beta": [0.5]}
    plain, told = (
        oracle_of(files.saved(files.recurrent("LSTM", **hard, **more), tmp_path / f"{len(more)}.onnx"))
        for more in ({}, values)
    )
    given = {"x": np.ones((2, 1, 3)), "h0": np.ones((1, 1, 4)), "c0": np.ones((1, 1, 4))}
    assert np.array_equal(plain.run(given)["y"], told.run(given)["y"])


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"activations": ["Sine", "Tanh", "Tanh"]}, "LSTM with the activations sine, tanh, tanh: 3 for each of 1"),
        ({"activations": ["Sigmoid", "Tanh"]}, "LSTM with the activations sigmoid, tanh: 3 for each of 1"),
        ({"activations": ["Sigmoid", "ScaledTanh", "Tanh"], "activation_alpha": [1.7]}, "scaledtanh without"),
    ],
)
def test_what_would_be_wrong_is_refused(tmp_path, attributes, says):
    path = files.saved(files.recurrent("LSTM", **attributes), tmp_path / "network.onnx")
    with pytest.raises(ModelFileError, match=says):
        oracle_of(path)


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ([helper.make_node("RandomNormalLike", ["x"], ["y"])], "draws random numbers"),
        ([helper.make_node("ConvInteger", ["x", "x"], ["y"])], "ConvInteger of something else"),
        ([helper.make_node("Own", ["x"], ["y"], domain="com.example")], "com.example.Own is no operator of ONNX"),
    ],
)
def test_operators_without_a_float64_result_are_refused(tmp_path, nodes, says):
    ends = files.arrays(("y", ("B", 6)))
    opsets = [helper.make_opsetid("com.example", 1)]
    path = files.saved(
        files.model(nodes, files.arrays(("x", ("B", 6))), ends, opsets=opsets), tmp_path / "network.onnx"
    )
    with pytest.raises(ModelFileError, match=says):
        oracle_of(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"z": np.zeros(1)}, "no input 'z'"),
        ({"x": np.zeros((2, 3))}, r"x: expected the shape \['any', 'any', 3\], got \[2, 3\]"),
        ({"x": np.zeros((2, 1, 4))}, "x: expected the shape"),
        ({"x": np.zeros((2, 1, 3), complex)}, "x: expected float64"),
    ],
)
def test_a_wrong_input_is_named(tmp_path, change, says):
    oracle = oracle_of(files.saved(files.recurrent("RNN"), tmp_path / "network.onnx"))
    feed = {"x": np.zeros((2, 1, 3)), "h0": np.zeros((1, 1, 4))}
    with pytest.raises(ValueError, match=says):
        oracle.run({**feed, **change})
    with pytest.raises(ValueError, match="no value for the inputs"):
        oracle.run({"x": feed["x"]})


@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
def test_float32_and_random_rounding_are_as_far_off_as_onnxruntime(tmp_path, operator):
    """The spread of random roundings is what a tolerance is made of: it covers what a float32 runtime does."""
    path = files.saved(files.recurrent(operator, inputs=32, hidden=64), tmp_path / "network.onnx")
    session, exact = onnxruntime.InferenceSession(str(path)), oracle_of(path)
    feed = draw(session)
    wanted = exact.run(feed)
    narrow, noisy = exact.in_arithmetic(Arithmetic("float32")), exact.in_arithmetic(RandomRounding("float32", 0, 0))
    runs = [noisy.run(feed) for _ in range(4)]
    for name, theirs in zip([output.name for output in session.get_outputs()], session.run(None, feed), strict=True):
        spread = max(np.abs(run[name] - wanted[name]).max() for run in runs)
        in_float32 = narrow.run(feed)[name]
        assert in_float32.dtype == np.float32
        assert 0 < np.abs(in_float32 - wanted[name]).max() < 8 * spread
        assert np.abs(theirs - wanted[name]).max() < 8 * spread
        assert spread < 1e-4


def test_a_file_is_prepared_once_for_arithmetics_alike(tmp_path):
    oracle = oracle_of(files.saved(feed_forward(NODES["gemm"], [MATRIX]), tmp_path / "network.onnx"))
    plain = [oracle.in_arithmetic(Arithmetic(dtype)) for dtype in ("float64", "float32", "bfloat16", "int8_static")]
    assert len(set(plain)) == 4
    assert oracle.in_arithmetic(Arithmetic("float32")) is plain[1]
    x = {"x": np.ones((1, 6))}
    first, again = (oracle.in_arithmetic(RandomRounding("float32", 0, 0)).run(x)["y"] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert np.all(first != oracle.run(x)["y"])
    permuted = [oracle.in_arithmetic(Arithmetic("float32", seed)) for seed in (1, 1)]
    assert len({*permuted, *plain}) == 6
    np.testing.assert_array_equal(plain[0].run(x)["y"], oracle.run(x)["y"])


@pytest.mark.parametrize("name", ["gemm", "einsum", "softmax"])
def test_sums_of_products_have_the_rounding_of_their_partial_sums(tmp_path, name):
    path = files.saved(feed_forward(NODES[name], [MATRIX]), tmp_path / "network.onnx")
    exact, x = oracle_of(path), {"x": np.random.default_rng(3).standard_normal((4, 6)) * 100}
    noisy = exact.in_arithmetic(RandomRounding("float32", 0, 0))
    wanted = exact.run(x)["y"]
    spread = max(np.abs(noisy.run(x)["y"] - wanted).max() for _ in range(8))
    error = np.abs(exact.in_arithmetic(Arithmetic("float32")).run(x)["y"] - wanted).max()
    assert error / 8 < spread < max(100 * error, 1e-6)


def test_a_narrow_dtype_rounds_after_each_node(tmp_path):
    path = files.saved(feed_forward(NODES["gemm"], [MATRIX]), tmp_path / "network.onnx")
    y = oracle_of(path).in_arithmetic(Arithmetic("bfloat16")).run({"x": np.ones((1, 6))})["y"]
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y.view(np.uint32) & 0xFFFF, 0)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_what_a_file_computes_in_a_narrower_type_is_rounded_so(tmp_path, kind):
    """The exact result stays exact. Random roundings, and those of one rounding, are as large as the type's."""
    proto = files.model(
        [
            helper.make_node("Cast", ["x"], ["narrow"], to=getattr(TensorProto, kind.upper())),
            helper.make_node("Tanh", ["narrow"], ["t"]),
            helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT),
        ],
        files.arrays(("x", (1, 64))),
        files.arrays(("y", (1, 64))),
    )
    oracle = oracle_of(files.saved(proto, tmp_path / "narrow.onnx"))
    x = np.random.default_rng(0).standard_normal((1, 64))
    np.testing.assert_allclose(oracle.run({"x": x})["y"], np.tanh(x), rtol=1e-15)
    unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8}[kind]
    for arithmetic in (RandomRounding("float32", 0, 0), Arithmetic("float32", 0)):
        error = np.abs(oracle.in_arithmetic(arithmetic).run({"x": x})["y"] - np.tanh(x)).max()
        assert unit / 8 < error < 2 * unit


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("condition", ["", "always"])
def test_a_loop_agrees_with_onnxruntime(tmp_path, condition, steps):
    """A condition may be left out, and scanned outputs lie along a new axis, in front of their own."""
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["xt"], axis=0),
        helper.make_node("Add", ["xt", "s"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["s_out"]),
        helper.make_node("Identity", ["s_out"], ["yt"]),
        helper.make_node("Identity", ["going"], ["goes_on"]),
    ]
    ins = files.arrays(("i", files.INT64, ()), ("going", TensorProto.BOOL, ()), ("s", (2, 3)))
    outs = files.arrays(("goes_on", TensorProto.BOOL, ()), ("s_out", (2, 3)), ("yt", (2, 3)))
    body = helper.make_graph(nodes, "body", ins, outs)
    whole = [
        helper.make_node("Loop", ["steps", condition, "s0"], ["sn", "y3"], body=body),
        helper.make_node("Transpose", ["y3"], ["y"], perm=[1, 0, 2]),
    ]
    weights = [numpy_helper.from_array(np.array(steps), "steps"), numpy_helper.from_array(np.array(True), "always")]
    arrays = files.arrays(("x", (4, 2, 3)), ("s0", (2, 3))), files.arrays(("y", (2, None, 3)), ("sn", (2, 3)))
    assert_same(*run_both(tmp_path, files.model(whole, *arrays, weights)))


def test_a_loop_without_an_end_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("rnnbench.model_files.limits.PASSES", 100)
    nodes = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in ("going", "s")]
    ins = files.arrays(("i", files.INT64, ()), ("going", TensorProto.BOOL, ()), ("s", (2,)))
    outs = files.arrays(("going_out", TensorProto.BOOL, ()), ("s_out", (2,)))
    loop = helper.make_node("Loop", ["", "always", "x"], ["y"], body=helper.make_graph(nodes, "body", ins, outs))
    weights = [numpy_helper.from_array(np.array(True), "always")]
    path = files.saved(
        files.model([loop], files.arrays(("x", (2,))), files.arrays(("y", (2,))), weights), tmp_path / "x.onnx"
    )
    with pytest.raises(ModelFileError, match="a Loop makes more than 100 passes in one call"):
        oracle_of(path).run({"x": np.ones(2)})


def test_the_passes_of_loops_inside_a_loop_count_too(tmp_path, monkeypatch):
    def loop(given, made, name, inside=()):
        """Ten passes of a body whose values have names that begin with `name`."""
        i, going, going_out, before, after = (f"{name}_{part}" for part in ("i", "going", "going_out", "s", "s_out"))
        nodes = list(inside) or [helper.make_node("Identity", [before], [after])]
        ins = files.arrays((i, files.INT64, ()), (going, TensorProto.BOOL, ()), (before, (2,)))
        outs = files.arrays((going_out, TensorProto.BOOL, ()), (after, (2,)))
        nodes.append(helper.make_node("Identity", [going], [going_out]))
        return helper.make_node("Loop", ["ten", "", given], [made], body=helper.make_graph(nodes, name, ins, outs))

    nodes = [loop("x", "y", "outer", [loop("outer_s", "outer_s_out", "inner")])]
    weights = [numpy_helper.from_array(np.array(10), "ten")]
    model = files.model(nodes, files.arrays(("x", (2,))), files.arrays(("y", (2,))), weights)
    oracle = oracle_of(files.saved(model, tmp_path / "x.onnx"))
    monkeypatch.setattr("rnnbench.model_files.limits.PASSES", 110)
    for _ in range(2):
        oracle.run({"x": np.ones(2)})
    monkeypatch.setattr("rnnbench.model_files.limits.PASSES", 109)
    with pytest.raises(ModelFileError, match="with those of the Loops inside it"):
        oracle.run({"x": np.ones(2)})


@pytest.mark.parametrize("opset", [10, 13, 19])
def test_quantised_weights_agree_with_onnxruntime(tmp_path, opset):
    """Exporters write DequantizeLinear of version 13; ONNX's reference begins at 19."""
    q = files.weight("q", np.random.default_rng(0).integers(-128, 127, (3, 4)).astype(np.int8))
    size = () if opset == 10 else (4,)
    scale = numpy_helper.from_array(np.full(size, 0.01, np.float32), "scale")
    zero = numpy_helper.from_array(np.full(size, 3, np.int8), "zero")
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["W"], **({} if opset == 10 else {"axis": 1})),
        helper.make_node("MatMul", ["x", "W"], ["y"]),
    ]
    proto = files.model(nodes, files.arrays(("x", (2, 3))), files.arrays(("y", (2, 4))), [q, scale, zero], opset=opset)
    assert_same(*run_both(tmp_path, proto))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_transposed_convolution_of_groups_agrees_with_onnxruntime(tmp_path, groups):
    draw = np.random.default_rng(0)
    w = draw.standard_normal((4, 3, 1, 5)).astype(np.float32)
    b = draw.standard_normal(w.shape[1] * groups).astype(np.float32)
    node = helper.make_node("ConvTranspose", ["x", "W", "b"], ["y"], group=groups, strides=[1, 2], pads=[0, 2, 0, 2])
    ins, outs = files.arrays(("x", (2, 4, 3, 5))), files.arrays(("y", (2, len(b), 3, 9)))
    assert_same(*run_both(tmp_path, files.model([node], ins, outs, [files.weight("W", w), files.weight("b", b)])))


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 3], "pads": [1, 0, 2, 1]},
        {"dilations": [2, 1], "strides": [1, 2]},
        {"strides": [3, 2], "output_padding": [2, 1]},
        {"strides": [2, 2], "output_shape": [5, 7]},
        {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
        {"strides": [2, 2], "auto_pad": "SAME_LOWER"},
        {"strides": [2, 2], "auto_pad": "VALID", "group": 2},
    ],
)
def test_a_transposed_convolution_may_be_padded_and_dilated(tmp_path, attributes):
    w = np.random.default_rng(0).standard_normal((4, 3, 3, 2)).astype(np.float32)
    node = helper.make_node("ConvTranspose", ["x", "W"], ["y"], **attributes)
    arrays = files.arrays(("x", (2, 4, 3, 4))), files.arrays(("y", (2, 3 * attributes.get("group", 1), "h", "w")))
    assert_same(*run_both(tmp_path, files.model([node], *arrays, [files.weight("W", w)])))


@pytest.mark.parametrize("opset", [7, 9, 13, 14, 15])
def test_batch_normalisation_agrees_with_onnxruntime(tmp_path, opset):
    """Before version 14 the number of outputs says whether it is training."""
    draw = np.random.default_rng(0)
    rows = {name: draw.uniform(0.5, 2, 3).astype(np.float32) for name in ("scale", "bias", "mean", "variance")}
    node = helper.make_node("BatchNormalization", ["x", *rows], ["y"], momentum=0.9)
    ins, outs = files.arrays(("x", (2, 3, 5))), files.arrays(("y", (2, 3, 5)))
    weights = [files.weight(name, array) for name, array in rows.items()]
    assert_same(*run_both(tmp_path, files.model([node], ins, outs, weights, opset=opset)))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
def test_softmax_agrees_with_onnxruntime(tmp_path, operator, opset, axis):
    node = helper.make_node(operator, ["x"], ["y"], **({} if axis is None else {"axis": axis}))
    arrays = files.arrays(("x", (2, 3, 4))), files.arrays(("y", (2, 3, 4)))
    assert_same(*run_both(tmp_path, files.model([node], *arrays, opset=opset)))


@pytest.mark.parametrize("training", [False, True])
def test_a_dropout_draws_in_training_mode_alone(tmp_path, training):
    nodes = [helper.make_node("Dropout", ["x", "ratio", "training"], ["y"])]
    weights = [files.weight("ratio", np.float32(0.5)), files.weight("training", np.array(training))]
    proto = files.model(nodes, files.arrays(("x", [8])), files.arrays(("y", [8])), weights)
    oracle, x = oracle_of(files.saved(proto, tmp_path / "dropout.onnx")), np.arange(8.0)
    if not training:
        assert oracle.run({"x": x})["y"].tolist() == x.tolist()
        return
    with pytest.raises(ModelFileError, match="Dropout draws random numbers in training mode"):
        oracle.run({"x": x})


def test_the_operator_in_which_the_reference_fails_is_named(tmp_path):
    """Whatever it raises there: a Python error without a name helps nobody."""
    shape = files.weight("shape", np.array([5, 5]))
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    proto = files.model(nodes, files.arrays(("x", ["N"])), files.arrays(("y", [5, 5])), [shape])
    with pytest.raises(ModelFileError, match=r"ONNX's reference fails in Reshape of x \[3\], shape \[2\]: "):
        oracle_of(files.saved(proto, tmp_path / "reshape.onnx")).run({"x": np.zeros(3)})


def test_a_scan_with_a_batch_of_its_own_is_refused(tmp_path):
    body = helper.make_graph(
        [helper.make_node("Add", ["h", "x"], ["hn"]), helper.make_node("Identity", ["hn"], ["y"])],
        "body",
        files.arrays(("h", [2]), ("x", [2])),
        files.arrays(("hn", [2]), ("y", [2])),
    )
    nodes = [helper.make_node("Scan", ["", "h", "x"], ["hn", "y"], body=body, num_scan_inputs=1)]
    arrays = files.arrays(("h", [1, 2]), ("x", [1, 3, 2])), files.arrays(("hn", [1, 2]), ("y", [1, 3, 2]))
    with pytest.raises(ModelFileError, match="Scan of version 8 has a batch of its own"):
        oracle_of(files.saved(files.model(nodes, *arrays, opset=8), tmp_path / "scan.onnx"))


@pytest.mark.parametrize(("axis", "turned"), [(0, 0), (1, 0), (1, 1), (-2, 1)])
def test_a_scan_goes_along_any_axis_in_any_direction(axis, turned, tmp_path):
    body = helper.make_graph(
        [helper.make_node("Add", ["h", "part"], ["after"]), helper.make_node("Mul", ["after", "part"], ["made"])],
        "body",
        files.arrays(("h", [2, 3]), ("part", [2, 3])),
        files.arrays(("after", [2, 3]), ("made", [2, 3])),
    )
    places = {"scan_input_axes": [axis], "scan_output_axes": [axis], "scan_input_directions": [turned]}
    node = helper.make_node(
        "Scan", ["h", "x"], ["hn", "y"], body=body, num_scan_inputs=1, scan_output_directions=[turned], **places
    )
    shape = [4, 2, 3] if axis == 0 else [2, 4, 3]
    proto = files.model([node], files.arrays(("x", shape), ("h", [2, 3])), files.arrays(("y", shape), ("hn", [2, 3])))
    x, h = np.random.default_rng(0).standard_normal(shape), np.ones((2, 3))
    made = oracle_of(files.saved(proto, tmp_path / "scan.onnx")).run({"x": x, "h": h})
    steps, expected = np.moveaxis(x, axis, 0), []
    for part in steps[::-1] if turned else steps:
        h = h + part
        expected.append(h * part)
    np.testing.assert_allclose(made["hn"], h)
    np.testing.assert_allclose(made["y"], np.stack(expected[::-1] if turned else expected, axis=axis))


def test_an_optional_value_is_its_value(tmp_path):
    nodes = [
        helper.make_node("Optional", ["x"], ["maybe"]),
        helper.make_node("OptionalGetElement", ["maybe"], ["it"]),
        helper.make_node("Tanh", ["it"], ["y"]),
    ]
    proto = files.model(nodes, files.arrays(("x", (1, 2))), files.arrays(("y", (1, 2))), opset=18)
    made = oracle_of(files.saved(proto, tmp_path / "network.onnx")).run({"x": np.ones((1, 2))})
    assert np.array_equal(made["y"], np.tanh(np.ones((1, 2))))


def test_a_size_below_zero_is_an_open_one(tmp_path):
    """Some exporters write -1 where the caller chooses the size."""
    proto = files.recurrent("GRU")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    oracle = oracle_of(files.saved(proto, tmp_path / "network.onnx"))
    given = {"x": np.ones((5, 2, 3)), "h0": np.zeros((1, 2, 4))}
    assert oracle.run(given)["y"].shape[0] == 5


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("LeakyRelu", -2.0, -0.02),
        ("Affine", -3.0, -3.0),
        ("ThresholdedRelu", 0.9, 0.0),
        ("ThresholdedRelu", 1.1, 1.1),
        ("HardSigmoid", 1.0, 0.7),
        ("Elu", -1.0, np.expm1(-1.0)),
    ],
)
def test_an_activation_without_values_has_those_of_the_standard(name: str, x: float, expected: float) -> None:
    (activation,) = activations_of("RNN", 1, {"activations": [name.encode()]})
    assert activation(np.array([x])) == pytest.approx([expected])
