"""YAML is read as plain data with places; whatever a case has no use for is refused where it stands."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples

from rnnbench.yaml_files import MAX_BYTES, FileError, FileKind, Place, Source, dotted, parse, read_source

CASE = FileKind("a case", FileError)


def source_of(text: str) -> Source:
    return parse(text, "f.yaml", lambda line, column: Place("f.yaml", line + 1, column + 1), CASE)


def refused(text: str) -> str:
    with pytest.raises(FileError) as caught:
        source_of(text)
    return str(caught.value)


def test_every_key_and_value_has_its_line_and_column():
    source = source_of("a: 1\nb:\n  - x\n  - {c: [2, 3]}\n")
    assert source.data == {"a": 1, "b": ["x", {"c": [2, 3]}]}
    assert str(source.place(("a",))) == "f.yaml:1:4"
    assert str(source.key_place(("b",))) == "f.yaml:2:1"
    assert str(source.place(("b", 0))) == "f.yaml:3:5"
    assert str(source.place(("b", 1, "c", 1))) == "f.yaml:4:13"


def test_what_is_not_written_is_at_the_key_around_it():
    source = source_of("a: 1\nb: {c: 2}\n")
    assert str(source.place(("b", "d"))) == "f.yaml:2:1"
    assert str(source.place(("e", "f", 3))) == "f.yaml:1:1"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-7", -7),
        ("010", 10),
        ("1.0", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        (".inf", float("inf")),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("no", "no"),
        ("on", "on"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("unrolled:4", "unrolled:4"),
        ("'1'", "1"),
        ('"true"', "true"),
    ],
)
def test_plain_scalars_are_those_of_yaml_1_2(text, value):
    got = source_of(f"a: {text}").data["a"]
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x 1\n", "f.yaml:1:4: the anchor &x is not allowed in a case; write each value out"),
        ("a: 1\nb: *x\n", "f.yaml:2:4: the alias *x is not allowed in a case; write the value out"),
        ("*x : 1\n", "f.yaml:1:1: the alias *x is not allowed in a case; write the value out"),
        ("a: !!int '1'\n", "f.yaml:1:4: the tag tag:yaml.org,2002:int is not allowed in a case; leave it out"),
        ("a: !!python/name:os.system\n", "f.yaml:1:4: the tag tag:yaml.org,2002:python/name:os.system is not"),
        ("a: 1\nb: {c: 1, c: 2}\n", "f.yaml:2:11: the key 'c' is here twice; the first is at f.yaml:2:5"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2:1: expected one YAML document, and here a second begins; split the file"),
        ("", "f.yaml:1:1: expected one YAML document, got an empty file"),
        ("# nothing\n", "f.yaml:2:1: expected one YAML document, got an empty file"),
        ("1: 2\n", "f.yaml:1:1: expected the name of a key"),
        ("? [a]\n: 1\n", "f.yaml:1:3: expected the name of a key"),
        ("a: [1, 2\nb: 3\n", "f.yaml:2:2: not YAML: expected ',' or ']', but got ':'"),
        ("a:\n\tb: 1\n", "f.yaml:2:1: not YAML: found character '\\t' that cannot start any token"),
        ("a: 1\nb: \x07\n", "f.yaml:2:4: the character U+0007 is not allowed in YAML"),
        ("a: " + "1" * 5000, "f.yaml:1:4: expected a number of at most 40 characters, got 5000"),
    ],
)
def test_what_is_refused_is_refused_with_line_and_column(text, message):
    assert refused(text).startswith(message)


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 10_000, "- " * 10_000])
def test_depth_is_bounded_and_costs_no_recursion(text):
    assert "nested more than 12 deep; a case needs 5" in refused(text)


def test_a_bomb_of_aliases_is_not_expanded():
    levels = ["a0: &a0 [lol, lol, lol]"] + [f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]" for n in range(1, 30)]
    assert refused("\n".join(levels)).startswith("f.yaml:1:5: the anchor &a0")


def test_a_file_is_read_once_it_is_there_small_and_text(tmp_path: Path):
    path = tmp_path / "f.yaml"
    with pytest.raises(FileError, match=r"f\.yaml: does not exist; correct its path"):
        read_source(path, CASE)
    (tmp_path / "smoke.yaml").write_text("a: 1")
    with pytest.raises(FileError, match=r"smok\.yaml: does not exist; did you mean 'smoke\.yaml'\?"):
        read_source(tmp_path / "smok.yaml", CASE)
    with pytest.raises(FileError, match="cannot be read: Is a directory; correct its path, or its permissions"):
        read_source(tmp_path, CASE)
    path.write_bytes(b"a: 1\nb: \xc3\x28\n")
    with pytest.raises(FileError, match=r"f\.yaml:2:4: expected UTF-8 text, got the byte 0xc3"):
        read_source(path, CASE)
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(FileError, match="at most 256 KiB, and this is larger"):
        read_source(path, CASE)
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_source(path, CASE).data == {"a": 1}


@pytest.mark.parametrize("path", ["pipe.yaml", "/dev/zero"])
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path: Path, path: str):
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(FileError, match="is a pipe or a device, and no plain file"):
        read_source(tmp_path / path, CASE)


def test_paths_are_written_as_people_do():
    assert dotted(("model", "hidden", 1)) == "model.hidden[1]"
    assert dotted(("matrix", "exclude", 0, "chunk")) == "matrix.exclude[0].chunk"


texts = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E) | st.sampled_from("éλ時"), max_size=8)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@examples(20)
@given(st.dictionaries(texts, plain, max_size=4))
def test_json_is_read_as_it_was_written(data):
    text = json.dumps(data, ensure_ascii=False)
    source = source_of(text)
    assert source.data == data
    for path, place in source.values.items():
        assert text.startswith(json.dumps(source.at(path), ensure_ascii=False), place.column - 1)


@examples(80)
@given(st.text(alphabet=st.sampled_from("ab:-[]{}?,&*!|>'\"%@#\n \t1.~") | st.characters(), max_size=60))
def test_no_text_whatever_ends_in_anything_but_data_or_a_located_refusal(text):
    try:
        source_of(text)
    except FileError as error:
        assert all(problem.place.line is not None for problem in error.problems)  # noqa: PT017


@pytest.mark.parametrize("escape", ["\\U00110000", "\\UFFFFFFFF"])
def test_an_escape_that_is_no_character_is_refused(escape):
    assert refused(f'a: 1\nb: "{escape}"\n').startswith("f.yaml:2:1: not YAML after this: ")
