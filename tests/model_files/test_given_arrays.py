"""Inputs and expected outputs as `.npz`: how they are laid out, and what is refused."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import onnx_files as files
import pytest

from rnnbench.model_files import FileSection, ModelFileError, UserInputs, describe, network_of, section_of
from rnnbench.rnn import Weights, draw_inputs, run_reference

ODD = {"state": {"s": "next_s"}, "constants": {"gain": 0.5}, "batch": 0}
DRAW = np.random.default_rng(0)
SHAPES = {"a": (5, 2, 1, 3), "x": (5, 2, 5)}


def network(path, beside, **said):
    description = describe(path)
    found = section_of(description, path.name)
    return network_of(path, FileSection(**{**vars(found), **said}), description, beside)


@pytest.fixture
def odd(tmp_path):
    return files.saved(files.odd(), tmp_path / "odd.onnx")


def given(folder, **arrays):
    np.savez(folder / "given.npz", **arrays)
    return folder / "given.npz"


def test_a_stream_is_the_given_one_repeated(odd, tmp_path):
    arrays = {name: DRAW.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}
    found = network(odd, UserInputs(inputs=given(tmp_path, **arrays)), **ODD)
    x = draw_inputs(found, 7, 3, 0)
    once = np.concatenate([arrays["a"].reshape(5, 2, 3), arrays["x"]], axis=2)
    np.testing.assert_array_equal(x, once[[0, 1, 2, 3, 4, 0, 1]][:, [0, 1, 0]])
    assert found.params["inputs"] != network(odd, UserInputs(), **ODD).params.get("inputs")


def test_time_is_an_axis_of_the_given_arrays_where_the_file_has_one(tmp_path):
    path = files.saved(files.recurrent("GRU"), tmp_path / "network.onnx")
    x = DRAW.standard_normal((6, 2, 3)).astype(np.float32)
    found = network(path, UserInputs(inputs=given(tmp_path, x=x)))
    np.testing.assert_array_equal(draw_inputs(found, 6, 2, 0), x)


def test_expected_outputs_are_y(odd, tmp_path):
    inputs = given(tmp_path, **{name: DRAW.standard_normal(shape) for name, shape in SHAPES.items()})
    plain = network(odd, UserInputs(inputs=inputs), **ODD)
    y = run_reference(plain, Weights(), draw_inputs(plain, 5, 2, 0)).y
    np.savez(tmp_path / "y.npz", y=y[:, :, None, :8], total=y[:, :, 8:])
    found = network(odd, UserInputs(inputs=inputs, expected=tmp_path / "y.npz"), **ODD)
    np.testing.assert_allclose(found.expected_y(2), y)


def test_whole_numbers_are_drawn_within_their_range(tmp_path):
    path, said = files.saved(files.embedding(), tmp_path / "embedding.onnx"), {"state": {"h": "next_h"}, "batch": 0}
    found = network(path, UserInputs(ranges={"tokens": (2, 9)}), **said)
    x = draw_inputs(found, 200, 1, 0)
    assert set(x.ravel()) == set(range(2, 10))
    assert not found.takes_any_number
    assert run_reference(found, Weights(), x[:3]).y.shape == (3, 1, 4)


def test_an_input_of_floats_may_have_whole_numbers(tmp_path):
    path = files.saved(files.recurrent("GRU"), tmp_path / "network.onnx")
    found = network(path, UserInputs(ranges={"x": (0, 4)}))
    assert set(draw_inputs(found, 200, 1, 0).ravel()) == set(range(5))
    assert not found.takes_any_number
    assert network(path, UserInputs()).takes_any_number


@pytest.mark.parametrize(
    ("beside", "told"),
    [
        (UserInputs(), "tokens is int64, .* say what they are, as in ranges"),
        (UserInputs(ranges={"tokens": (9, 2)}), "the range of tokens is 9 to 2"),
        (UserInputs(ranges={"h": (0, 1)}), "it has no input h that is new in each call; those that it has: tokens"),
    ],
)
def test_integers_need_a_range(tmp_path, beside, told):
    with pytest.raises(ModelFileError, match=told):
        network(files.saved(files.embedding(), tmp_path / "embedding.onnx"), beside, state={"h": "next_h"}, batch=0)


def zipped(name, content):
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return whole.getvalue()


def header(shape, kind="<f4"):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def pickled():
    whole = io.BytesIO()
    np.savez(whole, a=np.array([print], dtype=object), x=np.zeros(1))
    return whole.getvalue()


WRONG = {
    "empty": (b"", "it is empty"),
    "no zip": (b"\x80\x04pickle", "it is no .npz file"),
    "pickle": (pickled(), "numbers are read, no objects"),
    "bomb": (zipped("a.npy", bytes(300 << 20)), "it unpacks to more than"),
    "giant": (zipped("a.npy", header("(1000000000000,)")), "does not have the bytes that its shape"),
    "cut": (zipped("a.npy", header("(3,)")[:40]), "it is no .npz file, or it is damaged"),
    "names": (zipped("b.npy", header("(0,)")), "it has the arrays b, and should have a, x"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_a_sentence(odd, tmp_path, name):
    content, told = WRONG[name]
    (tmp_path / "given.npz").write_bytes(content)
    with pytest.raises(ModelFileError, match=told):
        network(odd, UserInputs(inputs=tmp_path / "given.npz"), **ODD)


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"a": (5, 2, 1, 4), "x": (5, 2, 5)}, r"a has the shape \[5, 2, 1, 4\], and should have \[n, batch, 1, 3\]"),
        ({"a": (5, 2, 1, 3), "x": (4, 2, 5)}, r"its arrays have \[4, 5\] steps"),
    ],
)
def test_wrong_shapes_are_told(odd, tmp_path, arrays, told):
    path = given(tmp_path, **{name: np.zeros(shape) for name, shape in arrays.items()})
    with pytest.raises(ModelFileError, match=told):
        network(odd, UserInputs(inputs=path), **ODD)
