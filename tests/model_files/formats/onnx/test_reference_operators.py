"""Forms of operators that ONNX's reference lacks, or computes wrongly: the oracle gives what ONNX Runtime gives."""

from __future__ import annotations

import numpy as np
import onnx_files as files
import pytest
from onnx import helper, numpy_helper, shape_inference

from rnnbench.model_files import ModelFileError, oracle_of
from rnnbench.rnn import Arithmetic, RandomRounding

onnxruntime = pytest.importorskip("onnxruntime")
DRAWN = np.random.default_rng(5)


def drawn(*shape):
    return DRAWN.standard_normal(shape).astype(np.float32)


def whole(*values):
    return np.array(values, np.int64)


def assert_agrees(tmp_path, operator, x, others=(), opset=17, atol=1e-6, shape=None, **attributes):
    """One node of x and of constants, in ONNX Runtime and in the oracle."""
    names = [f"c{place}" if other is not None else "" for place, other in enumerate(others)]
    node = helper.make_node(operator, ["x", *names], ["y"], **attributes)
    weights = [
        numpy_helper.from_array(np.asarray(other), name) for name, other in zip(names, others, strict=True) if name
    ]
    proto = files.model([node], files.arrays(("x", x.shape)), files.arrays(("y", shape)), weights, opset=opset)
    path = files.saved(proto if shape else shape_inference.infer_shapes(proto), tmp_path / "one.onnx")
    (theirs,) = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})
    ours = oracle_of(path).run({"x": x})["y"]
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=atol)


@pytest.mark.parametrize(
    ("shape", "indices", "axis"),
    [((90, 2), [[80, 1], [-1, 7], [3, 89]], 0), ((90, 2), [[80, 1]], 0), ((4, 90), [[5], [88]], 1), ((3, 4), [[1]], 1)],
    ids=["many", "one row", "one column", "fewer"],
)
def test_elements_are_gathered_from_long_axes_by_fewer_indices(tmp_path, shape, indices, axis):
    assert_agrees(tmp_path, "GatherElements", drawn(*shape), [whole(*indices)], axis=axis)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_sizes_of_a_pad_below_zero_take_elements_away(tmp_path, mode):
    x, pads = drawn(2, 5, 6), [0, -1, 2, 0, 0, -3]
    assert_agrees(tmp_path, "Pad", x, opset=10, pads=pads, mode=mode, **({"value": 0.5} if mode == "constant" else {}))
    assert_agrees(tmp_path, "Pad", x, [whole(*pads), np.float32(0.5)], opset=13, mode=mode)
    assert_agrees(tmp_path, "Pad", x, [whole(2, -3), None, whole(-1)], opset=18, mode=mode)


def split(tmp_path, sizes, opset=13, outputs=("y", "rest"), **attributes):
    """x [2, 7] in parts along its last axis."""
    sizes = whole(*sizes) if sizes and opset >= 13 else sizes
    inputs, weights = ["x"], []
    if isinstance(sizes, np.ndarray):
        inputs, weights = ["x", "sizes"], [files.weight("sizes", sizes)]
    elif sizes:
        attributes["split"] = sizes
    node = helper.make_node("Split", inputs, outputs, axis=-1, **attributes)
    ends = files.arrays(*((name, (2, None)) for name in outputs))
    proto = files.model([node], files.arrays(("x", (2, 7))), ends, weights, opset=opset)
    return files.saved(proto, tmp_path / "split.onnx")


@pytest.mark.parametrize(
    ("sizes", "opset", "attributes"),
    [((3, 4), 11, {}), ((7, 0), 13, {}), ((2, 5), 18, {}), ((), 18, {"num_outputs": 2})],
    ids=["attribute", "empty part", "sizes", "uneven"],
)
def test_parts_of_a_split_are_those_of_onnxruntime(tmp_path, sizes, opset, attributes):
    path, x = split(tmp_path, sizes, opset, **attributes), drawn(2, 7)
    theirs = onnxruntime.InferenceSession(str(path)).run(["y", "rest"], {"x": x})
    ours = oracle_of(path).run({"x": x})
    for name, part in zip(("y", "rest"), theirs, strict=True):
        np.testing.assert_array_equal(ours[name].astype(np.float32), part)


@pytest.mark.parametrize("sizes", [(3, 3), (3, 5), (8, -1)])
def test_parts_that_are_not_the_whole_are_refused(tmp_path, sizes):
    """ONNX's reference computes them, and OpenVINO those with a size below zero; ONNX Runtime refuses them."""
    with pytest.raises(ModelFileError, match="their sum has to be 7, without a size below zero"):
        oracle_of(split(tmp_path, sizes)).run({"x": drawn(2, 7)})


@pytest.mark.parametrize("opset", [7, 11])
def test_the_axes_of_an_older_squeeze_are_of_one_array(tmp_path, opset):
    axes = [-3, -2] if opset == 11 else [2, 1]
    assert_agrees(tmp_path, "Squeeze", drawn(3, 1, 1, 4), opset=opset, axes=axes)
    assert_agrees(tmp_path, "Squeeze", drawn(3, 1, 1, 4), opset=opset)
    assert_agrees(tmp_path, "Unsqueeze", drawn(3, 4), opset=opset, axes=[-2, -1] if opset == 11 else [3, 0])


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [3], "pads": [2, 1]},
        {"kernel_shape": [3], "pads": [2, 0], "strides": [2], "ceil_mode": 1},
        {"kernel_shape": [2], "dilations": [3]},
        {"kernel_shape": [4], "strides": [2], "auto_pad": "SAME_LOWER"},
        {"kernel_shape": [4], "strides": [3], "auto_pad": "SAME_UPPER"},
        {"kernel_shape": [3, 2], "pads": [0, 1, 2, 0]},
        {"kernel_shape": [3, 2], "strides": [1, 2], "auto_pad": "VALID"},
    ],
    ids=str,
)
def test_a_largest_of_windows_is_padded_where_the_file_says(tmp_path, attributes):
    x = drawn(2, 3, *(7, 6)[: len(attributes["kernel_shape"])])
    assert_agrees(tmp_path, "MaxPool", x, opset=12, **attributes)


def test_a_norm_of_windows_has_zeros_in_the_padding(tmp_path):
    assert_agrees(tmp_path, "LpPool", drawn(2, 3, 7), opset=11, kernel_shape=[3], pads=[1, 2], p=2)


def test_places_of_the_largest_are_not_computed(tmp_path):
    node = helper.make_node("MaxPool", ["x"], ["y", "places"], kernel_shape=[2])
    arrays = files.arrays(("x", (1, 1, 4))), files.arrays(("y", (1, 1, 3)), ("places", files.INT64, (1, 1, 3)))
    path = files.saved(files.model([node], *arrays), tmp_path / "pool.onnx")
    with pytest.raises(ModelFileError, match="gives the places of its results"):
        oracle_of(path).run({"x": np.ones((1, 1, 4))})


@pytest.mark.parametrize(
    ("operator", "opset", "mode", "scale"),
    [
        ("Upsample", 7, "nearest", 2.0),
        ("Upsample", 8, "linear", 2.0),
        ("Upsample", 9, "nearest", 1.5),
        ("Upsample", 9, "linear", 2.0),
        ("Resize", 10, "nearest", 2.0),
        ("Resize", 10, "linear", 0.5),
        ("Resize", 13, "linear", 0.7),
        ("Resize", 13, "nearest", 2.6),
        ("Resize", 18, "linear", 0.29),
    ],
)
def test_arrays_are_resampled(tmp_path, operator, opset, mode, scale):
    scales = np.array([1, 1, 1, scale], np.float32)
    x = drawn(1, 2, 3, 100 if opset > 10 else 6)
    if opset < 9:
        assert_agrees(tmp_path, operator, x, opset=opset, mode=mode, scales=scales.tolist())
    else:
        others = [scales] if opset < 11 else [None, scales]
        assert_agrees(tmp_path, operator, x, others, opset, 1e-4, mode=mode)  # ONNX Runtime has places in float32.


def test_which_elements_an_older_resize_leaves_is_not_known(tmp_path):
    with pytest.raises(ModelFileError, match="export the network with opset 11 or later"):
        assert_agrees(tmp_path, "Resize", drawn(1, 1, 8), [np.array([1, 1, 0.5], np.float32)], opset=10)


@pytest.mark.parametrize("opset", [11, 13])
def test_the_largest_element_of_an_older_hardmax_is_that_of_a_matrix(tmp_path, opset):
    assert_agrees(tmp_path, "Hardmax", drawn(2, 3, 4), opset=opset)


def test_normalisations_are_the_standard_s(tmp_path):
    assert_agrees(tmp_path, "LpNormalization", drawn(3, 4), p=1, axis=0)
    assert_agrees(tmp_path, "LpNormalization", drawn(3, 4))
    assert_agrees(tmp_path, "LRN", drawn(1, 5, 2, 2), size=3, alpha=0.5, bias=0.7)
    row = np.ones((3, 2), np.float32)
    with pytest.raises(ModelFileError, match="BatchNormalization of each element"):
        assert_agrees(tmp_path, "BatchNormalization", drawn(2, 3, 2), [row] * 4, opset=8, spatial=0)


def test_elements_are_scattered_by_the_older_name(tmp_path):
    assert_agrees(tmp_path, "Scatter", drawn(3, 4), [whole([1, 0], [2, 3]), drawn(2, 2)], opset=9, axis=1)


def test_a_value_is_inserted_behind_the_last_of_a_sequence(tmp_path):
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["two"]),
        helper.make_node("Neg", ["x"], ["last"]),
        helper.make_node("SequenceInsert", ["two", "last", "end"], ["three"]),
        helper.make_node("ConcatFromSequence", ["three"], ["y"], axis=0),
    ]
    arrays = files.arrays(("x", (1, 2))), files.arrays(("y", (3, 2)))
    path = files.saved(files.model(nodes, *arrays, [files.weight("end", np.array(2))]), tmp_path / "x.onnx")
    np.testing.assert_array_equal(oracle_of(path).run({"x": np.ones((1, 2))})["y"], [[1, 1], [1, 1], [-1, -1]])


TRANSFORMS = {
    "dft": ("DFT", [], 17, {}),
    "inverse": ("DFT", [], 17, {"inverse": 1}),
    "along an input": ("DFT", [None, np.array(1)], 20, {"onesided": 1}),
    "stft": ("STFT", [np.array(16), np.hanning(64).astype(np.float32)], 17, {"onesided": 1}),
    "sums": ("CumSum", [np.array(1)], 17, {}),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_has_the_rounding_of_its_sums(tmp_path, name):
    """Some of its results are small beside what is added up, and their errors are not."""
    operator, others, opset, attributes = TRANSFORMS[name]
    names = [f"c{place}" if other is not None else "" for place, other in enumerate(others)]
    node = helper.make_node(operator, ["x", *names], ["y"], **attributes)
    weights = [numpy_helper.from_array(np.asarray(other), own) for own, other in zip(names, others, strict=True) if own]
    x = np.cos(np.arange(256) * 0.3)[None, :, None] * 10
    proto = files.model([node], files.arrays(("x", x.shape)), files.arrays(("y", None)), weights, opset=opset)
    exact = oracle_of(files.saved(shape_inference.infer_shapes(proto), tmp_path / "one.onnx"))
    wanted, runs = exact.run({"x": x})["y"], exact.in_arithmetic(RandomRounding("float32", 0, 0))
    spread = np.max([np.abs(runs.run({"x": x})["y"] - wanted) for _ in range(4)], axis=0)
    terms = 64 if name == "stft" else 256
    unit = 2.0**-24 * np.sqrt(terms * np.square(x).sum() / (256**2 if name == "inverse" else 1))
    assert unit / 100 < np.median(spread) < unit
    assert exact.in_arithmetic(Arithmetic("float32")).run({"x": x})["y"].dtype == np.float32


def test_a_cast_like_another_array_rounds_as_a_cast(tmp_path):
    node = helper.make_node("CastLike", ["x", "narrow"], ["half"])
    back = helper.make_node("CastLike", ["half", "x"], ["y"])
    arrays = files.arrays(("x", (1, 64))), files.arrays(("y", (1, 64)))
    weights = [files.weight("narrow", np.zeros(1, np.float16))]
    oracle = oracle_of(files.saved(files.model([node, back], *arrays, weights), tmp_path / "x.onnx"))
    x = np.random.default_rng(0).standard_normal((1, 64))
    np.testing.assert_array_equal(oracle.run({"x": x})["y"], x)
    error = np.abs(oracle.in_arithmetic(Arithmetic("float32")).run({"x": x})["y"] - x).max()
    assert 2.0**-14 < error < 2.0**-9


def test_a_window_is_in_float64_where_its_type_is_left_out(tmp_path):
    nodes = [helper.make_node("HannWindow", ["size"], ["window"]), helper.make_node("Mul", ["x", "window"], ["y"])]
    proto = files.model(
        nodes, files.arrays(("x", (1, 8))), files.arrays(("y", (1, 8))), [numpy_helper.from_array(np.array(8), "size")]
    )
    path, x = files.saved(proto, tmp_path / "window.onnx"), np.ones((1, 8))
    np.testing.assert_allclose(oracle_of(path).run({"x": x})["y"], [np.sin(np.arange(8) * np.pi / 8) ** 2], rtol=1e-12)


def test_operators_that_broadcast_by_an_attribute_are_refused(tmp_path):
    node = helper.make_node("Add", ["x", "b"], ["y"], broadcast=1, axis=0)
    arrays = files.arrays(("x", (2, 2))), files.arrays(("y", (2, 2)))
    proto = files.model([node], *arrays, [files.weight("b", np.arange(2, dtype=np.float32))], opset=6)
    with pytest.raises(ModelFileError, match=r"its operators are of version 6, .* opset 7 or later"):
        oracle_of(files.saved(proto, tmp_path / "old.onnx"))


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_what_lies_between_elements_has_the_rounding_of_its_place(tmp_path, mode):
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode)
    weights = [files.weight("scales", np.array([1, 1, 3], np.float32))]
    proto = files.model([node], files.arrays(("x", (1, 1, 500))), files.arrays(("y", (1, 1, 1500))), weights)
    path, x = files.saved(proto, tmp_path / "resize.onnx"), drawn(1, 1, 500)
    exact = oracle_of(path)
    wanted, noisy = exact.run({"x": x})["y"], exact.in_arithmetic(RandomRounding("float32", 0, 0))
    spread = max(np.abs(noisy.run({"x": x})["y"] - wanted).max() for _ in range(4))
    error = np.abs(onnxruntime.InferenceSession(str(path)).run(None, {"x": x})[0] - wanted).max()
    assert error <= 4 * spread
    assert spread < (1e-6 if mode == "nearest" else 1e-3)


def test_other_operators_are_those_of_onnxruntime(tmp_path):
    one = np.ones(2, np.float32)
    assert_agrees(tmp_path, "GlobalMaxPool", drawn(2, 3, 5))
    assert_agrees(tmp_path, "CumSum", drawn(2, 3), [whole(1)])
    assert_agrees(
        tmp_path, "STFT", drawn(2, 32), [np.array(4), np.hanning(8).astype(np.float32)], atol=1e-5, shape=(2, 7, 5, 2)
    )
    assert_agrees(tmp_path, "GroupNormalization", drawn(1, 2, 5), [one, one], opset=21, shape=(1, 2, 5), num_groups=1)
    assert_agrees(tmp_path, "MeanVarianceNormalization", drawn(2, 3, 4, 5), shape=(2, 3, 4, 5), axes=[0, 2])


@pytest.mark.parametrize("axis", [-1, 0])
def test_a_place_becomes_a_row_of_one_one(tmp_path, axis):
    nodes = [
        helper.make_node("Cast", ["x"], ["places"], to=files.INT64),
        helper.make_node("OneHot", ["places", "depth", "values"], ["y"], axis=axis),
    ]
    weights = [files.weight("depth", np.array([4])), files.weight("values", np.array([0.5, 2], np.float32))]
    proto = files.model(nodes, files.arrays(("x", (2, 3))), files.arrays(("y", (None,) * 3)), weights)
    path, x = files.saved(proto, tmp_path / "hot.onnx"), np.array([[0, 3, -1], [2, 4, -4]], np.float32)
    (theirs,) = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})
    np.testing.assert_array_equal(oracle_of(path).run({"x": x})["y"], theirs)


@pytest.mark.parametrize("lead", ["x", "empty"])
def test_a_map_over_sequences_sees_arrays_beside_and_around_it(tmp_path, lead):
    """x [4, 2] and k [1, 2]: each row, the same row of another sequence, an array for all, and k of the graph around.

    The empty sequence gives an empty one.
    """
    of_row, unknown = files.arrays(("row", (1, 2)), ("same", (1, 2)), ("all", (1, 2))), files.arrays(("sum", (1, 2)))
    body = helper.make_graph([helper.make_node("Sum", ["row", "same", "all", "k"], ["sum"])], "body", of_row, unknown)
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["rows"], axis=0),
        helper.make_node("SequenceEmpty", [], ["none"]),
        helper.make_node("SequenceMap", ["none" if lead == "empty" else "rows", "rows", "k"], ["sums"], body=body),
        helper.make_node("SequenceInsert", ["sums", "k"], ["some"]),
        helper.make_node("ConcatFromSequence", ["some"], ["y"], axis=0),
    ]
    proto = files.model(nodes, files.arrays(("x", (4, 2)), ("k", (1, 2))), files.arrays(("y", ("n", 2))))
    x, k = np.arange(8.0).reshape(4, 2), np.array([[10.0, 20.0]])
    got = oracle_of(files.saved(proto, tmp_path / "map.onnx")).run({"x": x, "k": k})["y"]
    np.testing.assert_array_equal(got, np.concatenate([*([] if lead == "empty" else [2 * x + 2 * k]), k]))
