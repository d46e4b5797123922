"""TFLite files: what is in them, what they give in float64, and what is refused."""

from __future__ import annotations

import random
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest
import tflite_files as files
from ai_edge_litert.interpreter import Interpreter

from rnnbench.model_files import ModelFileError, check_state, describe, main_first, oracle_of, section_of
from rnnbench.model_files.formats.tflite import oracle
from rnnbench.model_files.formats.tflite.file import read_tflite
from rnnbench.model_files.formats.tflite.rewriting import with_float_ends
from rnnbench.rnn import Arithmetic, RandomRounding


@pytest.fixture
def path(tmp_path):
    return files.saved(files.elman(), tmp_path / "cell.tflite")


def test_arrays_and_states_are_those_of_the_signature(path):
    found = describe(path)
    assert [(a.name, a.role, a.shape, a.batch) for a in found.arrays] == [
        ("x", "input", ("batch", 3), 0),
        ("h", "state_in", ("batch", 4), 0),
        ("h_out", "state_out", ("batch", 4), 0),
        ("y", "output", ("batch", 2), 0),
    ]
    assert (found.format, found.operators["FULLY_CONNECTED"], found.questions) == ("tflite", 3, ())
    assert found.weight_bytes == 4 * (4 * 3 + 4 + 4 * 4 + 2 * 4)


def test_its_weights_have_the_names_of_their_tensors(path):
    found = {name: array.shape for name, array in oracle_of(path).weights()}
    assert sorted(found.values()) == [(2, 4), (4,), (4, 3), (4, 4)]
    assert "a tensor without a name" not in found


def test_the_oracle_gives_what_litert_gives(path):
    interpreter = Interpreter(str(path))
    draw = np.random.default_rng(1)
    x, h = (draw.standard_normal((1, size)).astype(np.float32) for size in (3, 4))
    theirs, ours = interpreter.get_signature_runner()(x=x, h=h), oracle_of(path).run({"x": x, "h": h})
    for name, array in ours.items():
        assert array.dtype == np.float64
        np.testing.assert_allclose(array, theirs[name], atol=1e-6)


def test_roundings_are_those_of_the_arithmetic(path):
    given = {"x": np.ones((2, 3)), "h": np.ones((2, 4))}
    exact = oracle_of(path)
    y = exact.run(given)["y"]
    single = exact.in_arithmetic(Arithmetic("float32")).run(given)["y"]
    assert single.dtype == np.float32
    noisy = exact.in_arithmetic(RandomRounding("float32", 0, 0)).run(given)["y"]
    assert 1e-9 < np.abs(noisy - y).max() < 1e-5
    assert np.abs(single - y).max() < 1e-5


@pytest.mark.parametrize("moves", [True, False])
def test_its_state_is_checked(tmp_path, moves):
    path = files.saved(files.elman(moves=moves), tmp_path / "cell.tflite")
    found = describe(path)
    check = check_state(oracle_of(path), found, section_of(found, path.name))
    assert check.ok == moves
    assert check.lost == (() if moves else ("h",))


def changed(change):
    writer = files.elman()
    change(writer)
    return writer.packed()


def giant(writer):
    writer.graph.tensors[0].shape = [2**31 - 1, 2**31 - 1]


def too_little(writer):
    writer.model.buffers[1].data = writer.model.buffers[1].data[:-1]


def unknown_tensor(writer):
    writer.graph.operators[0].inputs = [99, 1, 2]


def other_signatures(writer):
    (signature,) = writer.model.signatureDefs
    other = files.schema.SignatureDefT()
    other.signatureKey, other.inputs, other.outputs, other.subgraphIndex = b"b", signature.inputs, [], 0
    signature.signatureKey = b"a"
    writer.model.signatureDefs.append(other)


def test_a_signature_without_inputs_is_passed_over(tmp_path):
    """Such as `init`, which gives the state that a stream begins with."""
    writer = files.elman()
    other_signatures(writer)
    writer.model.signatureDefs[1].inputs = []
    assert read_tflite(files.saved(writer, tmp_path / "two.tflite")).signature == "a"


def started_variable(writer):
    writer.graph.tensors[writer.graph.operators[0].inputs[1]].isVariable = True


def no_graph(writer):
    writer.model.signatureDefs[0].subgraphIndex = 7


def branch_without_options(writer):
    operator = writer.graph.operators[0]
    writer.operator("IF", operator.inputs, operator.outputs[0])


def unprintable_name(writer):
    writer.model.signatureDefs[0].outputs[0].name = b"y\x80" * 200


REFUSED = {
    "empty": (lambda: b"", "it is empty"),
    "another": (lambda: b"\0\1\2\3" * 20, "no TFLite file"),
    "cut": (lambda: files.elman().packed()[:300], "damaged or cut short"),
    "giant": (lambda: changed(giant), "that many elements are not read"),
    "too little": (lambda: changed(too_little), "47 bytes of data, where its shape [4, 3] of float32 calls for 48"),
    "unknown": (lambda: changed(unknown_tensor), "names a tensor that does not exist"),
    "started variable": (lambda: changed(started_variable), "tensor 'W' is a variable that begins with a value"),
    "signatures": (lambda: changed(other_signatures), "it has the signatures a, b"),
    "unprintable": (lambda: changed(unprintable_name), "up to 200 printable characters are read"),
    "branch": (
        lambda: changed(branch_without_options),
        "its operator IF has no options of its own",
    ),
    "no graph": (lambda: changed(no_graph), "its signature is of graph 7, and it has 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_a_sentence(tmp_path, name):
    make, told = REFUSED[name]
    (tmp_path / "cell.tflite").write_bytes(make())
    with pytest.raises(ModelFileError) as caught:
        describe(tmp_path / "cell.tflite")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_variables_are_states_and_constants(tmp_path):
    found = describe(files.saved(files.in_variables(start=0.5, gain=2.0), tmp_path / "cell.tflite"))
    assert [(a.name, a.role, a.shape, a.has_start) for a in found.arrays] == [
        ("x", "input", (1, 3), False),
        ("cell/h", "state_in", (1, 4), True),
        ("y", "output", (1, 2), False),
        ("cell/h_next", "state_out", (1, 4), False),
    ]
    assert [(pair.before, pair.after, pair.found) for pair in found.state] == [("cell/h", "cell/h_next", "traced")]
    assert found.questions == ()
    assert "cell/h begins in the file with values that are not zero" in found.notes[0]


def test_a_stream_is_what_litert_gives_with_the_variables(tmp_path):
    """The interpreter goes on from call to call in the file as it is."""
    path = files.saved(files.in_variables(start=0.5, gain=2.0), tmp_path / "cell.tflite")
    runner, oracle = Interpreter(str(path)).get_signature_runner(), oracle_of(path)
    h = np.full((1, 4), 0.5)
    for x in np.random.default_rng(1).standard_normal((5, 1, 3)).astype(np.float32):
        given = oracle.run({"x": x, "cell/h": h})
        np.testing.assert_allclose(given["y"], runner(x=x)["y"], atol=1e-6)
        h = given["cell/h_next"]


def test_a_variable_may_be_assigned_before_it_is_read_and_more_than_once(tmp_path):
    """Then its old value reaches nothing, and the last value counts."""
    writer = files.in_variables()
    operators = writer.graph.operators
    assign = operators.pop()
    second = [*operators[:2], files.deepcopy(assign), *operators[2:], assign]
    second[2].inputs = [assign.inputs[0], writer.constant("other", np.ones((1, 4), np.float32))]
    writer.graph.operators = second
    path = files.saved(writer, tmp_path / "cell.tflite")
    assert describe(path).state == ()
    x = np.ones((1, 3), np.float32)
    np.testing.assert_allclose(
        oracle_of(path).run({"x": x})["y"], Interpreter(str(path)).get_signature_runner()(x=x)["y"], atol=1e-6
    )


def test_a_state_that_is_the_input_itself_is_a_copy_of_it(tmp_path):
    """As the last frame that was heard. No runtime has to give one array as an input and an output."""
    writer = files.in_variables()
    (x,) = writer.graph.inputs
    wide = writer.value("wide", [1, 4])
    writer.ends({"x": x, "wide": wide}, {"y": writer.graph.outputs[0]})
    writer.graph.operators[-1].inputs = [writer.graph.operators[-1].inputs[0], wide]
    path = files.saved(writer, tmp_path / "cell.tflite")
    given = {"x": np.ones((1, 3)), "wide": np.arange(4.0).reshape(1, 4), "cell/h": np.zeros((1, 4))}
    np.testing.assert_array_equal(oracle_of(path).run(given)["cell/h_next"], given["wide"])
    interpreter = Interpreter(model_content=with_float_ends(path)).get_signature_runner()
    theirs = interpreter(**{name: array.astype(np.float32) for name, array in given.items()})
    np.testing.assert_array_equal(theirs["cell/h_next"], given["wide"])


def handle_elsewhere(writer):
    writer.operator("RESHAPE", [next(o.outputs[0] for o in writer.graph.operators if o.outputs and not o.inputs)], 0)


def without_a_value(writer):
    writer.model.subgraphs[1].operators = writer.model.subgraphs[1].operators[:2]


def unknown_handle(writer):
    writer.graph.operators[-1].inputs = [0, 1]


def unknown_graph(writer):
    writer.graph.operators[0].builtinOptions.initSubgraphIndex = 7


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (handle_elsewhere, "the operator RESHAPE gets a variable, which is not followed; export the network with its"),
        (without_a_value, "the variable 'gain' is read, and the file has no value for it"),
        (unknown_handle, "it reads or changes a variable that comes from outside its graph"),
        (unknown_graph, "an operator names a graph that does not exist"),
    ],
)
def test_variables_that_cannot_be_followed_are_refused(tmp_path, change, told):
    writer = files.in_variables(gain=2.0)
    change(writer)
    with pytest.raises(ModelFileError) as caught:
        describe(files.saved(writer, tmp_path / "cell.tflite"))
    assert told in str(caught.value)


def test_an_operator_that_is_not_computed_here_has_no_oracle(tmp_path):
    writer = files.elman()
    writer.operator("HASHTABLE_LOOKUP", [0], 0)
    path = files.saved(writer, tmp_path / "cell.tflite")
    assert describe(path).operators["HASHTABLE_LOOKUP"] == 1
    with pytest.raises(ModelFileError, match="the operator HASHTABLE_LOOKUP is not computed here"):
        oracle_of(path)


def test_damaged_bytes_never_raise_anything_else(tmp_path):
    good, draw, path = files.elman().packed(), random.Random(0), tmp_path / "cell.tflite"
    refused = 0
    for _ in range(300):
        data = bytearray(good[: draw.randrange(8, len(good) + 1)])
        for _ in range(draw.randrange(1, 9)):
            data[draw.randrange(8, len(data)) if len(data) > 8 else 0] = draw.randrange(256)
        path.write_bytes(data)
        try:
            describe(path)
        except ModelFileError:
            refused += 1
    assert refused > 100


def test_the_graph_that_is_read_comes_first_with_the_numbers_of_all(tmp_path):
    writer = files.elman()
    writer.operator("WHILE", [0], 0, "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=0)
    path = files.saved(files.behind_another(writer), tmp_path / "cell.tflite")
    before = read_tflite(path)
    path.write_bytes(main_first(path))
    after = read_tflite(path)
    assert (before.main, after.main) == (1, 0)
    assert (after.inputs, after.outputs, after.signature) == (before.inputs, before.outputs, before.signature)
    assert [operator.name for operator in after.graphs[0].operators] == [
        operator.name for operator in before.graphs[1].operators
    ]
    loop = after.graphs[0].operators[-1].options
    assert (loop.CondSubgraphIndex(), loop.BodySubgraphIndex()) == (0, 1)
    assert main_first(path) == path.read_bytes()


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("FLOOR_MOD", [[-1, 5, 4], [4, 4, 4]], [3, 1, 0]),
        ("FLOOR_DIV", [[-1, 5, 8], [4, 4, 4]], [-1, 1, 2]),
        ("DIV", [[-7, 7, 8], [4, 4, 4]], [-1, 1, 2]),
        ("SCATTER_ND", [[[3], [0]], [5, 7], [4]], [7, 0, 0, 5]),
    ],
)
def test_operators_of_positions_give_what_litert_gives(tmp_path, name, given, expected):
    arrays, writer = [np.array(each, np.int32) for each in given], files.Writer()
    numbers = [writer.value(f"x{index}", array.shape, "int32") for index, array in enumerate(arrays)]
    made = writer.value("y", np.shape(expected), "int32")
    writer.operator(name, numbers, made, "DivOptions" if name == "DIV" else "")
    writer.ends({f"x{index}": number for index, number in enumerate(numbers)}, {"y": made})
    path = files.saved(writer, tmp_path / "one.tflite")
    inputs = {f"x{index}": array for index, array in enumerate(arrays)}
    np.testing.assert_array_equal(oracle_of(path).run(inputs)["y"], expected)
    runner = Interpreter(model_path=str(path)).get_signature_runner()
    np.testing.assert_array_equal(runner(**inputs)["y"], expected)


def of_one(tmp_path, name, arrays, shape, options="", **fields):
    """A file of one operator, of these inputs and constants (whole numbers), and what LiteRT gives of it."""
    writer, inputs = files.Writer(), {}
    numbers = []
    for index, array in enumerate(arrays):
        if array.dtype.kind == "f":
            inputs[f"x{index}"] = array
            numbers.append(writer.value(f"x{index}", array.shape))
        else:
            numbers.append(writer.constant(f"c{index}", array))
    made = writer.value("y", shape, fields.pop("made", "float32"))
    writer.operator(name, numbers, made, options, **fields)
    writer.ends({name: numbers[int(name[1:])] for name in inputs}, {"y": made})
    path = files.saved(writer, tmp_path / "one.tflite")
    return path, inputs, Interpreter(model_path=str(path)).get_signature_runner()(**inputs)["y"]


DRAWN = np.random.default_rng(3).standard_normal((2, 4, 6, 3)).astype(np.float32)


def whole(*values):
    return np.array(values, np.int32)


OPERATORS = {
    "RESHAPE": ([DRAWN[:1, :1, :1, 0], np.zeros(0, np.int32)], (), ""),
    "GATHER_ND": ([DRAWN, whole([0, 1], [1, 3])], (2, 6, 3), ""),
    "PRELU": ([DRAWN, DRAWN[0, 0, 0]], DRAWN.shape, ""),
    "FLOOR": ([DRAWN * 3], DRAWN.shape, ""),
    "CEIL": ([DRAWN * 3], DRAWN.shape, ""),
    "ROUND": ([np.rint(DRAWN * 6) / 2], DRAWN.shape, ""),
    "SIGN": ([DRAWN], DRAWN.shape, ""),
    "CUMSUM": ([DRAWN, whole(2)[0]], DRAWN.shape, "CumsumOptions", {"exclusive": True, "reverse": True}),
    "REDUCE_PROD": ([DRAWN, whole(1)], (2, 6, 3), "ReducerOptions"),
    "ARG_MAX": ([DRAWN, whole(2)[0]], (2, 4, 3), "ArgMaxOptions", {"made": "int32", "outputType": 2}),
    "MIRROR_PAD": ([DRAWN, whole([0, 0], [1, 2], [2, 0], [0, 0])], (2, 7, 8, 3), "MirrorPadOptions", {"mode": 0}),
    "SPACE_TO_BATCH_ND": ([DRAWN, whole(2, 3), whole([1, 1], [0, 0])], (12, 3, 2, 3), ""),
    "BATCH_TO_SPACE_ND": ([DRAWN, whole(2, 1), whole([1, 0], [0, 2])], (1, 7, 4, 3), ""),
    "RESIZE_NEAREST_NEIGHBOR": ([DRAWN, whole(7, 4)], (2, 7, 4, 3), "ResizeNearestNeighborOptions"),
    "L2_NORMALIZATION": ([DRAWN], DRAWN.shape, "L2NormOptions"),
    "LOG_SOFTMAX": ([DRAWN], DRAWN.shape, "LogSoftmaxOptions"),
    "ADD_N": ([DRAWN, DRAWN + 1], DRAWN.shape, ""),
    "EMBEDDING_LOOKUP": ([whole(2, 0, 2), DRAWN[0]], (3, 6, 3), ""),
}


FORMS = [
    (
        "STRIDED_SLICE",
        [DRAWN, whole(0, 0, 1), whole(0, 0, 3), whole(1, 1, 1)],
        (2, 4, 6, 1, 2),
        "StridedSliceOptions",
        {"ellipsisMask": 1, "newAxisMask": 2},
    ),
    ("SELECT", [np.array([True, False]), DRAWN, -DRAWN], DRAWN.shape, "SelectOptions", {}),
    ("GATHER", [DRAWN, whole([3, 0], [1, 1])], (2, 2, 6, 3), "GatherOptions", {"axis": 1, "batchDims": 1}),
    ("GATHER", [DRAWN, whole(3, 1)], (2, 6, 3), "GatherOptions", {"axis": 1, "batchDims": 1}),
    ("REVERSE_SEQUENCE", [DRAWN, whole(3, 1)], DRAWN.shape, "ReverseSequenceOptions", {"seqDim": 1, "batchDim": 0}),
    (
        "REVERSE_SEQUENCE",
        [DRAWN, whole(2, 3, 1, 0)],
        DRAWN.shape,
        "ReverseSequenceOptions",
        {"seqDim": 3, "batchDim": 1},
    ),
    ("DEPTH_TO_SPACE", [np.tile(DRAWN, (1, 1, 1, 4))], (2, 8, 12, 3), "DepthToSpaceOptions", {"blockSize": 2}),
    ("SPACE_TO_DEPTH", [DRAWN], (2, 2, 3, 12), "SpaceToDepthOptions", {"blockSize": 2}),
    ("RESIZE_BILINEAR", [DRAWN, whole(7, 4)], (2, 7, 4, 3), "ResizeBilinearOptions", {}),
    ("RESIZE_BILINEAR", [DRAWN, whole(7, 4)], (2, 7, 4, 3), "ResizeBilinearOptions", {"halfPixelCenters": True}),
    ("RESIZE_BILINEAR", [DRAWN, whole(7, 4)], (2, 7, 4, 3), "ResizeBilinearOptions", {"alignCorners": True}),
    ("L2_NORMALIZATION", [DRAWN * 1e-4], DRAWN.shape, "L2NormOptions", {}),
    # The options are left out.
    ("ADD", [DRAWN, DRAWN + 1], DRAWN.shape, "", {}),
    ("MUL", [DRAWN, DRAWN + 1], DRAWN.shape, "", {}),
    ("FULLY_CONNECTED", [DRAWN, DRAWN[0, 0, :5]], (48, 5), "", {}),
    ("BATCH_MATMUL", [DRAWN, DRAWN.swapaxes(2, 3).copy()], (2, 4, 6, 6), "", {}),
    ("CONCATENATION", [DRAWN, DRAWN + 1], (4, 4, 6, 3), "", {}),
    ("STRIDED_SLICE", [DRAWN, whole(0, 0, 1, 0), whole(1, 2, 3, 3), whole(1, 1, 1, 1)], (1, 2, 2, 3), "", {}),
    ("SUM", [DRAWN, whole(1)], (2, 6, 3), "", {}),
    ("GATHER", [DRAWN, whole(1, 0)], DRAWN.shape, "", {}),
    # They are those of another operator.
    ("ADD", [DRAWN, DRAWN + 1], DRAWN.shape, "MulOptions", {"fusedActivationFunction": 1}),
    ("FULLY_CONNECTED", [DRAWN, DRAWN[0, 0, :5]], (48, 5), "ReshapeOptions", {}),
]
"""Further operators, and other forms of these."""


@pytest.mark.parametrize(("name", "arrays", "shape", "options", "fields"), FORMS)
def test_forms_of_operators_give_what_litert_gives(tmp_path, name, arrays, shape, options, fields):
    path, inputs, expected = of_one(tmp_path, name, arrays, shape, options, **fields)
    np.testing.assert_allclose(oracle_of(path).run(inputs)["y"], expected, rtol=1e-5, atol=1e-6)


def test_a_convolution_in_groups_is_litert_s(tmp_path):
    x, writer = np.tile(DRAWN, (1, 1, 1, 2)), files.Writer()
    weights = np.random.default_rng(4).standard_normal((6, 2, 3, 2)).astype(np.float32)
    numbers = [writer.value("x", x.shape), writer.constant("W", weights), writer.constant("b", weights[:, 0, 0, 0])]
    y = writer.value("y", (2, 4, 6, 6))
    strides = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    writer.operator("CONV_2D", numbers, y, "Conv2DOptions", padding=files.schema.Padding.SAME, **strides)
    writer.ends({"x": numbers[0]}, {"y": y})
    path = files.saved(writer, tmp_path / "groups.tflite")
    expected = Interpreter(model_path=str(path)).get_signature_runner()(x=x)["y"]
    np.testing.assert_allclose(oracle_of(path).run({"x": x})["y"], expected, rtol=1e-5, atol=1e-5)


def test_the_largest_elements_and_their_places_are_litert_s(tmp_path):
    writer = files.Writer()
    x, largest = writer.value("x", (2, 5)), writer.value("largest", (2, 3))
    places = writer.value("places", (2, 3), "int32")
    writer.operator("TOPK_V2", [x, writer.constant("k", np.array(3, np.int32))], [largest, places], "TopKV2Options")
    writer.ends({"x": x}, {"largest": largest, "places": places})
    path = files.saved(writer, tmp_path / "largest.tflite")
    given = np.array([[1, 5, 5, 0, 2], [-1, -3, -2, -1, -9]], np.float32)
    theirs, ours = Interpreter(model_path=str(path)).get_signature_runner()(x=given), oracle_of(path).run({"x": given})
    for name in ("largest", "places"):
        np.testing.assert_array_equal(ours[name], theirs[name])


@pytest.mark.parametrize("is_moved", [True, False])
def test_an_output_that_is_computed_from_an_input_alone_is_asked_for(tmp_path, is_moved):
    """As an embedding of a profile, which has a shape of its own. One that is moved is a state that was lost."""
    writer = files.elman(1)
    (x, h), (new, y) = writer.graph.inputs, writer.graph.outputs
    speaker, made = writer.value("profile", [1, 7]), writer.value("made", [1, 7])
    if is_moved:
        writer.operator("RESHAPE", [speaker, writer.constant("same", np.array([1, 7], np.int32))], made)
    else:
        writer.operator("TANH", [speaker], made)
    writer.ends({"x": x, "h": h, "profile": speaker}, {"h_out": new, "y": y, "emb": made})
    found = describe(files.saved(writer, tmp_path / "cell.tflite"))
    assert ("profile", "emb", "shape") in [(p.before, p.after, p.found) for p in found.state] or not is_moved
    asked = [question.text for question in found.questions if question.array == "profile"]
    assert is_moved or asked[0].startswith("is emb its next value? It is computed from profile alone")


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_give_what_litert_gives(tmp_path, name):
    arrays, shape, options, *fields = OPERATORS[name]
    path, inputs, expected = of_one(tmp_path, name, arrays, shape, options, **(dict(*fields)))
    np.testing.assert_allclose(oracle_of(path).run(inputs)["y"], expected, rtol=1e-5, atol=1e-6)
    noisy = oracle_of(path).in_arithmetic(RandomRounding("float32", 0, 0)).run(inputs)["y"]
    np.testing.assert_allclose(noisy, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("padding", "shape"), [("SAME", (2, 8, 6, 5)), ("VALID", (2, 9, 8, 5))])
def test_a_transposed_convolution_is_litert_s(tmp_path, padding, shape):
    weights = np.random.default_rng(4).standard_normal((5, 3, 3, 3)).astype(np.float32)
    options = {"padding": getattr(files.schema.Padding, padding), "strideH": 2, "strideW": 1}
    given = [np.array(shape, np.int32), weights, DRAWN]
    path, inputs, expected = of_one(tmp_path, "TRANSPOSE_CONV", given, shape, "TransposeConvOptions", **options)
    np.testing.assert_allclose(oracle_of(path).run(inputs)["y"], expected, rtol=1e-5, atol=1e-5)
    noisy = oracle_of(path).in_arithmetic(RandomRounding("float32", 0, 0)).run(inputs)["y"]
    assert 0 < np.abs(noisy - oracle_of(path).run(inputs)["y"]).max() < 1e-4


def test_an_output_with_the_name_of_an_input_is_its_next_value(tmp_path):
    writer = files.elman(1)
    (signature,) = writer.model.signatureDefs
    signature.outputs[0].name = b"h"
    path = files.saved(writer, tmp_path / "cell.tflite")
    assert [(pair.before, pair.after) for pair in describe(path).state] == [("h", "h_next")]
    runner = Interpreter(model_content=with_float_ends(path)).get_signature_runner()
    given = {"x": np.ones((1, 3), np.float32), "h": np.ones((1, 4), np.float32)}
    np.testing.assert_allclose(runner(**given)["h_next"], oracle_of(path).run(given)["h_next"], rtol=1e-5)


def test_a_branch_is_the_one_of_its_condition(tmp_path):
    writer = files.Writer()
    x, y, less, zero = (
        writer.value("x", [1]),
        writer.value("y", [1]),
        writer.value("less", [1]),
        np.zeros(1, np.float32),
    )
    writer.graph.tensors[less].type = files.schema.TensorType.BOOL
    writer.operator("LESS", [x, writer.constant("zero", zero)], less, "LessOptions")
    writer.operator("IF", [less, x], y, "IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2)
    main = writer.graph
    for kind in ("NEG", "TANH"):
        writer.graph = files.schema.SubGraphT()
        writer.graph.tensors, writer.graph.operators = [], []
        given, made = writer.value("given", [1]), writer.value("made", [1])
        writer.operator(kind, [given], made)
        writer.graph.inputs, writer.graph.outputs = [given], [made]
        writer.model.subgraphs.append(writer.graph)
    writer.graph = main
    writer.ends({"x": x}, {"y": y})
    path = files.saved(writer, tmp_path / "branch.tflite")
    runner = Interpreter(model_path=str(path)).get_signature_runner()
    for value in (-2.0, 0.5):
        given = {"x": np.array([value], np.float32)}
        np.testing.assert_allclose(oracle_of(path).run(given)["y"], runner(**given)["y"], rtol=1e-6)


def test_branches_that_call_each_other_without_an_end_are_refused(tmp_path):
    """Each graph has two conditions, whose branches are the next graph. So the last one runs 2^40 times."""
    writer = files.Writer()
    main, last = writer.graph, 40
    for number in range(last + 1):
        values = [writer.value(name, [1]) for name in ("given", "between", "made")]
        if number < last:
            flag = writer.constant("flag", np.array([True]))
            branches = {"thenSubgraphIndex": number + 1, "elseSubgraphIndex": number + 1}
            for given, made in pairwise(values):
                writer.operator("IF", [flag, given], made, "IfOptions", **branches)
        writer.graph.inputs, writer.graph.outputs = values[:1], values[-1:]
        if writer.graph is not main:
            writer.model.subgraphs.append(writer.graph)
        writer.graph = files.schema.SubGraphT()
        writer.graph.tensors, writer.graph.operators = [], []
    writer.graph = main
    writer.ends({"x": main.inputs[0]}, {"y": main.outputs[0]})
    path = files.saved(writer, tmp_path / "branches.tflite")
    assert [array.name for array in describe(path).arrays] == ["x", "y"]
    with pytest.raises(ModelFileError, match="a call of it runs more than 100,000 operations"):
        oracle_of(path)


def test_both_branches_of_a_condition_may_be_one_graph(tmp_path):
    """A file with variables is written anew, and its graphs get other numbers, those inside a branch too."""
    writer = files.in_variables()
    main, (x,), (y,) = writer.graph, writer.graph.inputs, writer.graph.outputs

    def add_condition(given, made, branch):
        less, zero = writer.value("less", [1]), writer.constant("zero", np.zeros(1, np.float32))
        writer.graph.tensors[less].type = files.schema.TensorType.BOOL
        writer.operator("LESS", [zero, zero], less, "LessOptions")
        writer.operator("IF", [less, given], made, "IfOptions", thenSubgraphIndex=branch, elseSubgraphIndex=branch)

    chosen = writer.value("chosen", [1, 2])
    add_condition(y, chosen, branch=2)
    for is_condition in (True, False):
        writer.graph = files.schema.SubGraphT()
        writer.graph.tensors, writer.graph.operators = [], []
        given, made = writer.value("given", [1, 2]), writer.value("made", [1, 2])
        if is_condition:
            add_condition(given, made, branch=3)
        else:
            writer.operator("NEG", [given], made)
        writer.graph.inputs, writer.graph.outputs = [given], [made]
        writer.model.subgraphs.append(writer.graph)
    writer.graph = main
    writer.ends({"x": x}, {"y": chosen})
    path = files.saved(writer, tmp_path / "branches.tflite")
    given = np.ones((1, 3), np.float32)
    expected = Interpreter(model_path=str(path)).get_signature_runner()(x=given)["y"]
    stream = oracle_of(path).run({"x": given, "cell/h": np.zeros((1, 4))})
    np.testing.assert_allclose(stream["y"], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("start", "kind", "is_told"),
    [(0.0, "RESHAPE", False), (0.5, "RESHAPE", True), (0.0, "TANH", True), (0.5, "ZEROS_LIKE", False)],
)
def test_a_first_value_that_a_graph_computes_is_told_unless_it_is_zero(tmp_path, start, kind, is_told):
    variables = files.in_variables(start)
    graph = variables.model.subgraphs[1]
    (assignment,) = (operator for operator in graph.operators if len(operator.inputs) == 2)
    called, variables.graph = variables.graph, graph
    made = variables.value("computed", [1, 4])
    variables.operator(kind, [assignment.inputs[1]], made)
    variables.graph = called
    assignment.inputs = [assignment.inputs[0], made]
    found = read_tflite(files.saved(variables, tmp_path / "cell.tflite"))
    assert [variable.has_start for variable in found.variables] == [is_told]


@pytest.mark.parametrize("name", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_windows_are_reduced_as_litert_does(tmp_path, name, padding):
    writer = files.Writer()
    x, y = writer.value("x", (1, 5, 4, 2)), writer.value("y", (1, 2, 4, 2) if padding == "VALID" else (1, 3, 4, 2))
    options = {"padding": getattr(files.schema.Padding, padding), "strideH": 2, "strideW": 1}
    window = {"filterHeight": 3, "filterWidth": 1 if padding == "VALID" else 3}
    writer.operator(name, [x], y, "Pool2DOptions", **options, **window)
    writer.ends({"x": x}, {"y": y})
    path = files.saved(writer, tmp_path / "windows.tflite")
    given = np.random.default_rng(0).standard_normal((1, 5, 4, 2)).astype(np.float32) - 2
    expected = Interpreter(model_path=str(path)).get_signature_runner()(x=given)["y"]
    np.testing.assert_allclose(oracle_of(path).run({"x": given})["y"], expected, rtol=1e-6)
    noisy = oracle_of(path).in_arithmetic(RandomRounding("float32", 0, 0)).run({"x": given})["y"]
    np.testing.assert_allclose(noisy, expected, rtol=1e-5)


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_quantised_ends_are_float32_and_the_oracle_rounds_as_litert_does(tmp_path, kind):
    path = files.saved(files.quantised(files.elman(1), kind), tmp_path / "cell.tflite")
    found = describe(path)
    assert {array.dtype for array in found.arrays} == {"float32"}
    assert (found.activations, [pair.before for pair in found.state]) == ("static", ["h"])
    assert f"x {kind}, h {kind}" in found.notes[0]
    interpreter = Interpreter(model_content=with_float_ends(path))
    runner, exact = interpreter.get_signature_runner(), oracle_of(path)
    nearest = exact.in_arithmetic(Arithmetic("int8_static"))
    theirs, ours = [np.zeros((1, 4), np.float32)] * 2
    differences = []
    for x in np.random.default_rng(1).standard_normal((32, 1, 3)).astype(np.float32) * 2:
        got, made = runner(x=x, h=theirs), nearest.run({"x": x, "h": ours})
        differences.append(np.abs(got["y"] - made["y"]).max())
        theirs, ours = got["h_out"], made["h_out"]
    step = 1.5 / (127 if kind == "int8" else 32767)
    assert max(differences) <= (2.01 if kind == "int8" else 12) * step, np.array(differences) / step


def test_operators_that_are_computed_are_operators_of_the_format():
    """One with another name would never be met, and each file with the right one would be refused."""
    assert set(vars(files.schema.BuiltinOperator)) >= {*oracle._COMPUTED, *oracle._QUANTISED_OPERATORS}


def test_a_quantised_file_saturates_in_float64_and_is_rounded_at_random_by_half_a_step(tmp_path):
    path = files.saved(files.quantised(files.elman(1)), tmp_path / "cell.tflite")
    oracle = oracle_of(path)
    far, end = ({"x": np.full((1, 3), value), "h": np.full((1, 4), value)} for value in (1e4, 5.0))
    assert np.array_equal(oracle.run(far)["y"], oracle.run(end)["y"])
    given = {"x": np.ones((1, 3)), "h": np.ones((1, 4)) / 2}
    exact = oracle.run(given)["y"]
    spread = [
        [
            np.abs(oracle.in_arithmetic(RandomRounding(dtype, seed, 0)).run(given)["y"] - exact).max()
            for seed in range(8)
        ]
        for dtype in ("float32", "int8_static")
    ]
    assert max(spread[0]) < 1e-6
    assert 1.5 / 127 / 4 < max(spread[1]) < 0.2


def test_a_file_with_other_arrays_inside_is_called_with_its_own_first(tmp_path):
    path = files.saved(files.behind_another(files.quantised(files.elman(1))), tmp_path / "cell.tflite")
    whole, first = tmp_path / "whole.tflite", tmp_path / "first.tflite"
    whole.write_bytes(with_float_ends(path))
    first.write_bytes(main_first(path))
    assert [graph.operators[0].name for graph in read_tflite(whole).graphs] == ["FULLY_CONNECTED", "QUANTIZE"]
    assert [graph.operators[0].name for graph in read_tflite(first).graphs] == ["QUANTIZE", "FULLY_CONNECTED"]


def with_whole_weights(kind):
    """R of the cell in bytes of int8, which are called `kind`."""
    writer = files.elman()
    weight = next(each for each in writer.graph.tensors if each.name == b"R")
    quantised = next(e for e in files.quantised(files.elman()).graph.tensors if e.name == b"R").quantization
    values = np.frombuffer(writer.model.buffers[weight.buffer].data.tobytes(), np.float32).reshape(weight.shape)
    data = np.rint(values / quantised.scale[:, None]).astype(np.int8)
    writer.model.buffers[weight.buffer].data = np.frombuffer(data.tobytes(), np.uint8)
    weight.type, weight.quantization = getattr(files.schema.TensorType, kind), quantised
    return writer


def test_weights_in_uint8_are_bytes_of_int8_as_litert_reads_them(tmp_path):
    """TensorFlow 1 wrote them so. R has a scale for each row, which LiteRT has of int8 alone: here it has one."""
    given, made = {"x": np.ones((1, 3), np.float32), "h": np.array([[1.0, 0.301, 0.502, -0.7]], np.float32)}, []
    for kind in ("INT8", "UINT8"):
        writer = with_whole_weights(kind)
        weight = next(each for each in writer.graph.tensors if each.name == b"R")
        weight.quantization = files.scaled(float(weight.quantization.scale[0]))
        path = files.saved(writer, tmp_path / f"{kind}.tflite")
        theirs = Interpreter(model_path=str(path)).get_signature_runner()(**given)["y"]
        made.append(oracle_of(path).in_arithmetic(Arithmetic("int8_dynamic")).run(given)["y"])
        np.testing.assert_allclose(made[-1], theirs, atol=0.01)
    np.testing.assert_array_equal(*made)


def test_an_operand_that_takes_its_own_range_is_quantised_by_it(tmp_path):
    path = files.saved(with_whole_weights("INT8"), tmp_path / "cell.tflite")
    assert describe(path).activations == "dynamic"
    given, oracle = {"x": np.ones((1, 3)), "h": np.array([[1.0, 0.301, 0.502, -0.7]])}, oracle_of(path)
    y = [oracle.in_arithmetic(Arithmetic(dtype)).run(given)["y"] for dtype in ("float64", "int8_dynamic")]
    assert 1e-6 < np.abs(y[0] - y[1]).max() < 0.02


@pytest.mark.parametrize(("where", "why"), [("tanh", "SIN is not computed here of such"), ("x", "ranges of its own")])
def test_quantised_arrays_that_are_not_computed_are_refused_and_told_what_to_do(tmp_path, where, why):
    writer = files.quantised(files.elman(1))
    if where == "tanh":
        writer.model.operatorCodes[3].builtinCode = writer.model.operatorCodes[3].deprecatedBuiltinCode = (
            files.schema.BuiltinOperator.SIN
        )
    else:
        tensor = writer.graph.tensors[writer.graph.inputs[0]]
        tensor.type, tensor.quantization = files.schema.TensorType.FLOAT32, None
    path = files.saved(writer, tmp_path / "quantised.tflite")
    for read in (describe, oracle_of):
        with pytest.raises(ModelFileError) as caught:
            read(path)
        assert why in str(caught.value)
        assert "supported_types = [tf.float16]" in str(caught.value)


def test_an_operator_is_refused_before_an_output_of_whole_numbers_with_a_scale(tmp_path):
    """As of a file for a microcontroller, whose tensors have no names."""
    writer = files.quantised(files.elman(1))
    for tensor in writer.graph.tensors:
        tensor.name = b""
    writer.graph.tensors[writer.graph.outputs[0]].type = files.schema.TensorType.INT64
    path = files.saved(writer, tmp_path / "words.tflite")
    with pytest.raises(ModelFileError, match="without a name is quantised: int64, and no int8") as caught:
        describe(path)
    assert "supported_types = [tf.float16]" in str(caught.value)
    code = writer.model.operatorCodes[3]
    code.builtinCode = code.deprecatedBuiltinCode = files.schema.BuiltinOperator.SIN
    with pytest.raises(ModelFileError, match="and SIN is not computed here"):
        describe(files.saved(writer, path))


def test_scales_that_do_not_fit_are_refused(tmp_path):
    writer = files.quantised(files.elman(1))
    writer.graph.tensors[0].quantization.scale = np.array([0.1, 0.2], np.float32)
    with pytest.raises(ModelFileError, match="2 scales, which do not fit its shape"):
        describe(files.saved(writer, tmp_path / "cell.tflite"))


ZEROS = {name: np.zeros((1, 4), np.float32) for name in ("lstm_h", "lstm_c")}


@pytest.mark.parametrize(
    ("kind", "activations", "error"), [("float32", "", 1e-6), ("weights", "dynamic", 1e-5), ("int8", "static", 1 / 120)]
)
def test_an_lstm_operator_rounds_as_litert_does(tmp_path, kind, activations, error):
    path = files.saved(files.lstm(kind), tmp_path / "lstm.tflite")
    assert describe(path).activations == activations
    oracle = oracle_of(path)
    dtype = f"int8_{activations}" if activations else "float32"
    for seed in range(3):
        given = {"x": np.random.default_rng(seed).standard_normal((1, 6, 3)).astype(np.float32) * 1.5, **ZEROS}
        runner = Interpreter(model_content=with_float_ends(path)).get_signature_runner()
        ends = runner.get_input_details().items()
        zeros = {name: np.full(each["shape"], each["quantization"][1], each["dtype"]) for name, each in ends}
        theirs = runner(**{**zeros, "x": given["x"]})["y"]
        ours, exact = oracle.in_arithmetic(Arithmetic(dtype)).run(given)["y"], oracle.run(given)["y"]
        assert np.abs(theirs - ours).max() <= error
        noisy = [oracle.in_arithmetic(RandomRounding(dtype, each, 0)).run(given)["y"] for each in range(8)]
        spread = max(np.abs(each - exact).max() for each in noisy)
        assert np.abs(theirs - exact).max() <= 2 * spread
        assert spread < {"float32": 1e-6}.get(kind, 0.03)


def test_the_state_of_an_operators_own_is_a_state_of_the_file(tmp_path, path):
    """LiteRT goes on from the last call's state, as a stream of the oracle does."""
    kept = files.saved(files.lstm(), tmp_path / "lstm.tflite")
    found = describe(kept)
    assert [(pair.before, pair.after) for pair in found.state] == [
        ("lstm_h", "lstm_h_next"),
        ("lstm_c", "lstm_c_next"),
    ]
    assert found.depends["lstm_c_next"] == ("x", "lstm_h", "lstm_c")
    (note,) = (note for note in found.notes if "variables of its own" in note)
    assert note.startswith("UNIDIRECTIONAL_SEQUENCE_LSTM")
    assert note.endswith("--set 'state={}' --set constants.lstm_h=0 --set constants.lstm_c=0")
    assert not [note for note in describe(path).notes if "variables of its own" in note]
    runner, oracle, state = Interpreter(str(kept)).get_signature_runner(), oracle_of(kept), ZEROS
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((1, 6, 3)).astype(np.float32)
        results = oracle.run({"x": x, **state})
        state = {name: results[f"{name}_next"].astype(np.float32) for name in state}
        np.testing.assert_allclose(runner(x=x)["y"], results["y"], atol=1e-5)


def test_states_of_two_operators_have_names_of_their_own(tmp_path):
    writer = files.lstm()
    first = writer.graph.operators[0]
    again, (h, c) = writer.value("again", [1, 6, 4]), (writer.value(name, [1, 4]) for name in ("h2", "c2"))
    for number in (h, c):
        writer.graph.tensors[number].isVariable = True
    around = list(first.inputs[5:9])
    writer.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [first.outputs[0], *around, *around, -1, -1, -1, *first.inputs[12:16], -1, -1, h, c, -1, -1, -1, -1],
        again,
        "UnidirectionalSequenceLSTMOptions",
        fusedActivationFunction=files.schema.ActivationFunctionType.TANH,
    )
    writer.ends({"x": 0}, {"y": again})
    found = describe(files.saved(writer, tmp_path / "two.tflite"))
    assert [pair.before for pair in found.state] == ["lstm_h", "lstm_c", "lstm_h_1", "lstm_c_1"]
    assert found.depends["lstm_h_next"] == ("x", "lstm_h", "lstm_c")
    assert found.depends["lstm_h_1_next"] == ("x", "lstm_h", "lstm_c", "lstm_h_1", "lstm_c_1")


def test_an_operators_own_state_inside_a_loop_is_refused(tmp_path):
    """LiteRT keeps it from pass to pass and from call to call."""
    writer = files.lstm()
    writer.model.subgraphs.append(deepcopy(writer.graph))
    writer.graph.operators = []
    writer.operator("WHILE", [0], 1, "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=1)
    told = "a graph inside its loop or branch has variables, which are not followed; .* and its weights as constants"
    with pytest.raises(ModelFileError, match=told):
        describe(files.saved(writer, tmp_path / "loop.tflite"))


@pytest.mark.parametrize(
    ("number", "change", "told"),
    [
        (
            1,
            {"quantization": files.scaled(1 / 64)},
            r"that gives \S+ has several scales or zero points of h \(h scale 0.0083.*, y scale 0.015625,",
        ),
        (3, {"type": files.schema.TensorType.INT8}, "the types x int8, h int8, c int8, the value that h is rounded to"),
    ],
)
def test_an_lstm_operator_of_other_ranges_is_refused(tmp_path, number, change, told):
    writer = files.lstm("int8")
    vars(writer.graph.tensors[number]).update(change)
    path = files.saved(writer, tmp_path / "lstm.tflite")
    for read in (describe, oracle_of):
        with pytest.raises(ModelFileError, match=told) as caught:
            read(path)
        assert "convert the network with converter.optimizations = [tf.lite.Optimize.DEFAULT]" in str(caught.value)


@pytest.mark.parametrize(("begin", "has_start"), [(-128, False), (0, True)])
def test_a_quantised_variable_begins_at_zero_where_it_is_the_zero_point(tmp_path, begin, has_start):
    """As those of a keyword spotter on a microcontroller, whose zero point is −128."""
    variables = files.in_variables()
    begins = variables.model.subgraphs[1]
    (start,) = (tensor for tensor in begins.tensors if tensor.name == b"cell/h/begin")
    start.type, start.quantization = files.schema.TensorType.INT8, files.scaled(0.1, -128)
    variables.model.buffers[start.buffer].data = np.full(4, begin, np.int8).view(np.uint8)
    found = read_tflite(files.saved(variables, tmp_path / "cell.tflite"))
    assert [variable.has_start for variable in found.variables] == [has_start]


def test_a_bias_may_have_the_axis_of_its_weights(tmp_path):
    """Older converters write 3 for a bias of one axis, and LiteRT does not look."""
    writer = files.quantised(files.elman(1))
    (bias,) = (tensor for tensor in writer.graph.tensors if tensor.name == b"B")
    bias.quantization.quantizedDimension = 3
    assert describe(files.saved(writer, tmp_path / "cell.tflite")).state


def test_arrays_without_names_are_called_by_their_places(tmp_path):
    writer = files.elman(1)
    writer.model.signatureDefs = []
    for number in (*writer.graph.inputs, *writer.graph.outputs):
        writer.graph.tensors[number].name = b""
    found = describe(files.saved(writer, tmp_path / "cell.tflite"))
    assert [array.name for array in found.arrays] == ["input0", "input1", "output0", "output1"]


@pytest.mark.parametrize(("name", "told"), [(b"edgetpu-custom-op", "an Edge TPU"), (b"ethos-u", "an Arm Ethos-U")])
def test_a_file_that_was_compiled_for_an_accelerator_is_told_so(tmp_path, name, told):
    writer = files.elman(1)
    writer.model.operatorCodes[0].customCode = name
    with pytest.raises(ModelFileError, match=f"compiled for {told}, .* give the file that it was compiled from"):
        describe(files.saved(writer, tmp_path / "compiled.tflite"))


def test_a_file_that_needs_operators_of_tensorflow_is_told_what_to_do(tmp_path):
    """As a layer of Keras with an open batch becomes: its loop writes into a list of TensorFlow."""
    writer = files.elman(1)
    writer.model.operatorCodes[0].customCode = b"FlexTensorListReserve"
    with pytest.raises(
        ModelFileError, match=r"it needs FlexTensorListReserve, .* again with a fixed batch .* unroll=True"
    ):
        describe(files.saved(writer, tmp_path / "lists.tflite"))


def test_states_of_operators_are_found_in_a_file_without_names(tmp_path):
    """As tools for microcontrollers leave them out, and the signature too."""
    writer = files.lstm()
    writer.model.signatureDefs = []
    for tensor in writer.graph.tensors:
        tensor.name = b""
    path = files.saved(writer, tmp_path / "lstm.tflite")
    found = describe(path)
    assert [array.name for array in found.of_role("input", "output")] == ["input0", "output0"]
    assert [(pair.before, pair.after) for pair in found.state] == [
        ("lstm_h", "lstm_h_next"),
        ("lstm_c", "lstm_c_next"),
    ]
    assert check_state(oracle_of(path), found, section_of(found, path.name)).lost == ()
