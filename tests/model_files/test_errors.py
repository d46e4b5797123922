"""What libraries say of wrong bytes is told in words of the suite."""

from __future__ import annotations

import errno
import json
import struct
import zipfile
from collections.abc import Callable
from io import BytesIO

import pytest

from rnnbench.model_files.errors import ModelFileError, parsing
from rnnbench.model_files.file_bytes import unpacked


def failing(error: Exception) -> Callable[[], object]:
    def fail() -> object:
        raise error

    return fail


HDF5 = "Unable to synchronously open file (truncated file: eof = 9713, sblock->base_addr = 0, stored_eof = 27552)"
DAMAGED = {
    "json": (lambda: json.loads("{\n1"), "it is no JSON at line 2, column 1"),
    "text": (lambda: b"\xff".decode(), "a text in it is not UTF-8"),
    "nested": (lambda: json.loads("[" * 100_000), "its parts are inside each other too often"),
    "no zip": (lambda: zipfile.ZipFile(BytesIO(b"PK")), "it does not unpack to what was packed"),
    "outside": (lambda: struct.unpack_from("<I", b"1234", 9), "a place that it names lies outside of it"),
    "negative": (failing(TypeError("bad number -7 for type uint32")), "a place that it names lies outside of it"),
    "missing": (lambda: {}["graph_module"], "it has no 'graph_module'"),
    "cut": (failing(OSError(HDF5)), "it has 9,713 of its 27,552 bytes"),
    "part": (failing(KeyError("Unable to synchronously open object (bad header)")), "HDF5 cannot read a part of it"),
    "read": (failing(OSError("Can't synchronously read data (bad heap)")), "HDF5 cannot read a part of it"),
    "links": (failing(RuntimeError("Link iteration failed (invalid link name)")), "HDF5 cannot read a part of it"),
    "kind": (lambda: len(7), "a part of it is of another kind than expected there"),
    "other": (failing(ValueError("seven")), "ValueError: seven"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_a_library_says_of_wrong_bytes_is_told_in_the_words_of_the_suite(name):
    read, told = DAMAGED[name]
    with pytest.raises(ModelFileError) as caught, parsing("it is damaged"):
        read()
    assert str(caught.value) == f"it is damaged: {told}"


@pytest.mark.parametrize("error", [MemoryError(), ImportError("h5py"), OSError(errno.ENOSPC, "No space left")])
def test_a_lack_of_room_or_of_a_package_is_no_damage(error):
    with pytest.raises(type(error)) as caught, parsing("it is damaged"):
        raise error
    assert caught.value is error


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_entry_of_a_zip_with_a_wrong_byte_is_named(method):
    whole = BytesIO()
    with zipfile.ZipFile(whole, "w", method) as archive:
        archive.writestr("a/model.json", bytes(range(256)) * 4)
    data = bytearray(whole.getvalue())
    data[len("a/model.json") + 30 + 14] ^= 0xFF
    with zipfile.ZipFile(BytesIO(data)) as archive, pytest.raises(ModelFileError) as caught:
        unpacked(archive, archive.getinfo("a/model.json"))
    assert str(caught.value) == "its a/model.json is damaged: it does not unpack to what was packed"
