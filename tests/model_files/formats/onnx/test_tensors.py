"""Tensors: as many bytes as their shapes call for, and data in other files only from the model's own folder."""

from __future__ import annotations

import os

import numpy as np
import onnx_files as files
import pytest

from rnnbench.model_files import ModelFileError, describe, network_of, section_of, unchanged_path


def with_weight(change, folder):
    """A file whose tensor W was changed."""
    proto = files.recurrent("GRU")
    change(next(tensor for tensor in proto.graph.initializer if tensor.name == "W"))
    return files.saved(proto, folder / "network.onnx")


def external(**entries):
    def change(tensor):
        tensor.ClearField("raw_data")
        tensor.data_location = tensor.EXTERNAL
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)

    return change


def dims(*sizes):
    def change(tensor):
        tensor.dims[:] = sizes

    return change


def no_data(tensor):
    tensor.ClearField("raw_data")


def floats(count):
    def change(tensor):
        tensor.ClearField("raw_data")
        tensor.float_data.extend([0.0] * count)

    return change


SIZE = 12 * 3 * 4
WRONG = {
    "more than is there": (dims(1, 12, 4), "144 bytes of data, where its shape .* calls for 192"),
    "a trillion": (dims(10**6, 10**6), "more than 2 GiB"),
    "a trillion, without data": (lambda t: (no_data(t), dims(10**12)(t)), "more than 2 GiB"),
    "beyond 64 bits": (dims(2**62, 2**62, 2**62), "more than 2 GiB"),
    "negative": (dims(-1, 12, 3), "negative size"),
    "no data": (no_data, "0 elements, where its shape .* calls for 36"),
    "fewer numbers": (floats(35), "35 elements"),
    "unknown type": (lambda tensor: setattr(tensor, "data_type", 99), "type 99, which is not known"),
    "absolute": (external(location="/etc/passwd"), "only files in the model's own folder"),
    "above": (external(location="../secret"), "only files in the model's own folder"),
    "above, later": (external(location="a/../../secret"), "only files in the model's own folder"),
    "no place": (external(), "only files in the model's own folder"),
    "NUL": (external(location="a\0b"), "only files in the model's own folder"),
    "missing": (external(location="nothing.bin"), "cannot be read: No such file"),
    "link": (external(location="link.bin"), "symbolic link"),
    "behind a link": (external(location="linked/weights.bin"), "symbolic link"),
    "folder": (external(location="inner"), "no plain file"),
    "fifo": (external(location="fifo"), "no plain file"),
    "too short": (external(location="weights.bin", offset="4"), "bytes 4 to 148; that file ends at 144"),
    "far": (external(location="weights.bin", offset=str(10**17)), "ends at 144"),
    "another length": (external(location="weights.bin", length="4"), "4 bytes, where its shape and type call for 144"),
    "no number": (external(location="weights.bin", offset="-1"), "its offset is '-1'"),
}


@pytest.fixture
def folder(tmp_path):
    """A folder with weights, links, a fifo; and a secret beside it."""
    inside = tmp_path / "inside"
    (inside / "inner").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(bytes(SIZE))
    (inside / "weights.bin").write_bytes(bytes(SIZE))
    (inside / "link.bin").symlink_to(tmp_path / "secret")
    (inside / "linked").symlink_to(tmp_path)
    os.mkfifo(inside / "fifo")
    return inside


@pytest.mark.parametrize("name", WRONG)
def test_it_is_refused_with_the_name_of_the_tensor(folder, name):
    change, says = WRONG[name]
    with pytest.raises(ModelFileError, match=says) as refused:
        describe(with_weight(change, folder))
    assert "'W'" in str(refused.value) or "GiB" in str(refused.value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\t", "\x1b[2J", "\x85", "\u2028", "\u2029", "\u202e"])
@pytest.mark.parametrize("change", [external, lambda location: dims(1, 12, 4)])
def test_no_name_of_a_file_ends_the_sentence(tmp_path, end, change):
    proto = files.recurrent("GRU")
    proto.graph.initializer[0].name = proto.graph.node[0].input[1] = f"W{end}all is well"
    change(location=f"nothing{end}all is well.bin")(proto.graph.initializer[0])
    with pytest.raises(ModelFileError) as refused:
        describe(files.saved(proto, tmp_path / "network.onnx"))
    assert "all is well" in str(refused.value)
    assert not set(str(refused.value)) & set("\n\r\t\x1b\x85\u2028\u2029\u202e")


@pytest.mark.parametrize("name", ["weights/W.bin", "w\u00e9ights #1\u202e.bin", f"{'w' * 150}.bin"])
def test_weights_in_other_files_are_read_and_watched_by_their_whole_path(tmp_path, name):
    data = np.ones((1, 12, 3), np.float32).tobytes()
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(data)
    path = with_weight(external(location=name), tmp_path)
    description = describe(path)
    assert description.external == (name,)
    found = network_of(path, section_of(description, path.name), description)
    assert unchanged_path(found) == path
    (tmp_path / name).write_bytes(data[::-1])
    with pytest.raises(ModelFileError, match="has changed since the case was read"):
        unchanged_path(found)


@pytest.mark.parametrize("change", [floats(36), external(location="weights.bin"), external(location="./weights.bin")])
def test_weights_in_the_file_or_beside_it_are_read(folder, change):
    description = describe(with_weight(change, folder))
    assert description.weight_bytes == describe(files.saved(files.recurrent("GRU"), folder / "b.onnx")).weight_bytes
    assert description.external in ((), ("weights.bin",))


def test_sparse_tensors_are_refused(tmp_path):
    from onnx import helper

    proto = files.recurrent("GRU")
    values = files.weight("sparse", np.ones(1, np.float32))
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, files.weight("i", np.array([0])), [10**9]))
    with pytest.raises(ModelFileError, match="sparse tensors"):
        describe(files.saved(proto, tmp_path / "network.onnx"))


def test_all_tensors_together_have_a_limit(folder):
    """Each is there, in one file of which nothing is on the disk."""
    os.truncate(folder / "weights.bin", 1 << 30)
    proto = files.recurrent("GRU")
    for number in range(3):
        tensor = proto.graph.initializer.add(name=f"large{number}", data_type=files.FLOAT, dims=[1 << 28])
        external(location="weights.bin")(tensor)
    with pytest.raises(ModelFileError, match="more than 2 GiB"):
        describe(files.saved(proto, folder / "network.onnx"))
