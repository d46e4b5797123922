"""A compressed run is read, resumed and damaged as a run is: what is damaged is named, and nothing is lost."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import fake_records as fake
import pytest

pytest.importorskip("zstandard")

import zstandard

from rnnbench.disk import open_plain
from rnnbench.optional import MissingExtraError
from rnnbench.results import StoreError, append_record, compress_records, read_run, records_file
from rnnbench.results.compressed import COMPRESSED, RECORDS, restore_records


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return fake.write_run(tmp_path / "run", list(fake.whole_run()))


def test_a_compressed_run_is_read_as_it_was(run: Path) -> None:
    before, size = read_run(run), (run / RECORDS).stat().st_size
    assert compress_records(run) == (size, (run / COMPRESSED).stat().st_size)
    assert not (run / RECORDS).exists()
    after = read_run(run)
    assert (after.records, after.warnings) == (before.records, ())
    assert compress_records(run) is None


def test_a_run_that_is_resumed_is_restored_first(run: Path) -> None:
    before = read_run(run).records
    plain = (run / RECORDS).read_bytes()
    compress_records(run)
    append_record(run, fake.record(chunk=99))
    assert (run / RECORDS).read_bytes().startswith(plain)
    assert not (run / COMPRESSED).exists()
    assert read_run(run).records == (*before, fake.record(chunk=99))


def test_while_both_files_are_there_the_plain_one_is_the_truth(run: Path) -> None:
    plain = (run / RECORDS).read_bytes()
    compress_records(run)
    (run / RECORDS).write_bytes(plain.splitlines(keepends=True)[0])
    assert len(read_run(run).records) == 1
    append_record(run, fake.record(chunk=99))
    assert len(read_run(run).records) == 2


@pytest.mark.parametrize("doing", [compress_records, restore_records])
def test_records_that_another_process_compresses_or_restores_meanwhile_are_read(
    run: Path, monkeypatch: pytest.MonkeyPatch, doing: Callable[[Path], object]
) -> None:
    """The file goes after the reader has seen it, and before the reader opens it."""
    before = read_run(run).records
    goes = RECORDS if doing is compress_records else COMPRESSED
    if doing is restore_records:
        compress_records(run)

    def opened(file: Path) -> BinaryIO:
        if file.name == goes:
            doing(run)
        return open_plain(file)

    monkeypatch.setattr(records_file, "open_plain", opened)
    assert read_run(run).records == before
    assert not (run / goes).exists()


DAMAGES = {
    "cut": lambda content: content[: len(content) * 2 // 3],
    "changed": lambda content: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
    "empty": lambda content: b"",
    "other": lambda content: b"no frame at all",
    "twice": lambda content: content + content,
    "followed": lambda content: content + zstandard.compress(b"{}\n"),
    "rubbish at its end": lambda content: content + b"rubbish",
    "no length": lambda content: zstandard.ZstdCompressor(write_content_size=False).compress(
        zstandard.decompress(content)
    ),
}


@pytest.mark.first(3)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_and_stays(run: Path, damage: str) -> None:
    whole = read_run(run)
    compress_records(run)
    file = run / COMPRESSED
    file.write_bytes(content := DAMAGES[damage](file.read_bytes()))
    read = read_run(run)
    assert f"{file}: damaged: " in read.warnings[0]
    assert not re.search(r"-\d|\d{9}", read.warnings[0].removeprefix(str(file))), "a number that means nothing"
    assert all(record == whole.by_trial[record.trial] for record in read.records)
    with pytest.raises(StoreError, match=r"zst: damaged: .*restore the file"):
        append_record(run, fake.record(chunk=99))
    assert file.read_bytes() == content
    assert not (run / RECORDS).exists()


def test_without_the_package_it_is_said_what_to_install(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compress_records(run)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rnnbench\[history\]'"):
        read_run(run)
