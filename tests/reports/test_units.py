"""Figures have three digits and a unit that fits."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples

import rnnbench
from rnnbench.reports import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (1.2345e-5, "12.3 µs"),
        (999.4e-6, "999 µs"),
        (999.7e-6, "1.00 ms"),
        (0.5, "500 ms"),
        (120.0, "120 s"),
        (4000.0, "4000 s"),
        (2.5e-8, "25.0 ns"),
        (9.996, "10.0 s"),
    ],
)
def test_seconds_are_shown_in_the_unit_that_fits(value: float | None, text: str) -> None:
    assert units.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "—"), (0, "0 B"), (512, "512 B"), (37_000, "36.1 KiB"), (4 << 30, "4.00 GiB"), (1023, "1023 B")],
)
def test_bytes_are_shown_in_binary_units(value: int | None, text: str) -> None:
    assert units.nbytes(value) == text


@given(st.floats(1e-9, 1e3))
@examples(40)
def test_seconds_keep_the_value_to_three_digits(value: float) -> None:
    number, unit = units.seconds(value).split()
    size = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert math.isclose(float(number) * size, value, rel_tol=0.006)
    assert len(re.sub(r"\D", "", number).lstrip("0")) <= 4


@pytest.mark.parametrize(
    ("value", "text"), [(1.44, "1.4"), (4e5, "4e+05"), (float("inf"), "∞"), (float("nan"), "NaN"), (999.9, "999.9")]
)
def test_multiples_of_rounding_may_be_anything(value: float, text: str) -> None:
    assert units.multiple(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.9999, "+0.0 %"), (1.0001, "+0.0 %"), (0.969, "-3.1 %"), (20.0, ">+1000 %")]
)
def test_a_change_that_rounds_to_nothing_has_no_minus(ratio: float, text: str) -> None:
    assert units.relative_change(ratio) == text


def test_no_signed_figure_of_the_suite_is_a_negative_zero() -> None:
    """`z` of a format makes -0.0 to 0.0."""
    signed = re.compile(r"(:\+|%\+)\.\df?")
    files = [path for kind in ("*.py", "*.html") for path in Path(rnnbench.__file__).parent.rglob(kind)]
    assert [path.name for path in files if signed.search(path.read_text(encoding="utf-8"))] == ["impossible.py"]


def test_an_end_of_an_interval_may_lie_beyond_all_numbers() -> None:
    assert (units.digits(0.0), units.digits(math.inf)) == ("0", "∞")


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (units.percent(0.012), "±1.2 %"),
        (units.percent(0.9994), "±99.9 %"),
        (units.percent(0.9996), "±100 %"),
        (units.percent(3.394), "±339 %"),
        (units.relative_change(4.394), "+339 %"),
        (units.percent(176.7), "above ±1000 %"),
        (units.end_of_ratio(1.0341), "1.034"),
        (units.end_of_ratio(0.0104), "0.010"),
        (units.end_of_ratio(99.5), "99.500"),
        (units.end_of_ratio(1e53), ">100"),
        (units.end_of_ratio(1e-30), "<0.01"),
        (units.end_of_interval(0.98, 1.02), "0.980"),
        (units.end_of_interval(158, 144), "158"),
        (units.end_of_interval(1e53, 3.87), ">387"),
        (units.end_of_interval(1e-30, 3.87), "<0.0387"),
        (units.relative_change(0.97), "-3.0 %"),
        (units.relative_change(1e53), ">+1000 %"),
    ],
)
def test_an_interval_of_two_processes_that_disagree_is_told_up_to_a_bound(shown: str, text: str) -> None:
    assert shown == text
