"""LiteRT's operators with a state of their own: what they give from call to call, and what is refused."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import tflite_recurrent_files as files
from ai_edge_litert.interpreter import Interpreter
from tflite_files import lstm as sequence_lstm
from tflite_files import saved, schema

from rnnbench.model_files import ModelFileError, check_state, describe, oracle_of, section_of, with_float_ends
from rnnbench.rnn import Arithmetic, RandomRounding

LSTM, SEQUENCE, BOTH = "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM"
BOTH_RNN = "BIDIRECTIONAL_SEQUENCE_RNN"
KINDS = ("float32", "weights", "uint8")
FILES = {
    **{f"rnn {kind}": lambda kind=kind: files.rnn("RNN", kind) for kind in KINDS},
    **{f"sequence rnn {kind}": lambda kind=kind: files.rnn("UNIDIRECTIONAL_SEQUENCE_RNN", kind) for kind in KINDS},
    "sequence rnn, time first": lambda: files.rnn("UNIDIRECTIONAL_SEQUENCE_RNN", time_major=True),
    **{f"both rnn {kind}": lambda kind=kind: files.rnn(BOTH_RNN, kind) for kind in KINDS},
    "both rnn, merged": lambda: files.rnn(BOTH_RNN, merged=True),
    "both rnn, time first": lambda: files.rnn(BOTH_RNN, merged=True, time_major=True),
    **{f"svdf {kind}": lambda kind=kind: files.svdf(kind) for kind in (*KINDS, "int8")},
    "svdf of rank 1": lambda: files.svdf(rank=1),
    "svdf without memory": lambda: files.svdf(memory=1),
    **{f"lstm {kind}": lambda kind=kind: files.lstm(LSTM, kind) for kind in KINDS},
    "lstm, basic": files.basic_lstm,
    **{f"both lstm {kind}": lambda kind=kind: files.lstm(BOTH, kind) for kind in KINDS},
    "both lstm, all": lambda: files.lstm(BOTH, parts=("peepholes", "projection", "clips", "merged"), time_major=True),
    "sequence lstm, time first": lambda: files.lstm(SEQUENCE, time_major=True),
    **{
        f"{name} {', '.join(parts)}": lambda name=name, parts=parts: files.lstm(name, parts=parts)
        for name in (LSTM, SEQUENCE)
        for parts in (
            ("joint",),
            ("peepholes",),
            ("projection",),
            ("norms",),
            ("projection", "clips"),
            ("joint", "peepholes", "norms", "projection", "clips"),
        )
    },
    "sequence lstm, all, weights": lambda: files.lstm(SEQUENCE, "weights", ("peepholes", "projection", "clips")),
    "both rnn, auxiliary, time first": lambda: files.rnn(BOTH_RNN, auxiliary="alone", time_major=True),
    "both rnn, auxiliary with weights, batch first": lambda: files.rnn(BOTH_RNN, auxiliary="with weights"),
    **{
        f"both lstm, auxiliary {told} {kind}": lambda told=told, kind=kind: files.lstm(
            BOTH, kind, (told, "merged"), time_major=True
        )
        for told in ("alone", "with weights")
        for kind in KINDS
    },
    "sequence lstm, diagonal": lambda: files.lstm(SEQUENCE, parts=("diagonal",)),
    **{
        f"sequence lstm, {', '.join(parts) or 'plain'}, int8": lambda parts=parts, cells=cells: sequence_lstm(
            "int8", cells=cells, parts=parts, zero=0 if "clips" in parts else 3
        )
        for parts, cells in (
            ((), 0),
            (("joint",), 0),
            (("projection",), 6),
            (("joint", "projection"), 3),
            (("joint", "projection", "clips"), 6),
        )
    },
}
"""Functions that make a file, by what it has."""


@pytest.mark.parametrize("name", FILES)
def test_a_stream_is_what_litert_gives_with_the_operators_own_state(tmp_path, name):
    path = saved(FILES[name](), tmp_path / "own.tflite")
    found, oracle = describe(path), oracle_of(path)
    dtype = f"int8_{found.activations}" if found.activations else "float32"
    nearest = oracle.in_arithmetic(Arithmetic(dtype))
    assert found.activations == {"weights": "dynamic", "uint8": "dynamic", "int8": "static"}.get(name.split()[-1], "")
    before = {pair.before: pair.after for pair in found.state}
    interpreter = Interpreter(model_path=str(path))
    runner = interpreter.get_signature_runner()
    shapes = {array.name: array.shape for array in found.arrays}
    exact, rounded, noisy = ({state: np.zeros(shapes[state]) for state in before} for _ in range(3))
    noise = oracle.in_arithmetic(RandomRounding(dtype, 0, 0))
    draw, details = np.random.default_rng(1), runner.get_input_details()
    for _ in range(4):
        x = {name: draw.standard_normal(shapes[name]).astype(np.float32) for name in details}
        whole = {name: quantised(each, x[name]) for name, each in details.items() if each["dtype"] != np.float32}
        given = runner(**x | whole)
        results = [each.run({**x, **state}) for each, state in ((oracle, exact), (nearest, rounded), (noise, noisy))]
        exact, rounded, noisy = ({state: result[after] for state, after in before.items()} for result in results)
        for output, theirs in given.items():
            scale, _ = runner.get_output_details()[output]["quantization"]
            theirs = dequantised(runner.get_output_details()[output], theirs)
            allowed = {"dynamic": 1e-5, "static": scale}.get(found.activations, 2e-6)
            np.testing.assert_allclose(results[1][output], theirs, atol=allowed, rtol=1e-5)
            assert np.abs(results[2][output] - results[0][output]).max() < (0.2 if found.activations else 1e-5)
            assert np.abs(theirs - results[0][output]).max() < (0.2 if found.activations else 1e-5)


@pytest.mark.first(14)
@pytest.mark.parametrize("name", FILES)
def test_the_state_that_a_call_leaves_is_litert_s(tmp_path, name):
    path = saved(FILES[name](), tmp_path / "own.tflite")
    found = describe(path)
    runner = Interpreter(model_content=with_float_ends(path)).get_signature_runner()
    draw, given = np.random.default_rng(2), {}
    details = runner.get_input_details()
    for each in found.of_role("input", "state_in"):
        drawn = draw.standard_normal(each.shape) * 0.5
        is_whole = details[each.name]["dtype"] != np.float32
        given[each.name] = quantised(details[each.name], drawn) if is_whole else drawn.astype(np.float32)
    theirs = runner(**given)
    floats = {name: dequantised(details[name], value) for name, value in given.items()}
    dtype = f"int8_{found.activations}" if found.activations else "float32"
    ours = oracle_of(path).in_arithmetic(Arithmetic(dtype)).run(floats)
    for pair in found.state:
        scale, _ = details[pair.before]["quantization"]
        state = dequantised(details[pair.before], theirs[pair.after])
        np.testing.assert_allclose(ours[pair.after], state, atol=2 * scale or 1e-5)


def test_the_basic_kernel_in_uint8_is_litert_s(tmp_path):
    path = saved(files.basic_lstm("uint8"), tmp_path / "own.tflite")
    found, oracle = describe(path), oracle_of(path)
    assert found.activations == "static"
    # LiteRT begins h at the byte 0, which is -1.
    assert any(note.startswith("lstm_h begins in the file with values that are not zero") for note in found.notes)
    nearest = oracle.in_arithmetic(Arithmetic("int8_static"))
    runner = Interpreter(model_content=with_float_ends(path)).get_signature_runner()
    bytes_of = {"lstm_h": np.full((2, files.HIDDEN), 128, np.uint8), "lstm_c": np.zeros((2, files.HIDDEN), np.int16)}
    exact, rounded = ({name: np.zeros((2, files.HIDDEN)) for name in bytes_of} for _ in range(2))
    draw = np.random.default_rng(1)
    for _ in range(4):
        x = {"x": draw.uniform(-1, 1, (2, files.INPUT)).astype(np.float32)}
        theirs = runner(**x, **bytes_of)
        ours, close = oracle.run({**x, **exact}), nearest.run({**x, **rounded})
        for name, scale in (("y0", 1 / 128), ("y1", 2.0**-11)):
            np.testing.assert_allclose(close[name], theirs[name], atol=2 * scale)
            np.testing.assert_allclose(ours[name], theirs[name], atol=0.1)
        bytes_of, exact, rounded = (
            {name: given[f"{name}_next"] for name in bytes_of} for given in (theirs, ours, close)
        )
    assert np.abs(theirs["y0"]).max() > 0.2


def quantised(details, x):
    scale, zero = details["quantization"]
    ends = np.iinfo(details["dtype"])
    return np.clip(np.rint(x / scale) + zero, ends.min, ends.max).astype(details["dtype"])


def dequantised(details, x):
    scale, zero = details["quantization"]
    return (x.astype(np.float64) - zero) * scale if scale else x


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: files.rnn("RNN"), ["rnn_h"]),
        (files.svdf, ["svdf"]),
        (lambda: files.svdf("int8"), ["svdf"]),
        (files.basic_lstm, ["lstm_h", "lstm_c"]),
        (lambda: files.lstm(LSTM), ["lstm_h", "lstm_c"]),
        (lambda: files.lstm(BOTH), ["forward_h", "forward_c", "backward_h", "backward_c"]),
    ],
)
def test_its_states_are_states_of_the_file(tmp_path, make, names):
    path = saved(make(), tmp_path / "own.tflite")
    found = describe(path)
    assert [(pair.before, pair.after) for pair in found.state] == [(name, f"{name}_next") for name in names]
    assert found.questions == ()
    if "backward_h" not in names:
        check = check_state(oracle_of(path), found, section_of(found, path.name))
        assert check.ok
        assert check.lost == ()


def small_state(writer):
    """As of the keyword spotters of TFLite Micro."""
    for number in (writer.graph.operators[0].inputs[2], writer.graph.operators[0].inputs[4]):
        tensor = writer.graph.tensors[number]
        tensor.type = schema.TensorType.INT8
        buffer = writer.model.buffers[tensor.buffer]
        buffer.data = None if buffer.data is None else buffer.data[: buffer.data.size // 2]


def with_zero_point(place, zero=1):
    def change(writer):
        writer.graph.tensors[writer.graph.operators[0].inputs[place]].quantization.zeroPoint = np.array(
            [zero], np.int64
        )

    return change


def with_scale(place, scale):
    def change(writer):
        writer.graph.tensors[writer.graph.operators[0].inputs[place]].quantization = files.scaled(scale)

    return change


def whole_weights(writer):
    tensor = writer.graph.tensors[writer.graph.operators[0].inputs[2]]
    tensor.type, tensor.quantization = schema.TensorType.INT8, files.scaled(0.1)
    buffer = writer.model.buffers[tensor.buffer]
    buffer.data = buffer.data[: buffer.data.size // 4]


def shifted_result(writer):
    writer.graph.tensors[writer.graph.operators[0].outputs[0]].quantization = files.scaled(6 / 255, 0)


def without_scale(writer):
    writer.graph.tensors[writer.graph.operators[0].inputs[1]].quantization = None


def without_state(writer):
    writer.graph.operators[0].inputs[4] = -1


def whole_input(writer):
    (x,) = writer.graph.inputs
    writer.graph.tensors[x].type = schema.TensorType.INT8
    writer.graph.tensors[x].quantization = files.scaled(0.1)


def without_weights(writer):
    writer.graph.operators[0].inputs[2] = -1


REFUSED = {
    "small state": (lambda: files.svdf("int8"), small_state, "the state int8, y int8. LiteRT reads .* as int16"),
    "shifted state": (lambda: files.svdf("int8"), with_zero_point(4), "a state whose zero point is not 0"),
    "shifted weights": (lambda: files.svdf("weights"), with_zero_point(1), "W are weights with a zero point"),
    "shifted weights beside int8": (lambda: files.svdf("int8"), with_zero_point(1), "W has a zero point, which LiteRT"),
    "shifted bias": (lambda: files.svdf("int8"), with_zero_point(3), "b has a zero point, which LiteRT takes for 0"),
    "zero point of no int8": (
        lambda: files.svdf("int8"),
        with_zero_point(0, -131079),
        "'x' has a zero point that is no",
    ),
    "shifted result": (lambda: files.svdf("int8"), shifted_result, "gives int8 of another zero point than -128"),
    "no scale": (lambda: files.svdf("int8"), without_scale, "W is int8 without a scale, beside arrays that have one"),
    "no state": (lambda: files.rnn("RNN"), without_state, "has no state of its own"),
    "whole rnn": (lambda: files.rnn("RNN"), whole_input, "x is int8 with a scale, which RNN does not take"),
    "whole lstm": (lambda: files.lstm(BOTH), whole_input, f"{BOTH} that gives y0 takes int8 of a scale, and"),
    "whole basic": (files.basic_lstm, whole_input, "basic kernel that gives y0 has the types x int8"),
    "shifted x of basic": (lambda: files.basic_lstm("uint8"), with_zero_point(0, 127), "x of an LSTM in uint8 has the"),
    "shifted c of basic": (lambda: files.basic_lstm("uint8"), with_zero_point(4, 1), "takes its scale for 0.0004"),
    "bias of another scale": (lambda: files.basic_lstm("uint8"), with_scale(3, 0.001), "b of an LSTM in uint8 has the"),
    "bias with a zero point": (lambda: files.basic_lstm("uint8"), with_zero_point(3, 1), "b has a zero point"),
    "weights of basic": (lambda: files.basic_lstm(), whole_weights, "x float32, h float32, weights int8"),
    "no weights": (lambda: files.lstm(LSTM), without_weights, "lacks weights or a state of its own"),
    "clipped bytes": (
        lambda: sequence_lstm("int8", cells=6, parts=("projection", "clips")),
        lambda writer: None,
        "a clip of its projection, and LiteRT clips the bytes of h",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_forms_that_are_not_computed_are_refused(tmp_path, name):
    make, change, told = REFUSED[name]
    writer = make()
    change(writer)
    path = saved(writer, tmp_path / "own.tflite")
    with pytest.raises(ModelFileError, match=told):
        oracle_of(path).run({a.name: np.ones(a.shape) for a in describe(path).of_role("input", "state_in")})


@pytest.mark.parametrize(("part", "place"), [("peepholes", 10), ("norms", 21)])
def test_an_lstm_in_int8_has_no_peepholes_and_no_normalisation(tmp_path, part, place):
    writer = sequence_lstm("int8")
    inputs = writer.graph.operators[0].inputs
    inputs[place] = inputs[6]
    path = saved(writer, tmp_path / f"{part}.tflite")
    with pytest.raises(ModelFileError, match="in int8 with peepholes or a normalisation"):
        oracle_of(path).run({a.name: np.ones(a.shape) for a in describe(path).of_role("input", "state_in")})


def test_an_output_in_int32_is_of_floats_too(tmp_path):
    """As of keyword spotters for microcontrollers, which have neither names nor a signature."""
    writer = files.svdf("int8")
    (y,) = writer.graph.outputs
    numbers = [writer.value(name, (1, files.HIDDEN), kind) for name, kind in (("y16", "int16"), ("wide", "int32"))]
    for before, after in pairwise((y, *numbers)):
        writer.graph.tensors[after].quantization = files.scaled(2.5e-4)
        writer.operator("QUANTIZE", [before], after)
        writer.model.operatorCodes[-1].version = 2
    wide = numbers[-1]
    writer.ends({"x": writer.graph.inputs[0]}, {"y": wide})
    for names in ("signature", "tensors", "none"):
        if names != "signature":
            writer.model.signatureDefs = []
        for tensor in writer.graph.tensors if names == "none" else ():
            tensor.name = b""
        path = saved(writer, tmp_path / "wide.tflite")
        found = describe(path)
        (output,) = found.of_role("output")
        assert (output.name, output.dtype) == (
            {"signature": "y", "tensors": "wide", "none": "output0"}[names],
            "float32",
        )
    x = np.random.default_rng(0).standard_normal((1, files.INPUT)).astype(np.float32)
    interpreter = Interpreter(model_path=str(path))
    interpreter.allocate_tensors()
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.set_tensor(given["index"], quantised(given, x))
    interpreter.invoke()
    theirs = interpreter.get_tensor(made["index"]) * made["quantization"][0]
    ours = oracle_of(path).in_arithmetic(Arithmetic("int8_static"))
    shapes = {array.name: array.shape for array in found.of_role("input", "state_in")}
    result = ours.run({name: x if name == "input0" else np.zeros(shape) for name, shape in shapes.items()})
    np.testing.assert_allclose(result["output0"], theirs, atol=6 / 255)
    float_ends = Interpreter(model_content=with_float_ends(path)).get_signature_runner()
    zeros = {name: np.zeros(shape, np.int16) for name, shape in shapes.items() if name != "input0"}
    np.testing.assert_allclose(float_ends(input0=x, **zeros)["output0"], theirs, rtol=1e-6)
