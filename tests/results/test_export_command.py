"""`rnnbench export` writes a run's rows to standard output or to a file, and says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import fake_records as fake
import pytest
from click.testing import CliRunner, Result

from rnnbench.cli.export import export
from rnnbench.results import COLUMNS, StoreError


@pytest.fixture
def results(tmp_path: Path) -> Path:
    fake.write_run(tmp_path / "20260131T120000Z-fake_case", [fake.record(chunk=1), fake.record(chunk=16)])
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(export, arguments)


def test_csv_goes_to_standard_output(results: Path) -> None:
    lines = run("latest", "--results", str(results)).stdout.splitlines()
    assert lines[0] == ",".join(column.name for column in COLUMNS)
    assert len(lines) == 3


def test_json_lines_go_to_a_file(results: Path) -> None:
    file = results / "rows.jsonl"
    assert run("latest", "--format=jsonl", "-o", str(file), "--results", str(results)).exit_code == 0
    assert [json.loads(line)["chunk"] for line in file.read_text().splitlines()] == [1, 16]


def test_an_unknown_format_names_the_known_ones(results: Path) -> None:
    failed = run("latest", "--format=xml", "--results", str(results))
    assert failed.exit_code == 2
    assert "'xml' is not one of csv, jsonl" in failed.stderr


def test_a_file_that_cannot_be_written_is_named(results: Path) -> None:
    failed = run("latest", "-o", str(results / "no" / "rows.csv"), "--results", str(results))
    assert isinstance(failed.exception, StoreError)
    assert "cannot write" in str(failed.exception)
