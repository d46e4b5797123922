"""Compilers start later, and pay off in longer calls sooner (minutes; docs/questions/when-a-compile-pays-off.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from question_pages import run_page

from rnnbench.results import Row, calls_until_paid

COMPILERS = ("iree", "tvm", "jax")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    folder: Path = tmp_path_factory.mktemp("pays-off")
    return run_page("when-a-compile-pays-off", folder, "--set", "measure.budget=200ms", "--processes", "2")


def start_seconds(row: Row) -> float:
    return float(row["build_s"]) + float(row["load_s"])  # type: ignore[arg-type]


def call_seconds(row: Row) -> float:
    return float(row["bound_median_s"])  # type: ignore[arg-type]


def of(rows: list[Row], backend: str, time: str, chunk: int) -> Row:
    (row,) = (r for r in rows if (r["backend"], r["time"], r["chunk"]) == (backend, time, chunk))
    return row


def calls(row: Row, reference: Row) -> float | None:
    return calls_until_paid(start_seconds(row), call_seconds(row), start_seconds(reference), call_seconds(reference))


@pytest.mark.parametrize("backend", COMPILERS)
def test_a_compiler_starts_later_than_a_library_and_than_numpy(rows: list[Row], backend: str) -> None:
    compiled = start_seconds(of(rows, backend, "looped", 16))
    assert compiled > start_seconds(of(rows, "onnxruntime", "fused", 16))
    assert compiled > start_seconds(of(rows, "numpy", "looped", 16))


@pytest.mark.parametrize("backend", COMPILERS)
def test_against_numpy_a_compile_pays_off_in_fewer_calls_the_longer_they_are(rows: list[Row], backend: str) -> None:
    one, sixteen = (calls(of(rows, backend, "looped", chunk), of(rows, "numpy", "looped", chunk)) for chunk in (1, 16))
    assert sixteen is not None
    assert one is None or sixteen < one


@pytest.mark.parametrize("backend", COMPILERS)
def test_against_a_library_it_takes_more_calls_than_against_numpy(rows: list[Row], backend: str) -> None:
    against_numpy, against_library = (
        calls(of(rows, backend, "looped", 16), of(rows, *reference, 16))
        for reference in (("numpy", "looped"), ("onnxruntime", "fused"))
    )
    assert against_numpy is not None
    assert against_library is None or against_library > against_numpy
