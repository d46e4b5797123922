"""A model file as a network: where its arrays lie, what it refuses, and what its reference gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_files as files
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from rnnbench.model_files import (
    FileArray,
    FileSection,
    ModelFileError,
    UserInputs,
    answered,
    describe,
    keys_of,
    network_of,
    open_questions,
    section_of,
)
from rnnbench.model_files.calling import batch_axis
from rnnbench.model_files.description import ArrayDescription
from rnnbench.rnn import Arithmetic, RandomRounding, Weights, draw_inputs, draw_state, run_in, run_reference
from rnnbench.rnn import network_of as decoded

ODD = {"state": {"s": "next_s"}, "constants": {"gain": 0.5}, "batch": 0}


def network(path, **said):
    description = describe(path)
    found = section_of(description, path.name)
    return network_of(path, FileSection(**{**vars(found), **said}), description)


def numbered(path):
    """A network with a position in a buffer, of whole numbers."""
    return network(path, state={"buffer": "next_buffer", "step": "next_step"}, batch=0)


@given(shape=st.permutations(["n", "batch", 3, 2]), steps=st.integers(1, 3), batch=st.integers(1, 3))
def test_an_array_goes_to_the_file_and_comes_back(shape, steps, batch):
    array = FileArray(name="x", shape=tuple(shape))
    x = np.arange(steps * batch * 6).reshape(steps, batch, 6)
    there = array.to_file(x)
    sizes = {"n": steps, "batch": batch}
    assert there.shape == tuple(sizes.get(dim, dim) for dim in shape)
    np.testing.assert_array_equal(array.from_file(there, steps, batch), x)


@pytest.mark.parametrize("operator", ["LSTM", "GRU", "RNN"])
def test_a_reference_step_by_step_is_what_a_runtime_gives_for_the_whole(tmp_path, operator):
    path = files.saved(files.recurrent(operator), tmp_path / "network.onnx")
    found = network(path)
    x, state = draw_inputs(found, 6, 2, 0), draw_state(found, 2, 0)
    run = run_reference(found, Weights(), x, state)
    session = onnxruntime.InferenceSession(str(path))
    y, *final = session.run(None, {"x": x, **{name: np.asarray(array) for name, array in state.items()}})
    np.testing.assert_allclose(run.y, y.reshape(run.y.shape), atol=2e-6)
    for mine, theirs in zip(run.final.values(), final, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=2e-6)


def test_two_halves_of_a_file_with_odd_arrays_are_the_whole(tmp_path):
    found = network(files.saved(files.odd(), tmp_path / "odd.onnx"), **ODD)
    assert (found.input, found.width, found.state_shapes(3)) == (8, 9, {"s": (1, 3, 8)})
    x, state = draw_inputs(found, 6, 3, 0), draw_state(found, 3, 0)
    whole = run_reference(found, Weights(), x, state)
    first = run_reference(found, Weights(), x[:2], state)
    second = run_reference(found, Weights(), x[2:], first.final)
    np.testing.assert_array_equal(np.concatenate([first.y, second.y]), whole.y)
    np.testing.assert_array_equal(whole.states["s"][1], first.final["s"])


def test_random_roundings_leave_the_exact_rows_as_they_are(tmp_path):
    found = network(files.saved(files.odd(), tmp_path / "odd.onnx"), **ODD)
    x = np.repeat(draw_inputs(found, 4, 1, 0), 5, axis=1)
    noisy = run_in(RandomRounding("float32", 0, 2), found, Weights(), x).y
    exact = run_reference(found, Weights(), x).y
    np.testing.assert_array_equal(noisy[:, :2], exact[:, :2])
    error = np.abs(noisy - exact)[:, 2:].max()
    assert 1e-9 < error < 1e-5


def test_a_file_whose_batch_is_fixed_runs_row_by_row(tmp_path):
    one = network(files.saved(files.odd(1), tmp_path / "one.onnx"), **ODD)
    any_number = network(files.saved(files.odd(), tmp_path / "any.onnx"), **ODD)
    x = draw_inputs(one, 4, 3, 0)
    np.testing.assert_allclose(
        run_reference(one, Weights(), x).y, run_reference(any_number, Weights(), x).y, rtol=1e-12
    )
    assert one.refusal(time="given", state="stitched", chunk=1, batch=2, dtype="float32") == (
        "batch",
        "one.onnx has a batch of 1, not 2",
    )


def test_a_last_call_of_fewer_rows_than_the_file_has_is_filled_up(tmp_path):
    two = network(files.saved(files.odd(2), tmp_path / "two.onnx"), **ODD)
    any_number = network(files.saved(files.odd(), tmp_path / "any.onnx"), **ODD)
    x, state = draw_inputs(two, 4, 5, 0), draw_state(two, 5, 0)
    found, expected = (run_reference(one, Weights(), x, state) for one in (two, any_number))
    np.testing.assert_allclose(found.y, expected.y, rtol=1e-12)
    np.testing.assert_allclose(found.final["s"], expected.final["s"], rtol=1e-12)


def test_it_survives_a_journey_to_a_worker(tmp_path):
    found = network(files.saved(files.odd(), tmp_path / "odd.onnx"), **ODD)
    assert decoded({"network": found.network, **found.model_dump(mode="json")}) == found


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"constants": {}}, "gain has 0 axes, and the case says that axis 0 is one"),
        ({"constants": {"gain": None}}, "the constant gain has no value; write one"),
        ({"constants": {"gain": 1e300}}, r"the constant gain is float32, which cannot be 1e\+300"),
        ({"constants": {"gain": float("nan")}}, "the constant gain is float32, which cannot be nan"),
        (
            {"state": {"s": "total"}},
            r"s is float32 \[B, 2, 4\] and total is float32 \[B, 1\], so the one cannot be the next",
        ),
        ({"constants": {"gian": 1}}, "it has no input gian; its inputs are a, x, s, gain"),
        ({"state": {"s": "next"}}, "it has no output next; its outputs are y, total, next_s"),
        ({"batch": 9}, "a has 3 axes, and"),
        ({"sizes": {"T": 3}}, "it leaves no size T open"),
    ],
)
def test_what_cannot_be_called_so_is_told(tmp_path, said, told):
    path = files.saved(files.odd(), tmp_path / "odd.onnx")
    with pytest.raises(ModelFileError, match=told):
        network(path, **{**ODD, **said})


@pytest.mark.parametrize(
    ("side", "index", "kind", "told"),
    [
        ("input", 1, "INT64", "x is int64, and the file does not say which numbers it takes; .* ranges: {x: "),
        (
            "input",
            1,
            "FLOAT8E4M3FN",
            "x is float8e4m3fn, .*; convert the file to inputs and outputs of float32; or give its value",
        ),
        (
            "input",
            2,
            "COMPLEX64",
            "s is complex64, and .*; export the file with float32 there.*; or begin each call .* constants.s=0$",
        ),
        (
            "output",
            1,
            "BOOL",
            r"total is bool, and .*; export .* cast it inside; or compare the others \(--set 'outputs=\[y\]'\)$",
        ),
    ],
)
def test_types_that_are_not_fed_or_compared_are_refused(tmp_path, side, index, kind, told):
    proto = files.odd()
    getattr(proto.graph, side)[index].type.tensor_type.elem_type = getattr(TensorProto, kind)
    with pytest.raises(ModelFileError, match=told):
        network(files.saved(proto, tmp_path / "odd.onnx"), **ODD)


def test_a_link_keeps_its_name(tmp_path):
    """Caches of models keep a file by its digest, without the suffix that says its format, and a link to it."""
    files.saved(files.odd(), tmp_path / "5f3c")
    (tmp_path / "odd.onnx").symlink_to("5f3c")
    found = network(tmp_path / "odd.onnx", **ODD)
    assert run_reference(found, Weights(), draw_inputs(found, 2, 1, 0)).y.shape == (2, 1, 9)


def test_a_constant_must_be_one_of_its_type(tmp_path):
    proto = files.odd()
    proto.graph.input[3].type.tensor_type.elem_type = TensorProto.INT8
    path = files.saved(proto, tmp_path / "odd.onnx")
    for value in (300, 0.5, -129):
        with pytest.raises(ModelFileError, match=f"the constant gain is int8, which cannot be {value}"):
            network(path, **{**ODD, "constants": {"gain": value}})
    assert network(path, **{**ODD, "constants": {"gain": 2.0}}).constant_arrays(1)["gain"] == 2


def test_a_file_that_changed_since_is_refused(tmp_path):
    path = files.saved(files.odd(), tmp_path / "odd.onnx")
    found = network(path, **ODD)
    proto = files.odd()
    proto.producer_name = "another"
    files.saved(proto, path)
    with pytest.raises(ModelFileError, match="has changed since the case was read"):
        run_reference(found, Weights(), draw_inputs(found, 1, 1, 0))


def test_the_next_value_of_a_state_that_is_a_constant_is_left_out(tmp_path):
    path = files.saved(files.recurrent("LSTM"), tmp_path / "network.onnx")
    found = network(path, state={}, constants={"h0": 0, "c0": 0})
    assert [array.name for array in found.results] == ["y"]
    assert not found.states


def test_an_axis_of_a_size_of_its_own_is_not_time(tmp_path):
    path = files.saved(files.recurrent("GRU", direction="bidirectional"), tmp_path / "network.onnx")
    description = replace(describe(path), state=())
    section = FileSection(path.name, constants={"h0": 0}, time=0, batch=1)
    with pytest.raises(ModelFileError, match=r"hn has no axis of time.*sizes: \{\w+\.0: 2\}"):
        network_of(path, section, description)


def test_an_axis_of_another_fixed_size_is_not_time(tmp_path):
    """As of a network that gives its last state, exported for five steps."""
    proto = files.recurrent("GRU")
    for value in (proto.graph.input[0], proto.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_value = 5
    path = files.saved(proto, tmp_path / "network.onnx")
    section = FileSection(path.name, constants={"h0": 0}, time=0, batch=1)
    with pytest.raises(ModelFileError, match=r"hn has no axis of time.*sizes: \{\w+\.0: 16\}"):
        network_of(path, section, replace(describe(path), state=()))


def test_a_longer_stream_of_whole_numbers_begins_as_a_shorter_one(tmp_path):
    proto = files.embedding()
    proto.graph.input.extend(files.arrays(("more", files.INT64, ["B"])))
    path = files.saved(proto, tmp_path / "tokens.onnx")
    found = describe(path)
    section = FileSection(path.name, {"h": "next_h"}, batch=0)
    tokens = network_of(path, section, found, UserInputs(ranges={"tokens": (0, 9), "more": (5, 7)}))
    short, long = (draw_inputs(tokens, steps, 2, 0) for steps in (4, 64))
    np.testing.assert_array_equal(short, long[:4])
    assert {*np.unique(long[..., 0])} == {*range(10)}
    assert {*np.unique(long[..., 1])} == {5, 6, 7}


@pytest.mark.parametrize("shape", [(1, 1), ()])
def test_true_and_false_are_new_in_each_call(tmp_path, shape):
    path = files.saved(files.reset(shape), tmp_path / "reset.onnx")
    found = describe(path)
    answers = ["outputs=[y]", *(["ranges.reset=[0, 1]"] if not shape else [])]
    section = answered(section_of(found, path.name), found, answers)
    assert not open_questions(section, found, keys_of(answers))
    flagged = network_of(path, section, found, UserInputs(ranges=section.ranges))
    assert (flagged.input, flagged.ranges, flagged.takes_any_number) == (4, (("reset", 0, 1),), False)
    x, state = draw_inputs(flagged, 32, 1, 0), draw_state(flagged, 1, 0)
    assert {*np.unique(x[..., 3])} == {0, 1}
    run, session, h = (
        run_reference(flagged, Weights(), x, state),
        onnxruntime.InferenceSession(str(path)),
        state["h"][0],
    )
    for step, y in zip(x, run.y, strict=True):
        theirs, h = session.run(
            ["y", "next_h"], {"x": step[:, :3], "h": h, "reset": np.array(step[:, 3:].reshape(shape) > 0)}
        )
        np.testing.assert_allclose(y, theirs, atol=2e-6)


def test_true_and_false_have_no_other_range(tmp_path):
    path = files.saved(files.reset(), tmp_path / "reset.onnx")
    with pytest.raises(ModelFileError, match="the range of reset is 0 to 2; it is true or false"):
        network_of(path, section_of(describe(path), path.name), describe(path), UserInputs(ranges={"reset": (0, 2)}))


def test_outputs_that_are_not_compared_are_left_out(tmp_path):
    path = files.saved(files.reset(), tmp_path / "reset.onnx")
    with pytest.raises(ModelFileError, match=r"largest is int64, .* \(--set 'outputs=\[y\]'\)"):
        network(path)
    assert network(path, outputs=("y",)).called == "x [1, 3], reset [1, 1], h → next_h [1, 4]: y [1, 2]"
    with pytest.raises(ModelFileError, match="it has no output z; its outputs are y, next_h, largest"):
        network(path, outputs=("z",))


@pytest.mark.parametrize(
    ("shape", "told", "rows", "axis"),
    [
        ((4, 4), 1, 4, 1),
        (("n", 2), None, 2, 0),
        ((4, 2), None, 2, 1),
        ((1, 4), None, 1, None),
        ((2, 4), None, None, None),
    ],
    ids=["told", "open", "as many as rows", "of one row", "of an unknown number of rows"],
)
def test_the_batch_of_a_state_is_the_told_axis_or_the_open_one_or_that_of_the_rows(shape, told, rows, axis):
    stream = ArrayDescription("x", "input", ("t", "b", 3), "float32", time=0, batch=1)
    state = ArrayDescription("h", "state", shape, "float32", batch=told)
    assert batch_axis(state, rows, 1, stream) == axis


def test_a_state_of_as_many_units_as_rows_is_refused_where_its_batch_is_not_clear(tmp_path):
    proto = files.recurrent("GRU", hidden=2)
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[1].dim_value = 2
    description = describe(files.saved(proto, tmp_path / "network.onnx"))
    arrays = [replace(a, shape=(2, 2), batch=None) if a.name in ("h0", "hn") else a for a in description.arrays]
    found = replace(description, arrays=tuple(arrays))
    with pytest.raises(ModelFileError, match="h0 has 2 axes of 2 elements, so its batch may be any of them"):
        network_of(tmp_path / "network.onnx", section_of(found, "network.onnx"), found)


@pytest.mark.parametrize(
    ("file", "label"),
    [("a/b.onnx", "b"), ("my net.pt2", "my-net"), ("../vad/saved_model.pb", "vad"), ("saved_model.pb", "vad")],
)
def test_a_network_is_called_as_its_file_and_a_saved_model_as_its_folder(tmp_path, file, label):
    found = network(files.saved(files.odd(), tmp_path / "odd.onnx"), **ODD)
    named = found.model_copy(update={"file": file, "path": f"/models/vad/{file.rpartition('/')[2]}"})
    assert named.label == label


@pytest.mark.parametrize(("kind", "dtype"), [(TensorProto.FLOAT16, "float16"), (TensorProto.DOUBLE, "float64")])
def test_a_file_is_called_in_the_type_of_its_arrays(tmp_path, kind, dtype):
    found = network(files.saved(files.typed(files.recurrent("GRU"), kind), tmp_path / "network.onnx"))
    assert found.refusal(time="given", state="stitched", chunk=1, batch=1, dtype=dtype) is None
    refused = found.refusal(time="given", state="stitched", chunk=1, batch=1, dtype="float32")
    assert refused == ("dtype", f"network.onnx is called in {dtype}, not float32: write dtype: {dtype}")
    assert found.called == f"x [n, batch, 3], h0 → hn [1, batch, 4] {dtype}: y [n, batch, 4]"
    assert draw_state(found, 2, 0, dtype)["h0"].dtype == dtype
    itemsize, shape = np.dtype(dtype).itemsize, 3 * 8
    assert found.weights == (3 * 4 * (3 + 4 + 2) * itemsize + shape) // itemsize


def test_the_reference_of_a_file_in_float16_is_that_of_its_values_in_float64(tmp_path):
    proto = files.typed(files.recurrent("GRU"), TensorProto.FLOAT16)
    narrow = network(files.saved(proto, tmp_path / "narrow.onnx"))
    wide = network(files.saved(files.typed(proto, TensorProto.DOUBLE), tmp_path / "wide.onnx"))
    x, state = draw_inputs(narrow, 5, 2, 0, "float16"), draw_state(narrow, 2, 0, "float16")
    np.testing.assert_array_equal(
        run_reference(narrow, Weights(), x, state).y, run_reference(wide, Weights(), x, state).y
    )


def test_roundings_are_as_fine_as_the_file_computes(tmp_path):
    """A file in float16 has those of float16, also where its inputs and outputs are cast; one in float64 its own."""
    protos = {
        "float16": files.typed(files.cell("x", ["h"], ["next_h"]), TensorProto.FLOAT16),
        "float32": files.kept_in_float32(files.typed(files.cell("x", ["h"], ["next_h"]), TensorProto.FLOAT16)),
        "float64": files.typed(files.cell("x", ["h"], ["next_h"]), TensorProto.DOUBLE),
    }
    sizes = {"float16": (1e-4, 1e-2), "float32": (1e-4, 1e-2), "float64": (1e-17, 1e-14)}
    for dtype, proto in protos.items():
        found = network(files.saved(proto, tmp_path / f"{dtype}.onnx"), state={"h": "next_h"})
        x = np.repeat(draw_inputs(found, 4, 1, 0, dtype), 9, axis=1)
        noisy = run_in(RandomRounding(found.arithmetic_of(dtype), 0, 1), found, Weights(), x).y
        low, high = sizes[dtype]
        assert low < np.abs(noisy[:, 1:] - noisy[:, :1]).max() < high


def test_an_input_of_float16_beside_one_of_float32_gets_what_float16_can_be(tmp_path):
    proto = files.odd()
    proto.graph.input[1].type.tensor_type.elem_type = TensorProto.FLOAT16
    proto.graph.node[0].input[0] = "x32"
    proto.graph.node.insert(0, helper.make_node("Cast", ["x"], ["x32"], to=TensorProto.FLOAT))
    found = network(files.saved(proto, tmp_path / "mixed.onnx"), **ODD)
    assert found.dtype == "float32"
    x = draw_inputs(found, 4, 2, 0)
    np.testing.assert_array_equal(x[..., 3:], x[..., 3:].astype(np.float16))
    assert (x[..., :3] != x[..., :3].astype(np.float16)).any()


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8])
def test_a_state_of_whole_numbers_is_drawn_as_a_run_gives_it_and_is_never_rounded(tmp_path, kind):
    found = numbered(files.saved(files.ring_buffer(kind), tmp_path / "ring.onnx"))
    state = draw_state(found, 2, 0)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    assert (state["step"].dtype, state["buffer"].dtype) == (dtype, np.float32)
    np.testing.assert_array_equal(state["step"], np.full((1, 2, 1), 3))
    run = run_in(RandomRounding("float32", 0, 1), found, Weights(), draw_inputs(found, 6, 2, 0), state)
    np.testing.assert_array_equal(run.states["step"].ravel(), np.repeat([0, 1, 2, 3, 0, 1], 2))
    narrow = run_in(Arithmetic("float32"), found, Weights(), draw_inputs(found, 1, 2, 0), state).states
    assert (narrow["step"].dtype, narrow["buffer"].dtype) == (np.float64, np.float32)


def test_a_cell_of_whole_numbers_and_floats_gives_its_floats(tmp_path):
    proto = files.ring_buffer(TensorProto.INT64)
    del proto.graph.output[0]
    found = numbered(files.saved(proto, tmp_path / "ring.onnx"))
    assert [array.name for array in found.results] == ["next_buffer"]


def test_inputs_of_several_numbers_of_steps_are_refused(tmp_path):
    """A call has one number of steps."""
    nodes = [
        helper.make_node("ReduceMean", ["z"], ["middle"], axes=[0]),
        helper.make_node("Add", ["x", "middle"], ["y"]),
    ]
    ends = files.arrays(("x", (4, 1, 3)), ("z", (6, 1, 3))), files.arrays(("y", (4, 1, 3)))
    path = files.saved(files.model(nodes, *ends), tmp_path / "two.onnx")
    with pytest.raises(ModelFileError, match=r"its inputs have \[4, 6\] steps or rows, and one number is needed"):
        network(path, time=0, batch=1)


def test_a_next_value_of_another_type_than_its_state_is_refused(tmp_path):
    nodes = [
        helper.make_node("Add", ["x", "h"], ["y"]),
        helper.make_node("Cast", ["y"], ["next_h"], to=TensorProto.DOUBLE),
    ]
    ends = (
        files.arrays(("x", (1, 4)), ("h", (1, 4))),
        files.arrays(("y", (1, 4)), ("next_h", TensorProto.DOUBLE, (1, 4))),
    )
    path = files.saved(files.model(nodes, *ends), tmp_path / "wide.onnx")
    with pytest.raises(
        ModelFileError, match=r"h is float32 \[1, 4\] and next_h is float64 \[1, 4\], so the one cannot"
    ):
        network(path, state={"h": "next_h"})
