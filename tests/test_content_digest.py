"""An object has the digest that it was written with, in whatever form another tool writes it anew."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnbench.content_digest import DIGEST, line_with_digest, text_with_digest, without_digest

OBJECT = {"schema": 3, "median": 1.25e-05, "reason": 'é \U0001f600 \\ "', "none": None, "sizes": [1, 2.0]}
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
OBJECTS = st.dictionaries(
    TEXTS.filter(lambda key: key != DIGEST),
    st.recursive(SCALARS | TEXTS, lambda values: st.lists(values) | st.dictionaries(TEXTS, values)),
)


@given(OBJECTS)
def test_what_is_written_is_read(content: dict[str, Any]) -> None:
    for text in (line_with_digest(json.dumps(content)), text_with_digest(json.dumps(content))):
        read, is_as_written = without_digest(text)
        assert is_as_written
        assert json.loads(read) == content


def test_a_line_ends_with_its_digest_and_an_empty_object_has_one_too() -> None:
    line = line_with_digest(json.dumps(OBJECT))
    assert line.startswith(b'{"schema":3,')
    assert line[-len(f',"{DIGEST}":"') - 18 :].startswith(f',"{DIGEST}":"'.encode())
    assert b"\n" not in line
    assert without_digest(line_with_digest("{}")) == (b"{}", True)


@pytest.mark.parametrize(
    "write",
    [
        lambda content: json.dumps(content),
        lambda content: json.dumps(content, indent=1, ensure_ascii=False),
        lambda content: json.dumps(content).replace("1.25e-05", "0.0000125"),
        lambda content: json.dumps({DIGEST: content.pop(DIGEST), **content}),
    ],
)
def test_an_object_that_is_written_in_another_form_is_as_it_was_written(write: Any) -> None:
    again = write(json.loads(line_with_digest(json.dumps(OBJECT)))).encode()
    read, is_as_written = without_digest(again)
    assert is_as_written
    assert json.loads(read) == OBJECT


@pytest.mark.parametrize(
    "changes", [{"median": 1.25e-06}, {"new": 1}, {"reason": "\ud800"}, {DIGEST: 7}, {DIGEST: None}]
)
def test_an_object_with_another_value_is_not_as_it_was_written(changes: dict[str, Any]) -> None:
    written = json.loads(line_with_digest(json.dumps(OBJECT)))
    read, is_as_written = without_digest(json.dumps({**written, **changes}).encode())
    assert not is_as_written
    assert json.loads(read) == {key: value for key, value in {**written, **changes}.items() if key != DIGEST}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b'{"a":1}',
        f'["{DIGEST}"]'.encode(),
        f'{{"a":{{"{DIGEST}":"0"}}}}'.encode(),
        f'{{"a":1,"{DIGEST}":"0123456789abcdef"'.encode(),
        b"[" * 100_000 + f'"{DIGEST}"'.encode(),
    ],
)
def test_what_has_no_digest_is_returned_as_it_is(text: bytes) -> None:
    """An earlier rnnbench wrote none, and what is no object has none."""
    assert without_digest(text) == (text, True)
