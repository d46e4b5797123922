"""Copies of files: which of the two files an error is told of."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from rnnbench.file_copies import Content, copy, copy_verified

UNREADABLE = Path("/proc/self/mem")
"""A plain file that can be opened; reading its first byte is an error of input."""


@pytest.mark.parametrize("copied", [copy, lambda *files: copy_verified(*files, Content(1, ""))])
def test_a_file_that_the_disk_does_not_give_is_at_fault_and_not_the_copy(tmp_path, copied):
    with pytest.raises(OSError, match="Input/output error") as caught:
        copied(UNREADABLE, tmp_path / "copy")
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, str(UNREADABLE))
    assert list(tmp_path.iterdir()) == []


def test_an_absent_file_is_at_fault_and_not_the_folder_of_the_copy(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        copy(tmp_path / "absent", tmp_path / "copy")
    assert caught.value.filename == str(tmp_path / "absent")


def test_a_copy_that_the_disk_does_not_take_is_at_fault(tmp_path):
    original = tmp_path / "original"
    original.write_bytes(b"content")
    with pytest.raises(OSError, match="directory") as caught:
        copy(original, tmp_path)
    assert caught.value.filename == str(tmp_path)
