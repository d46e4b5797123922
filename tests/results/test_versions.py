"""Packages with their versions are one text, and that text is read again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rnnbench.results import parse_versions, versions_text

NAMES = st.from_regex(r"[a-z][a-z0-9_-]*", fullmatch=True)
VERSIONS = st.from_regex(r"[0-9][0-9a-z.+]*", fullmatch=True)


@given(st.dictionaries(NAMES, VERSIONS))
def test_what_is_written_is_read_again(versions: dict[str, str]) -> None:
    assert parse_versions(versions_text(versions)) == versions


def test_packages_stand_in_order_and_what_is_no_version_is_left_out() -> None:
    assert versions_text({"onnxruntime": "1.24.1", "onnx": "1.20.0"}) == "onnx 1.20.0, onnxruntime 1.24.1"
    assert parse_versions("") == parse_versions("nothing") == {}
