"""Packages with their versions are one text that is read again. Distributions of one module are one package."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnbench.results import by_package, parse_versions, version_of, versions_text

NAMES = st.from_regex(r"[a-z][a-z0-9_-]*", fullmatch=True)
VERSIONS = st.from_regex(r"[0-9][0-9a-z.+]*", fullmatch=True)


@given(st.dictionaries(NAMES, VERSIONS))
def test_what_is_written_is_read_again(versions: dict[str, str]) -> None:
    assert parse_versions(versions_text(versions)) == versions


def test_packages_stand_in_order_and_what_is_no_version_is_left_out() -> None:
    assert versions_text({"onnxruntime": "1.24.1", "onnx": "1.20.0"}) == "onnx 1.20.0, onnxruntime 1.24.1"
    assert parse_versions("") == parse_versions("nothing") == {}


@pytest.mark.parametrize("package", ["onnxruntime", "onnxruntime-gpu"])
@pytest.mark.parametrize("installed", ["onnxruntime", "onnxruntime-gpu"])
def test_the_version_of_a_package_is_that_of_any_distribution_with_its_module(package: str, installed: str) -> None:
    assert version_of(package, {"onnx": "1.23.1", installed: "1.31.1"}) == "1.31.1"


def test_a_package_that_is_not_there_has_no_version() -> None:
    assert version_of("onnxruntime", {"onnx": "1.23.1"}) is None


def test_a_distribution_in_the_place_of_another_one_is_named_beside_its_version() -> None:
    assert by_package({"onnx": "1.23.1", "onnxruntime": "1.30.0"}) == {"onnx": "1.23.1", "onnxruntime": "1.30.0"}
    assert by_package({"onnxruntime-gpu": "1.31.1"}) == {"onnxruntime": "1.31.1 (onnxruntime-gpu)"}
    both = by_package({"onnxruntime": "1.30.0", "onnxruntime-gpu": "1.31.1"})
    assert both == {"onnxruntime": "1.30.0, 1.31.1 (onnxruntime-gpu)"}, "the versions of merged shards"
