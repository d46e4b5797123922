"""Text from outside: shown in one line without what cannot be seen, and never more than one part of a path."""

from __future__ import annotations

import csv
import io
import tracemalloc
from pathlib import Path

import fake_records as fake
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rnnbench.results import (
    Run,
    StoreError,
    append_record,
    file_name,
    read_run,
    read_samples,
    samples_file,
    visible,
)
from rnnbench.results.exports import EXPORTS
from rnnbench.results.text import identifier

ANY = st.text(st.characters(codec=None), max_size=300)


@given(ANY, ANY)
@example("../../x", "../y")
@example("n" * 300, "x")
@example("é" * 300, "x")
def test_a_name_of_a_file_is_one_part_of_a_path(text: str, other: str) -> None:
    name = file_name(text)
    assert Path(name).name == name
    assert not name.startswith((".", "-"))
    assert len(name.encode()) < 150
    assert samples_file(Path("run"), text, other).parent == Path("run/samples")
    assert Run(Path("run"), fake.info(run=text), ()).name == name


@pytest.mark.parametrize("text", ["../../x", "/etc/x", "a\x00b", "", ".", "..", "n" * 300])
def test_names_that_had_to_change_stay_apart(text: str) -> None:
    assert file_name(text) != file_name(text + "/")


def test_an_ordinary_name_stays() -> None:
    name = "20260131T120000Z-lstm_streaming+gru_streaming"
    assert file_name(name) == name


@given(ANY, ANY)
def test_names_are_visible_and_differ_where_texts_do(text: str, other: str) -> None:
    name = identifier(text, 40)
    assert visible(name) == name
    assert 1 <= len(name.encode()) <= 40
    assert (name == identifier(other, 40)) == (text == other)


@given(ANY)
def test_visible_text_is_one_line_that_can_be_written(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable() or all(character.isprintable() or character.isspace() for character in shown)
    assert "\n" not in shown
    shown.encode()


def test_what_cannot_be_seen_is_an_escape() -> None:
    assert visible("a\x1b[1m\u202e\ud800\nb") == "a\\x1b[1m\\u202e\\ud800 b"
    assert visible("µs ± 1 ÷ ≈ ü") == "µs ± 1 ÷ ≈ ü"


@pytest.mark.parametrize(
    "reason", ["=1+1", "+1", "-1", "@x", "\t=1", "\n=1", "\uff1d1+1", "\uff0b1", "\uff0d1", "\uff20x"]
)
def test_no_cell_of_csv_is_a_formula(reason: str, tmp_path: Path) -> None:
    stream = io.StringIO()
    record = fake.record().model_copy(update={"reason": reason})
    EXPORTS["csv"].write(Run(tmp_path, fake.info(), (record,)), stream)
    (read,) = csv.DictReader(io.StringIO(stream.getvalue()))
    assert read["reason"] == f"'{reason}"


@pytest.mark.proof
def test_a_torn_tail_of_any_length_is_read_and_mended_in_bounded_memory(tmp_path: Path) -> None:
    run = fake.write_run(tmp_path / "run", [fake.record(chunk=1)])
    with (run / "records.jsonl").open("ab") as file:
        for _ in range(256):
            file.write(b"{" * (1 << 20))
    tracemalloc.start()
    try:
        read = read_run(run)
        append_record(run, fake.record(chunk=2))
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()
    assert len(read.records) == 1
    assert "cut short after 268435456 bytes" in read.warnings[0]
    assert len(read_run(run).records) == 2


@pytest.mark.parametrize(
    "line", [b"\xff\xfe\n", b"[" * 100_000 + b"\n", b'{"schema": 2, "\\u001b[31m": 1}\n', b"x" * (20 << 20) + b"\n"]
)
def test_a_damaged_line_is_a_sentence_with_its_place(tmp_path: Path, line: bytes) -> None:
    run = fake.write_run(tmp_path / "run", [fake.record(chunk=1)])
    with (run / "records.jsonl").open("ab") as file:
        file.write(line)
    read = read_run(run)
    assert any("records.jsonl:2: " in warning for warning in read.warnings)
    assert all(warning.isprintable() for warning in read.warnings)
    assert len(read.records) == 1


def test_an_empty_run_or_file_of_samples_is_a_sentence(tmp_path: Path) -> None:
    run = fake.write_run(tmp_path / "run", [])
    file = samples_file(run, "0" * 8, "bound")
    file.parent.mkdir()
    file.write_bytes(b"")
    with pytest.raises(StoreError, match="cannot be read"):
        read_samples(run, "0" * 8, "bound")
    for name in ("run.json", "run.json.copy"):
        (run / name).write_bytes(b"")
    with pytest.raises(StoreError, match=r"run\.json: not JSON"):
        read_run(run)
