"""Reading any file ends with a description or with one sentence."""

from __future__ import annotations

import errno
import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import tflite_files

from rnnbench.model_files import ModelFileError, describe, formats, oracle_of


@pytest.mark.parametrize("read", [describe, oracle_of])
def test_an_operator_that_no_exporter_writes_is_a_sentence(tmp_path, read):
    writer = tflite_files.lstm("int8")
    writer.graph.operators[0].inputs = []
    path = tflite_files.saved(writer, tmp_path / "odd.tflite")
    with pytest.raises(ModelFileError, match=r"odd\.tflite: it is damaged, or is not made as expected: IndexError"):
        read(path)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("net.pth", "may be a pickle"),
        ("net.bin", "a .bin file may be a pickle, which can run any program when it is loaded, or weights alone"),
        ("model.json", "a .json file with a network is TensorFlow.js's"),
        ("net.ts", "TorchScript, as in a .ts file, is a program with pickles"),
        ("inference.json", "paddle2onnx converts PaddlePaddle's to ONNX"),
        ("net.pdmodel", "convert it to ONNX: paddle2onnx --model_dir"),
        ("net.pte", "made for ExecuTorch; give the .pt2 file"),
        ("net.param", "made for one runtime; give the file that it was made of"),
        ("net.onnx.data", "has weights of the file beside it"),
        ("net.pbtxt", "has a network as text, which is not read; save it as bytes"),
        ("net.lite", "a TFLite file is called .tflite here, and not .lite"),
        ("net", "its name has no suffix, such as .onnx; .keras, .h5"),
        ("net.ort", "made for one runtime; give the file that it was made of"),
        ("net.safetensors", "has weights and no program"),
        ("net.onnx.gz", "unpack it"),
        ("net.mlirbc", "call the file .mlir"),
        ("net.abc", "the suffix '.abc' is not known; .keras, .h5, .hdf5, .onnx"),
        ("net.abc", "are read. Export the network to one of them"),
    ],
)
def test_a_file_of_another_kind_is_told_what_to_do(tmp_path, name, told):
    (tmp_path / name).write_bytes(b"1")
    with pytest.raises(ModelFileError) as caught:
        describe(tmp_path / name)
    assert told in str(caught.value)


@pytest.mark.parametrize("suffix", sorted(suffix for found in formats.FORMATS.values() for suffix in found.suffixes))
@pytest.mark.parametrize(
    ("make", "told"),
    [
        (Path.mkdir, "it is a folder; give the file in it"),
        (os.mkfifo, "it is no plain file"),
        (lambda path: path.symlink_to("/dev/zero"), "it is no plain file"),
        (lambda path: path.symlink_to(path), "it cannot be read: Too many levels of symbolic links"),
        (lambda path: path.symlink_to("absent"), "does not exist"),
        (Path.touch, "it is empty"),
        (lambda path: path.write_text("version https://git-lfs.github.com/spec/v1"), "it is a pointer of Git LFS"),
        (lambda path: path.write_text("\n<!DOCTYPE html>"), "it is a page of the web"),
        (lambda path: path.touch() or os.truncate(path, (1 << 30) + 1), "files up to 1 GiB are read"),
    ],
)
def test_what_is_no_file_is_told_before_the_package_of_its_format_is_imported(
    tmp_path, monkeypatch, suffix, make, told
):
    """TensorFlow's import takes seconds, and on a busy machine most of the time that reading may take."""
    path = tmp_path / f"network{suffix}"
    make(path)
    found = formats.format_of(path)
    monkeypatch.setitem(formats.FORMATS, found.name, replace(found, describe=_imports, oracle=_imports))
    for read in (describe, oracle_of):
        with pytest.raises(ModelFileError) as caught:
            read(path)
        assert told in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("net.onnx", b"\x1c\0\0\0TFL3", "call it .tflite"),
        ("net.onnx", b"\x1c\0\0\0ORTM", "a file of ONNX Runtime (.ort) by its first bytes"),
        ("net.onnx", b"\x1f\x8b\x08", "packed by gzip; unpack it"),
        ("net.tflite", b"PK\x03\x04", "it is a zip by its first bytes"),
        ("net.pb", b"\x89HDF\r\n\x1a\n", "call it .h5"),
        ("net.pt2", pickle.dumps({}, protocol=4), "it is a pickle, which can run any program"),
        ("net.keras", b"GGUF\3\0", "weights and no program"),
    ],
)
def test_a_file_of_another_kind_than_its_name_says_is_told_so(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    for read in (describe, oracle_of):
        with pytest.raises(ModelFileError) as caught:
            read(tmp_path / name)
        assert told in str(caught.value)


@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_keras_tells_its_two_kinds_of_files_by_their_bytes(tmp_path, monkeypatch, suffix):
    monkeypatch.setitem(formats.FORMATS, "keras", replace(formats.FORMATS["keras"], describe=_imports))
    for content in (b"PK\x03\x04", b"\x89HDF\r\n\x1a\n"):
        (tmp_path / f"net{suffix}").write_bytes(content)
        with pytest.raises(ModelFileError, match="the format has the file"):
            describe(tmp_path / f"net{suffix}")


def _imports(path):
    raise AssertionError("the format has the file")


@pytest.mark.parametrize("read", [describe, oracle_of])
def test_a_lack_of_memory_is_no_damage(tmp_path, monkeypatch, read):
    def without_memory(path):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), path)

    monkeypatch.setattr(formats, "format_of", without_memory)
    with pytest.raises(MemoryError, match="Cannot allocate memory"):
        read(tmp_path / "network.onnx")


@pytest.mark.parametrize("read", [describe, oracle_of])
def test_a_file_that_may_not_be_read_is_not_damaged(tmp_path, monkeypatch, read):
    def forbidden(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(formats, "format_of", forbidden)
    path = tmp_path / "network.onnx"
    with pytest.raises(ModelFileError, match=f"{path}: {path} cannot be read: Permission denied; see who may read it"):
        read(path)
