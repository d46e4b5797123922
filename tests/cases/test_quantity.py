"""Durations and sizes are read as people write them, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples

from rnnbench.cases.quantity import BYTES, SECONDS, SHARE, parse, parse_share


@pytest.mark.parametrize(
    ("text", "seconds"), [("120s", 120), ("500ms", 0.5), ("5min", 300), ("1.5 h", 5400), (7, 7), (0.25, 0.25)]
)
def test_durations_are_seconds(text, seconds):
    assert parse(text, SECONDS) == pytest.approx(seconds)


@pytest.mark.parametrize(("text", "nbytes"), [("4GiB", 4 << 30), ("512 MiB", 512 << 20), ("4GB", 4 * 10**9), (64, 64)])
def test_sizes_are_bytes(text, nbytes):
    assert parse(text, BYTES) == nbytes


@pytest.mark.parametrize(("text", "share"), [("1%", 0.01), ("2.5 %", 0.025), (0.5, 0.5)])
def test_shares_are_parts_of_one(text, share):
    assert parse(text, SHARE) == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "share"),
    [("3%", 0.03), ("0.03", 0.03), (".5", 0.5), ("1", 1.0), ("nan", None), ("-1", None), ("3x", None)],
)
def test_a_share_on_a_command_line_may_be_a_plain_number(text, share):
    assert parse_share(text) == (share if share is None else pytest.approx(share))


@pytest.mark.parametrize(
    "value", ["", "s", "1", "-1s", "1e3s", "1 day", "1S", "1s ", "inf", float("inf"), float("nan"), True, None, [1], {}]
)
def test_all_else_is_nothing(value):
    assert parse(value, SECONDS) is None


@examples(40)
@given(st.integers(0, 10**6), st.sampled_from(sorted(BYTES)))
def test_a_number_with_a_unit_is_their_product(number, unit):
    assert parse(f"{number}{unit}", BYTES) == number * BYTES[unit]
