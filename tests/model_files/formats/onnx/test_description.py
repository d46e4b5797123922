"""What is in a file: facts, arrays with their roles and axes, states, questions and notes."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_files as files
import pytest
from onnx import helper

from rnnbench.model_files import ModelFileError, check_state, describe, network_of, oracle_of, section_of
from rnnbench.rnn import Weights, run_reference


def described(tmp_path, proto):
    return describe(files.saved(proto, tmp_path / "network.onnx"))


def roles(description):
    return {array.name: array.role for array in description.arrays}


def pairs(description):
    return {pair.before: (pair.after, pair.found) for pair in description.state}


@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
def test_the_states_of_an_operator_are_traced(tmp_path, operator):
    description = described(tmp_path, files.recurrent(operator))
    states = {"h0": ("hn", "traced"), **({"c0": ("cn", "traced")} if operator == "LSTM" else {})}
    assert pairs(description) == states
    assert description.operators == {operator: 1, "Transpose": 1, "Reshape": 1}
    assert not description.questions
    assert not description.notes


def test_axes_are_followed_to_inputs_outputs_and_states(tmp_path):
    description = described(tmp_path, files.recurrent("LSTM"))
    axes = {array.name: (array.time, array.batch) for array in description.arrays}
    assert axes == {"x": (0, 1), "y": (0, 1), **dict.fromkeys(("h0", "c0", "hn", "cn"), (None, 1))}


KEEPS_AXES = {
    **dict.fromkeys(("Identity", "Dropout", "Relu", "Tanh", "Sigmoid", "Sqrt", "Exp", "Log", "Neg", "Abs", "Clip"), ()),
    **dict.fromkeys(("LeakyRelu", "Elu", "Gelu", "Softplus", "Cast"), ()),
    **dict.fromkeys(("LayerNormalization", "Add", "Sub", "Mul", "Div"), ("row",)),
    "BatchNormalization": ("row",) * 4,
    "MatMul": ("square",),
}
"""Operators, with their operands that are weights."""


@pytest.mark.parametrize("operator", KEEPS_AXES)
def test_axes_are_followed_through_operators_that_keep_them(tmp_path, operator):
    """The names of sizes say nothing."""
    proto = files.recurrent("LSTM", inputs=3)
    proto.opset_import[0].version = 20  # the first with Gelu
    for dim, name in zip(proto.graph.input[0].type.tensor_type.shape.dim, ("p", "q"), strict=False):
        dim.dim_param = name
    proto.graph.input[0].name = "raw"
    attributes = {"to": onnx.TensorProto.FLOAT} if operator == "Cast" else {}
    proto.graph.node.insert(0, helper.make_node(operator, ["raw", *KEEPS_AXES[operator]], ["x"], **attributes))
    proto.graph.initializer.append(files.weight("row", np.ones(3, np.float32)))
    proto.graph.initializer.append(files.weight("square", np.eye(3, dtype=np.float32)))
    raw = described(tmp_path, proto).arrays[0]
    assert (raw.name, raw.time, raw.batch) == ("raw", 0, 1)


def test_a_description_has_the_files_format_producer_and_size(tmp_path):
    proto = files.recurrent("GRU", inputs=3, hidden=4)
    proto.producer_name, proto.producer_version = "a\x1b[31mtool", "2"
    description = described(tmp_path, proto)
    assert (description.format, description.opsets, description.nodes) == ("onnx", {"": files.OPSET}, 3)
    assert description.producer == "atool 2"
    proto.producer_version = "2" * 300
    assert len(described(tmp_path, proto).producer) <= 100
    assert description.weight_bytes == 4 * (12 * 3 + 12 * 4 + 24) + 3 * 8
    assert [array.shape for array in description.arrays][:2] == [("T", "B", 3), (1, "B", 4)]


def test_two_layers_of_an_exported_network_are_traced_through_slices(tmp_path):
    """There are as many rows as layers, and rows come first in x."""
    torch = pytest.importorskip("torch")
    path = files.exported(
        torch.nn.LSTM(3, 4, 2, batch_first=True),
        (torch.zeros(2, 5, 3), (torch.zeros(2, 2, 4), torch.zeros(2, 2, 4))),
        tmp_path / "two.onnx",
        ["x", "h0", "c0"],
        ["y", "hn", "cn"],
    )
    description = describe(path)
    assert pairs(description) == {"h0": ("hn", "traced"), "c0": ("cn", "traced")}
    x, h0, c0 = description.arrays[:3]
    assert (x.time, x.batch, h0.batch, c0.batch) == (1, 0, 1, 1)


def test_an_export_that_has_lost_its_state_is_said(tmp_path):
    torch = pytest.importorskip("torch")

    class Stateful(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = torch.nn.LSTM(3, 4)

        def forward(self, x):
            return self.lstm(x)[0]

    description = describe(files.exported(Stateful(), (torch.zeros(5, 1, 3),), tmp_path / "lost.onnx", ["x"], ["y"]))
    assert not description.state
    assert "the export has lost it" in " ".join(description.notes)


def scanned(given, results, weights=()):
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["out"])],
        "body",
        files.arrays(("s", (2,)), ("e", (2,))),
        files.arrays(("t", (2,)), ("out", (2,))),
    )
    scan = helper.make_node("Scan", ["first", "x"], ["last", "y"], body=body, num_scan_inputs=1)
    return files.model([scan], files.arrays(*given), files.arrays(*results), weights)


def test_states_of_a_scan_are_traced(tmp_path):
    proto = scanned([("first", (2,)), ("x", ("T", 2))], [("y", ("T", 2)), ("last", (2,))])
    assert pairs(described(tmp_path, proto)) == {"first": ("last", "traced")}


def test_a_loop_that_begins_anew_is_told(tmp_path):
    """As tf2onnx writes a layer of Keras with `stateful=True`, whose state it loses."""
    proto = scanned([("x", ("T", 2))], [("y", ("T", 2))], [files.weight("first", np.zeros(2, np.float32))])
    description = described(tmp_path, proto)
    assert not description.state
    assert description.notes == (
        "No state was found: Scan begins anew in each call, unless an input is a state (--set state.INPUT=OUTPUT)",
    )


def test_packed_states_are_traced_through_split_concat_and_both_branches(tmp_path):
    def branch(name):
        nodes = [
            helper.make_node("Split", ["state"], ["h", "c"], axis=0),
            helper.make_node("LSTM", ["x", "W", "R", "B", "", "h", "c"], ["Y", "Yh", "Yc"], hidden_size=4),
            helper.make_node("Concat", ["Yh", "Yc"], ["after"], axis=0),
        ]
        return helper.make_graph(nodes, name, [], files.arrays(("Y", ("T", 1, 1, 4)), ("after", (2, 1, 4))))

    choose = helper.make_node("If", ["wide"], ["y", "packed"], then_branch=branch("then"), else_branch=branch("else"))
    proto = files.model(
        [choose],
        files.arrays(("x", ("T", 1, 3)), ("state", (2, 1, 4)), ("wide", 9, ())),
        files.arrays(("y", ("T", 1, 1, 4)), ("packed", (2, 1, 4))),
        files.recurrent_weights("LSTM", 3, 4),
    )
    description = described(tmp_path, proto)
    assert pairs(description) == {"state": ("packed", "traced")}
    assert roles(description)["wide"] == "constant"
    assert ("wide", "constants") in [(question.array, question.key) for question in description.questions]


def by_hand(before, after, shapes):
    """h' = h plus the smallest of x for each state: no operator says that it is one."""
    nodes = [helper.make_node("ReduceMin", ["x"], ["least"], keepdims=0)]
    nodes += [helper.make_node("Add", [name, "least"], [f"t_{name}"]) for name in before]
    nodes += [helper.make_node("Identity", [f"t_{b}"], [a]) for b, a in zip(before, after, strict=True)]
    nodes += [helper.make_node("Relu", ["x"], ["y"])]
    ins = files.arrays(("x", (1, 2)), *zip(before, shapes, strict=True))
    return files.model(nodes, ins, files.arrays(("y", (1, 2)), *zip(after, shapes, strict=True)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *(
            ("state", "stateN"),
            ("h_in", "h_out"),
            ("h_0", "h_n"),
            ("past_key", "present_key"),
            ("h", "new_h"),
            ("c0", "cn"),
        ),
        ("att_cache", "r_att_cache"),  # WeNet
        ("cached_len_0", "new_cached_len_0"),  # sherpa-onnx: the name ends with an n
        ("decoder_hidden", "out_decoder_hidden"),
        ("gain", "gain_out"),
        ("r", "r_next"),
        ("cache_last_channel_len", "cache_last_channel_next_len"),  # NeMo
    ],
)
def test_names_decide_where_shapes_do_not(tmp_path, before, after):
    description = described(tmp_path, by_hand([before, "other"], [after, "next_other"], [(1, 2), (1, 2)]))
    assert pairs(description) == {before: (after, "name"), "other": ("next_other", "name")}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("state_{}", "new_state_{}"),
        ("cached_avg_{}", "new_cached_avg_{}"),
        ("h_{}", "h_{}_out"),
        ("in_state{}", "out_state{}"),
        ("h{}", "h{}n"),
        ("h{}", "hn{}"),
        ("state.{}", "next_state.{}"),
    ],
)
def test_numbered_states_keep_their_numbers(tmp_path, before, after):
    names = [[pattern.format(number) for number in range(3)] for pattern in (before, after)]
    description = described(tmp_path, files.cell("x", *names))
    assert pairs(description) == dict(zip(names[0], ((name, "name") for name in names[1]), strict=True))


@pytest.mark.parametrize(
    ("made_of", "asked"),
    [
        ({"a_out": "b", "b_out": "a"}, {"a": "b_out", "b": "a_out"}),
        ({"a_out": "c", "b_out": "a", "c_out": "b"}, {"a": "b_out", "b": "c_out", "c": "a_out"}),
        ({"a_out": "ab", "b_out": "a"}, {"a": "b_out", "b": "a_out"}),  # as a layer that reads the one before it
        ({"a_out": "a", "b_out": "ab"}, {}),
        ({"a_out": "", "b_out": "a"}, {}),  # a delay of two steps
        ({"a_out": "ab", "b_out": "ab"}, {}),  # h and c of an LSTM: nothing tells
    ],
)
def test_names_are_doubted_where_next_values_are_computed_from_each_other_s_states(tmp_path, made_of, asked):
    """`made_of` has the states that each next value is computed from."""
    befores = [after[0] for after in made_of]
    nodes = [helper.make_node("Sum", ["x", *sources], [after]) for after, sources in made_of.items()]
    proto = files.model(
        [
            *nodes,
            helper.make_node("Sum", ["x", *befores], ["s"]),
            helper.make_node("ReduceMax", ["s"], ["y"], axes=[1]),
        ],
        files.arrays(("x", (1,)), *((name, (1, 2)) for name in befores)),
        files.arrays(("y", (1, 1)), *((name, (1, 2)) for name in made_of)),
    )
    description = described(tmp_path, proto)
    expected = {name: (f"{name}_out", "name") for name in befores if name not in asked}
    assert pairs(description) == expected
    questions = {question.array: question.text for question in description.questions if question.key == "state"}
    assert questions.keys() == asked.keys()
    assert all(f"as the names say, or {other}?" in questions[name] for name, other in asked.items())


@pytest.mark.parametrize(("before", "after"), [("profile", "emb"), ("mask_in", "mask_out")])
@pytest.mark.parametrize("reads", [[], ["least"]])
def test_an_output_that_is_computed_from_an_input_alone_is_asked_for(tmp_path, before, after, reads):
    """As an embedding of a voice's profile, which has a shape of its own."""
    nodes = [
        helper.make_node("ReduceMin", ["x"], ["least"], keepdims=0),
        helper.make_node("Sum", [before, *reads], [after]),
        helper.make_node("ReduceMax", [before], ["most"], axes=[1]),
        helper.make_node("Sum", ["most", "least"], ["y"]),
    ]
    proto = files.model(
        nodes, files.arrays(("x", (1, 3)), (before, (1, 2))), files.arrays(("y", (1, 1)), (after, (1, 2)))
    )
    description = described(tmp_path, proto)
    assert (before in pairs(description)) is bool(reads)
    texts = [question.text for question in description.questions if question.key == "state"]
    told = f"is {after} its next value? It is computed from {before} alone, and from no input of the call."
    assert [text.startswith(told) for text in texts] == ([] if reads else [True])


def test_names_leave_an_input_that_is_new_in_each_call(tmp_path):
    nodes = [helper.make_node("Tanh", ["audio"], ["audio_out"])]
    proto = files.model(nodes, files.arrays(("audio", (1, 2))), files.arrays(("audio_out", (1, 2))))
    assert pairs(described(tmp_path, proto)) == {}


def test_what_is_left_by_shapes_may_be_a_state_by_its_name(tmp_path):
    """x and y alone have their shape, and are no state."""
    proto = files.model(
        [helper.make_node("Concat", ["past_kv", "x"], ["present_kv"], axis=1), helper.make_node("Relu", ["x"], ["y"])],
        files.arrays(("x", (1, 1, 4)), ("past_kv", (1, "P", 4))),
        files.arrays(("y", (1, 1, 4)), ("present_kv", (1, "P + 1", 4))),
    )
    assert pairs(described(tmp_path, proto)) == {"past_kv": ("present_kv", "name")}


def test_a_single_value_may_be_a_state(tmp_path):
    description = described(tmp_path, by_hand(["level"], ["level_out"], [()]))
    assert pairs(description) == {"level": ("level_out", "name")}
    assert not description.questions


def test_a_name_without_the_shape_is_said(tmp_path):
    proto = by_hand(["s"], ["s_next"], [(1, 7)])
    proto.graph.output[1].type.tensor_type.shape.dim[1].dim_value = 6
    description = described(tmp_path, proto)
    assert pairs(description) == {}
    assert "s_next has a name as if it were the next value of s, and another type or shape" in " ".join(
        description.notes
    )


def test_the_only_input_is_no_state_though_its_output_has_its_name(tmp_path):
    """As Keras calls the input of a layer: lstm_input, and lstm what it gives."""
    nodes = [helper.make_node("Tanh", ["lstm_input"], ["t"]), helper.make_node("Concat", ["t", "t"], ["lstm"], axis=1)]
    proto = files.model(nodes, files.arrays(("lstm_input", (1, 2))), files.arrays(("lstm", (1, 4))))
    description = described(tmp_path, proto)
    assert pairs(description) == {}
    assert "as if it were" not in " ".join(description.notes)


def test_an_output_that_is_an_input_is_no_state(tmp_path):
    proto = files.cell("x", ["h"], ["next_h"])
    proto.graph.output.append(proto.graph.input[0])
    assert pairs(described(tmp_path, proto)) == {"h": ("next_h", "shape")}


def test_a_state_may_lose_axes_of_one_element(tmp_path):
    proto = files.recurrent("GRU")
    proto.graph.node[0].output[1] = "wide"
    proto.graph.node.append(helper.make_node("Squeeze", ["wide", "first"], ["hn"]))
    proto.graph.initializer.append(files.weight("first", np.array([0])))
    del proto.graph.output[1].type.tensor_type.shape.dim[0]
    assert pairs(described(tmp_path, proto)) == {"h0": ("hn", "traced")}


def test_a_state_whose_axes_change_places_is_none(tmp_path):
    proto = files.model(
        [
            helper.make_node("Transpose", ["s"], ["turned"], perm=[1, 0, 2]),
            helper.make_node("Tanh", ["turned"], ["s_out"]),
            helper.make_node("ReduceSum", ["x"], ["y"]),
        ],
        files.arrays(("x", (1, 2)), ("s", (2, "B", 4))),
        files.arrays(("y", (1, 1)), ("s_out", ("B", 2, 4))),
    )
    assert pairs(described(tmp_path, proto)) == {}


def test_a_shape_that_nothing_else_has_makes_a_pair(tmp_path):
    assert pairs(described(tmp_path, by_hand(["a"], ["b"], [(1, 7)]))) == {}
    proto = by_hand(["a"], ["b"], [(1, 7)])
    proto.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 3
    proto.graph.node[-1].CopyFrom(helper.make_node("MatMul", ["x", "w"], ["y"]))
    proto.graph.initializer.append(files.weight("w", np.zeros((2, 3), np.float32)))
    assert pairs(described(tmp_path, proto)) == {"a": ("b", "shape")}


@pytest.mark.parametrize("name", ["speaker_embedding", "spk_emb", "Reference", "cond_in", "far_end", "speaker_state"])
def test_what_a_network_is_given_beside_its_signal_is_no_state_by_its_shape(tmp_path, name):
    proto = files.cell("x", [name], ["code"])
    description = described(tmp_path, proto)
    is_a_state = name == "speaker_state"
    assert (name in pairs(description)) is is_a_state
    told = [question.text for question in description.questions if question.array == name]
    asked = "is it a state, and code its next value? They have the same shape."
    assert [text.startswith(asked) for text in told] == ([] if is_a_state else [True])


@pytest.mark.parametrize(("after", "is_asked"), [("b", True), ("a_next", False)])
def test_what_is_not_computed_from_a_state_is_asked_for_where_its_shape_alone_fits(tmp_path, after, is_asked):
    """It may be a delay of one step, or the projection of a signal that has the size of a condition."""
    proto = files.model(
        [
            helper.make_node("MatMul", ["x", "w"], [after]),
            helper.make_node("Add", [after, "a"], ["sum"]),
            helper.make_node("ReduceMax", ["sum"], ["y"]),
        ],
        files.arrays(("x", (1, 3)), ("a", (1, 7))),
        files.arrays(("y", (1, 1)), (after, (1, 7))),
        [files.weight("w", np.ones((3, 7), np.float32))],
    )
    description = described(tmp_path, proto)
    told = [question.text for question in description.questions if question.key == "state"]
    asked = f"is {after} its next value? It has the same shape, but is not computed from a."
    assert [text.startswith(asked) for text in told] == [True] * is_asked
    assert pairs(description) == ({} if is_asked else {"a": (after, "shape")})


@pytest.mark.parametrize(("before", "after"), [("input", "b"), ("a", "output"), ("X", "b"), ("x0", "b"), ("a", "y_1")])
def test_x_and_y_are_no_pair_by_their_shape_alone(tmp_path, before, after):
    """As where an operator's optional state is left away, and its weights are given."""
    proto = files.model(
        [helper.make_node("Tanh", [before], [after]), helper.make_node("ReduceSum", ["weight"], ["last"])],
        files.arrays((before, (1, 7)), ("weight", (4, 3))),
        files.arrays((after, (1, 7)), ("last", (1, 1))),
    )
    description = described(tmp_path, proto)
    assert pairs(description) == {}
    assert [(one.array, one.key) for one in description.questions] == [(before, "state")]


def test_open_sizes_of_an_output_do_not_hide_a_state(tmp_path):
    """Converters leave the rows of outputs open: what fits is asked, and not passed over."""
    proto = by_hand(["a"], ["b"], [("rows", 7)])
    proto.graph.output[1].type.tensor_type.shape.dim[0].dim_param = "other"
    description = described(tmp_path, proto)
    assert [(one.array, one.text) for one in description.questions if one.key == "state"] == [
        ("x", "is it a state, and y its next value? They have the same shape."),
        ("a", "is it a state, and b its next value? Their shapes fit."),
    ]


def test_sizes_of_outputs_that_follow_from_the_inputs_are_known(tmp_path):
    proto = by_hand(["a"], ["b"], [(1, 7)])
    proto.graph.output[1].type.tensor_type.shape.dim[0].dim_param = "N"
    assert described(tmp_path, proto).arrays[-1].shape == (1, 7)


def test_a_state_that_is_written_into_an_array_is_traced(tmp_path):
    """Two GRUs keep their states in one array, as exporters write `cache[i] = h`."""
    recurrent = [
        helper.make_node("GRU", ["x", "W", "R", "B", "", f"h{i}"], ["", f"after{i}"], hidden_size=4) for i in range(2)
    ]
    nodes = [
        *(helper.make_node("Gather", ["cache", f"at{i}"], [f"h{i}"]) for i in range(2)),
        *recurrent,
        helper.make_node("ScatterND", ["cache", "place0", "after0"], ["half"]),
        helper.make_node("ScatterND", ["half", "place1", "after1"], ["kept"]),
        helper.make_node("ReduceSum", ["after1"], ["y"]),
    ]
    places = [files.weight(f"place{i}", np.array([[i]])) for i in range(2)]
    indices = [files.weight(f"at{i}", np.array([i])) for i in range(2)]
    proto = files.model(
        nodes,
        files.arrays(("x", (1, 1, 3)), ("cache", (2, 1, 4))),
        files.arrays(("y", (1, 1, 1)), ("kept", (2, 1, 4))),
        [*files.recurrent_weights("GRU", 3, 4), *places, *indices],
    )
    description = described(tmp_path, proto)
    assert pairs(description) == {"cache": ("kept", "traced")}
    assert not description.notes


def test_what_fits_several_ways_is_asked(tmp_path):
    description = described(tmp_path, by_hand(["a", "b"], ["p", "q"], [(1, 7), (1, 7)]))
    assert pairs(description) == {}
    asked = {question.array: question.text for question in description.questions if question.key == "state"}
    assert "p or q" in asked["a"]
    first = next(iter(asked.values()))
    assert first.endswith("If the states come last, in the same order: --set state.a=p --set state.b=q.")
    assert sum("--set" in text for text in asked.values()) == 1
    assert asked.keys() >= {"a", "b"}


def test_an_input_that_is_no_tensor_is_refused(tmp_path):
    proto = files.model(
        [helper.make_node("SequenceLength", ["s"], ["n"])],
        [helper.make_tensor_sequence_value_info("s", files.FLOAT, None)],
        files.arrays(("n", files.INT64, ())),
    )
    with pytest.raises(ModelFileError, match="'s' is a value of the kind sequence; make each of its tensors"):
        described(tmp_path, proto)


@pytest.mark.parametrize("shape", [(1, 0), (0,), (1, 3)])
def test_an_array_without_elements_is_no_state_and_no_input(tmp_path, shape):
    """With (1, 3), it is joined to x: as an input of its own it made a state of x."""
    proto = files.cell("x", ["h"], ["next_h"])
    proto.graph.input.extend(files.arrays(("e", (1, 0) if shape == (1, 3) else shape)))
    proto.graph.output.extend(files.arrays(("e_out", shape)))
    joined = helper.make_node("Concat", ["x", "e"], ["e_out"], axis=1)
    proto.graph.node.append(joined if shape == (1, 3) else helper.make_node("Identity", ["e"], ["e_out"]))
    path = files.saved(proto, tmp_path / "network.onnx")
    found = describe(path)
    assert {pair.before: pair.after for pair in found.state} == {"h": "next_h"}
    assert {a.name: a.role for a in found.arrays if a.role in ("input", "constant")} == {"x": "input", "e": "constant"}
    assert not found.questions
    section = section_of(found, path.name)
    assert section.constants == {"e": 0}
    network = network_of(path, section, found)
    assert [array.name for array in network.results] == (["y", "e_out"] if shape == (1, 3) else ["y"])
    assert check_state(oracle_of(path), found, section).ok
    state = {name: np.zeros(shape) for name, shape in network.state_shapes(1).items()}
    assert run_reference(network, Weights(), np.ones((2, 1, 3)), state).y.shape == (2, 1, network.width)


def test_an_input_that_no_operator_takes_is_asked(tmp_path):
    """As torch's exporter writes h and c that were one tensor in the example."""
    nodes = [helper.make_node("Add", ["x", "c"], ["y"])]
    ends = files.arrays(("x", [1, 3]), ("h", [1, 3]), ("c", [1, 3])), files.arrays(("y", [1, 3]))
    found = describe(files.saved(files.model(nodes, *ends), tmp_path / "merged.onnx"))
    (asked,) = [one for one in found.questions if one.array == "h"]
    assert (asked.key, asked.is_guess) == ("state", False)
    assert asked.text.startswith("no operator takes it, and x or c has its shape")


@pytest.mark.parametrize("signal", [("audio_in", "audio_out"), ("decoder_input", "decoder_output")])
def test_a_signal_is_no_state_by_its_name_and_not_by_its_shape(tmp_path, signal):
    before, after = zip(signal, ("h_in", "h_out"), strict=True)
    assert pairs(described(tmp_path, by_hand(before, after, [(1, 2), (1, 2)]))) == {"h_in": ("h_out", "name")}
    proto = files.model(
        [
            helper.make_node("Relu", ["noisy_speech"], ["enhanced"]),
            helper.make_node("ReduceSum", ["features"], ["voice_activity"]),
        ],
        files.arrays(("noisy_speech", (1, 7)), ("features", (4, 3))),
        files.arrays(("enhanced", (1, 7)), ("voice_activity", (1, 1))),
    )
    description = described(tmp_path, proto)
    assert pairs(description) == {}
    assert [one.array for one in description.questions if one.key == "state"] == ["noisy_speech"]


def test_a_buffer_of_a_signal_is_a_state(tmp_path):
    before, after = ["mel_buffer", "prev_frame"], ["mel_buffer_out", "frame"]
    found = pairs(described(tmp_path, by_hand(before, after, [(1, 2), (1, 2)])))
    assert found == {"mel_buffer": ("mel_buffer_out", "name"), "prev_frame": ("frame", "name")}


@pytest.mark.parametrize("is_given", [True, False])
def test_a_state_that_is_set_to_zero_in_the_graph_is_not_lost(tmp_path, is_given):
    """As by a flag at the beginning of a sentence. Zeros of the size of x are no value of x."""
    proto = files.recurrent("GRU")
    proto.graph.node[0].input[5] = "begun"
    zeros = [helper.make_node("Shape", ["h0"], ["sizes"]), helper.make_node("ConstantOfShape", ["sizes"], ["begun"])]
    masked = [helper.make_node("Mul", ["h0", "keep"], ["begun"])]
    nodes = [*(masked if is_given else zeros), *proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    proto.graph.initializer.append(files.weight("keep", np.ones(1, np.float32)))
    told = " ".join(described(tmp_path, proto).notes)
    assert ("the export has lost it" in told) is not is_given


def test_options_are_written_as_a_shell_takes_them(tmp_path):
    description = described(tmp_path, by_hand(["a b", "c"], ["p", "q[0]"], [(1, 7), (1, 7)]))
    asked = [question for question in description.questions if question.key == "state"]
    assert asked[0].text.endswith("--set 'state.a b=p' --set 'state.c=q[0]'.")
    assert asked[1].option == "--set 'state.a b=OUTPUT'"


def with_defaults(start, ir=files.IR, **weights):
    """An LSTM whose states are inputs with a default value."""
    proto = files.recurrent("LSTM")
    proto.ir_version = ir
    values = {name: np.full((1, 1, 4), start, np.float32) for name in ("h0", "c0")} | weights
    proto.graph.initializer.extend(files.weight(name, value) for name, value in values.items())
    return proto


@pytest.mark.parametrize("start", [0.0, 0.5])
def test_a_state_with_a_default_value_is_given_in_each_call(tmp_path, start):
    path = files.saved(with_defaults(start), tmp_path / "network.onnx")
    description = describe(path)
    assert pairs(description) == {"h0": ("hn", "traced"), "c0": ("cn", "traced")}
    assert {array.has_start for array in description.of_role("state_in")} == {start != 0}
    assert bool(description.notes) == (start != 0)
    given = {"x": np.ones((1, 1, 3)), "h0": np.zeros((1, 1, 4)), "c0": np.zeros((1, 1, 4))}
    first = oracle_of(path).run(given)["hn"]
    assert (oracle_of(path).run({**given, "c0": np.ones((1, 1, 4))})["hn"] != first).all()


def test_a_state_in_a_file_beside_may_have_a_default_value(tmp_path):
    proto = with_defaults(0.5)
    path = tmp_path / "network.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="values.bin", size_threshold=0)
    assert {array.has_start for array in describe(path).of_role("state_in")} == {True}


def test_a_default_value_is_no_state_of_a_cell_but_by_its_name(tmp_path):
    nodes = [
        helper.make_node("Add", ["x", "h"], ["sum"]),
        helper.make_node("Mul", ["sum", "gain"], ["h_next"]),
        helper.make_node("Tanh", ["h_next"], ["y"]),
    ]
    given = files.arrays(("x", (1, 4)), ("h", (1, 4)), ("gain", (1, 4)))
    weights = [files.weight(name, np.ones((1, 4), np.float32)) for name in ("h", "gain")]
    proto = files.model(nodes, given, files.arrays(("y", (1, 4)), ("h_next", (1, 4))), weights)
    description = described(tmp_path, proto)
    assert pairs(description) == {"h": ("h_next", "name")}
    assert [array.name for array in description.of_role("input", "state_in")] == ["x", "h"]


def test_initialisers_of_the_format_before_version_4_are_weights(tmp_path):
    proto = with_defaults(0.0, 3)
    listed = {value.name for value in proto.graph.input}
    for tensor in proto.graph.initializer:
        if tensor.name not in listed:
            proto.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    description = described(tmp_path, proto)
    assert not description.state
    assert "start from the same value in every call" in description.notes[0]


@pytest.mark.parametrize(("name", "asked"), [("hidden", ["hidden"]), ("x", []), ("audio", [])])
def test_a_state_beside_single_numbers_is_asked_for(tmp_path, name, asked):
    """As of a cell with a token, which is one whole number."""
    nodes = [
        helper.make_node("Gather", ["table", "token"], ["row"]),
        helper.make_node("Add", [name, "row"], ["new"]),
        helper.make_node("Tanh", ["new"], ["shown"]),
    ]
    given = files.arrays((name, (1, 4)), ("token", files.INT64, ()))
    table = files.weight("table", np.ones((5, 1, 4), np.float32))
    description = described(
        tmp_path, files.model(nodes, given, files.arrays(("new", (1, 4)), ("shown", (1, 4))), [table])
    )
    assert [question.array for question in description.questions if question.key == "state"] == asked


def test_states_are_followed_through_sequences_and_optional_values(tmp_path):
    """torch writes a split of both states so, and a list of them."""
    nodes = [
        helper.make_node("SplitToSequence", ["hc"], ["parts"], axis=0, keepdims=1),
        helper.make_node("SequenceAt", ["parts", "first"], ["h"]),
        helper.make_node("Optional", ["h"], ["maybe"]),
        helper.make_node("OptionalGetElement", ["maybe"], ["h0"]),
        helper.make_node("SequenceAt", ["parts", "second"], ["c0"]),
        helper.make_node("LSTM", ["x", "W", "R", "B", "", "h0", "c0"], ["y", "hn", "cn"], hidden_size=4),
        helper.make_node("SequenceConstruct", ["hn"], ["some"]),
        helper.make_node("SequenceInsert", ["some", "cn"], ["both"]),
        helper.make_node("ConcatFromSequence", ["both"], ["z"], axis=0),
    ]
    places = [files.weight("first", np.array(0)), files.weight("second", np.array(1))]
    inputs = files.arrays(("x", ("T", "B", 3)), ("hc", (2, "B", 4)))
    outputs = files.arrays(("y", ("T", 1, "B", 4)), ("z", (2, "B", 4)))
    weights = [*files.recurrent_weights("LSTM", 3, 4), *places]
    description = described(tmp_path, files.model(nodes, inputs, outputs, weights, opset=18))
    assert pairs(description) == {"hc": ("z", "traced")}
    assert not description.notes


@pytest.mark.parametrize(("sizes", "told"), [((3, 5), True), ((5, 5), False)])
def test_an_input_like_the_only_output_is_suggested_as_a_state(tmp_path, sizes, told):
    """As of a GRU cell whose exporter has its own names for outputs: its result is its next state."""
    ends = files.arrays(("x", [1, sizes[0]]), ("h", [1, sizes[1]])), files.arrays(("fetch_name_0", [1, 5]))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["s"]), helper.make_node("Add", ["s", "h"], ["fetch_name_0"])]
    weights = files.weight("w", np.ones((sizes[0], 5), np.float32))
    (note,) = described(tmp_path, files.model(nodes, *ends, [weights])).notes
    suggested = "If h is a state, and fetch_name_0 its next value, say so: --set state.h=fetch_name_0"
    assert note.endswith(suggested) == told
