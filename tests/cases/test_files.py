"""The case files that a path names, and the expected failures that hold for a case."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnbench.cases import CaseError, case_files, load_case
from rnnbench.cases.files import expected_failures_file


def test_a_file_is_itself_whether_it_is_there_or_not(tmp_path):
    assert case_files(tmp_path / "missing.yaml") == [tmp_path / "missing.yaml"]


def test_a_name_too_long_for_a_file_system_is_a_missing_file(tmp_path):
    (path,) = case_files(tmp_path / ("x" * 300))
    with pytest.raises(CaseError, match="cannot be read: File name too long"):
        load_case(path)


def test_a_folder_is_its_case_files_by_name_and_not_what_lies_below(tmp_path):
    for name in ("b.yaml", "a.yaml", "expectations.yaml", "notes.md"):
        (tmp_path / name).touch()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "c.yaml").touch()
    assert case_files(tmp_path) == [tmp_path / "a.yaml", tmp_path / "b.yaml"]


def test_a_folder_without_cases_is_told(tmp_path):
    (tmp_path / "expectations.yaml").touch()
    with pytest.raises(CaseError, match="no case file lies in this folder"):
        case_files(tmp_path)


def test_the_nearest_expected_failures_above_a_case_hold(tmp_path):
    folder = tmp_path / "cases" / "conformance"
    folder.mkdir(parents=True)
    (tmp_path / "cases" / "expectations.yaml").touch()
    assert expected_failures_file(folder / "sizes.yaml") == tmp_path / "cases" / "expectations.yaml"
    (folder / "expectations.yaml").touch()
    assert expected_failures_file(folder / "sizes.yaml") == folder / "expectations.yaml"


def test_a_case_of_a_user_has_the_expected_failures_of_the_suite(tmp_path):
    assert expected_failures_file(tmp_path / "my.yaml") == Path(__file__).parents[2] / "cases" / "expectations.yaml"
