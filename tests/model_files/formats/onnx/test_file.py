"""Reading a file within limits: any bytes end as a description or as a sentence."""

from __future__ import annotations

import resource

import onnx_files as files
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from quick_tests import examples

from rnnbench.model_files import ModelFileError, describe
from rnnbench.model_files.formats.onnx.file import read_onnx

SEEDS = [files.recurrent(operator).SerializeToString() for operator in files.GATES]
GROWTH = 200 << 20
"""Bytes that reading files of a kilobyte may add to this process."""


@st.composite
def mutated(draw):
    """An honest file with some bytes changed, removed, added or repeated."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 8))):
        place = draw(st.integers(0, max(0, len(data) - 1)))
        end = place + draw(st.integers(1, 40))
        match draw(st.sampled_from(("change", "remove", "add", "repeat", "huge"))):
            case "change":
                data[place : place + 1] = bytes([draw(st.integers(0, 255))])
            case "remove":
                del data[place:end]
            case "add":
                data[place:place] = draw(st.binary(min_size=1, max_size=8))
            case "repeat":
                data[place:place] = data[place:end]
            case "huge":
                data[place:place] = b"\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    return bytes(data)


def refusal(path):
    """Why the file is refused; empty where it is described."""
    try:
        describe(path)
    except ModelFileError as error:
        return str(error)
    return ""


@examples(80)
@given(data=st.one_of(mutated(), st.binary(max_size=300)))
def test_any_bytes_are_described_or_refused_with_a_sentence(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "fuzzed.onnx"
    path.write_bytes(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sentence = refusal(path)
    assert not sentence or (sentence.startswith(f"{path}: ") and "\n" not in sentence)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < GROWTH


def changed(change):
    proto = files.recurrent("GRU")
    change(proto)
    return proto


def rename(name):
    def change(proto):
        old, proto.graph.input[0].name = proto.graph.input[0].name, name
        for node in proto.graph.node:
            node.input[:] = [name if one == old else one for one in node.input]

    return change


def many_arrays(proto):
    proto.graph.input.extend(files.arrays(*((f"i{number}", (1,)) for number in range(300))))


def unknown_type(proto):
    proto.graph.input[0].type.tensor_type.elem_type = 99


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda proto: proto.ClearField("graph"), "has no graph"),
        (rename("a\x1b[31m"), "printable characters"),
        (rename("a" * 300), "up to 200 printable"),
        (many_arrays, "304 inputs and outputs"),
        (unknown_type, "type 99, which is not known"),
        (lambda proto: proto.graph.output.append(proto.graph.output[0]), "two of its outputs are called 'y'"),
        (lambda proto: setattr(proto, "ir_version", 999), "version 999 of the format.*pip install --upgrade onnx"),
        (lambda proto: setattr(proto.opset_import[0], "version", 999), "operators of version 999; onnx .* knows them"),
        (lambda proto: proto.graph.node[1].input.__setitem__(0, "nothing"), "ONNX's checker refuses it"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, change, says):
    with pytest.raises(ModelFileError, match=says):
        describe(files.saved(changed(change), tmp_path / "network.onnx"))


def test_nodes_are_counted_before_functions_are_put_in_place(tmp_path):
    """Each of thirty functions calls the one before it twice."""
    functions, opset = [], helper.make_opsetid("", files.OPSET)
    for level in range(30):
        operator, domain = (f"f{level - 1}", "own") if level else ("Relu", "")
        body = [helper.make_node(operator, [a], [b], domain=domain) for a, b in (("a", "m"), ("m", "b"))]
        own = helper.make_opsetid("own", 1)
        functions.append(helper.make_function("own", f"f{level}", ["a"], ["b"], body, [opset, own]))
    proto = files.model(
        [helper.make_node("f29", ["x"], ["y"], domain="own")],
        files.arrays(("x", (1,))),
        files.arrays(("y", (1,))),
        opsets=[helper.make_opsetid("own", 1)],
        functions=functions,
    )
    with pytest.raises(ModelFileError, match="it has 1,073,741,824 nodes"):
        describe(files.saved(proto, tmp_path / "network.onnx"))


def test_functions_that_call_each_other_for_ever_are_refused(tmp_path):
    own = [helper.make_opsetid("own", 1)]
    body = [helper.make_node("again", ["a"], ["b"], domain="own")]
    proto = files.model(
        [helper.make_node("again", ["x"], ["y"], domain="own")],
        files.arrays(("x", (1,))),
        files.arrays(("y", (1,))),
        opsets=own,
        functions=[helper.make_function("own", "again", ["a"], ["b"], body, own)],
    )
    with pytest.raises(ModelFileError, match="or for ever"):
        describe(files.saved(proto, tmp_path / "network.onnx"))


@pytest.mark.parametrize("name", ["a.pt", "a.pth", "a.pkl", "a.PT", "a", "a.txt"])
def test_other_kinds_of_files_are_refused_unread(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(ModelFileError, match=r"is not read|are read"):
        describe(tmp_path / name)


def test_nodes_that_are_out_of_order_are_put_in_order(tmp_path):
    """`convert_float_to_float16(keep_io_types=True)` writes its casts at the end; ONNX Runtime takes such a file."""
    proto = files.recurrent("LSTM")
    nodes = [*proto.graph.node]
    del proto.graph.node[:]
    proto.graph.node.extend(reversed(nodes))
    path = files.saved(proto, tmp_path / "network.onnx")
    assert read_onnx(path).model.graph == files.recurrent("LSTM").graph
    assert refusal(path) == ""


def test_nodes_of_an_inner_graph_count_in_the_order(tmp_path):
    taken = helper.make_graph([helper.make_node("Neg", ["late"], ["a"])], "one", [], files.arrays(("a", (1, 2))))
    other = helper.make_graph([helper.make_node("Abs", ["x"], ["b"])], "two", [], files.arrays(("b", (1, 2))))
    nodes = [
        helper.make_node("If", ["flag"], ["y"], then_branch=taken, else_branch=other),
        helper.make_node("Tanh", ["x"], ["late"]),
    ]
    inputs = files.arrays(("x", (1, 2)), ("flag", TensorProto.BOOL, ()))
    path = files.saved(files.model(nodes, inputs, files.arrays(("y", (1, 2)))), tmp_path / "network.onnx")
    assert [node.op_type for node in read_onnx(path).model.graph.node] == ["Tanh", "If"]


def test_nodes_that_wait_for_each_other_are_refused(tmp_path):
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Tanh", ["a"], ["b"])]
    proto = files.model(nodes, files.arrays(("x", (1, 2))), files.arrays(("b", (1, 2))))
    assert "topologically sorted" in refusal(files.saved(proto, tmp_path / "network.onnx"))
