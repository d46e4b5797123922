"""Errors are gathered with their place and measured against expected rounding; bits are compared as bits."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from rnnbench.conformance.tolerance import FACTOR, Errors, columns_told, same_bits, worst
from rnnbench.results import CheckResult

EXACT = np.array([[0.5, -0.25], [0.125, 1.0]])


def test_the_exact_value_passes_with_no_error():
    errors = Errors()
    errors.add("y", EXACT.astype(np.float32), EXACT, 1e-8)
    verdict = errors.verdict()
    assert (verdict.verdict, verdict.max_abs, verdict.max_ulp, verdict.rounding) == ("pass", 0.0, 0.0, 0.0)


@pytest.mark.parametrize(("times", "verdict"), [(15.0, "pass"), (17.0, "fail")])
def test_sixteen_times_the_expected_rounding_passes_and_more_does_not(times, verdict):
    expected, errors = 2.0**-20, Errors()
    got = EXACT.copy()
    got[1, 0] += times * expected
    errors.add("y", got, EXACT, expected)
    assert errors.verdict().verdict == verdict
    assert errors.verdict().rounding == pytest.approx(times)


def test_a_failure_names_place_value_and_expectation():
    errors, got = Errors(), EXACT.copy()
    got[1, 0] = 0.75
    errors.add("y at step 3", got, EXACT, 1e-8)
    detail = errors.verdict().detail
    assert all(part in detail for part in ("y at step 3", "[1, 0]", "0.75", "0.125"))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_fails_even_where_much_rounding_is_expected(bad):
    errors, got = Errors(), EXACT.copy()
    got[0, 1] = bad
    errors.add("y", got, EXACT, 1e6)
    verdict = errors.verdict()
    assert verdict.verdict == "fail"
    assert verdict.max_abs is None


def test_another_shape_fails():
    errors = Errors()
    errors.add("y", EXACT[:1], EXACT, 1.0)
    assert errors.verdict().verdict == "fail"


def test_with_no_rounding_expected_any_error_fails():
    errors = Errors()
    errors.add("y", EXACT + 1e-9, EXACT, 0.0)
    assert errors.verdict().verdict == "fail"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32])
@pytest.mark.parametrize("worst", ["", "nan", "inf", "inf in a column", "wrong"])
def test_steps_together_give_what_they_give_one_by_one(dtype, worst):
    generator = np.random.default_rng([len(worst), np.dtype(dtype).itemsize])
    exact = generator.normal(size=(9, 2, 3)) * np.linspace(0, 5, 9)[:, None, None] * [1, 1e-2, 1e-3]
    expected = np.maximum.accumulate(generator.uniform(0, 1e-2, (9, 1, 3)) * [1, 1, 1e-3])
    together, one_by_one = Errors(), Errors()
    for stream in range(3):
        got = (exact + generator.normal(size=exact.shape) * 1e-2).astype(dtype)
        if worst.startswith("inf"):
            expected[6:, :, 1 if "column" in worst else slice(None)] = np.inf
        elif stream == 1 and worst and got.dtype.kind == "f":
            got[4, 1, 2] = np.nan if worst == "nan" else 7
        together.add_steps("y", got, exact, expected, f" of stream {stream}")
        for step in range(len(got)):
            one_by_one.add(f"y at step {step} of stream {stream}", got[step], exact[step], expected[step])
    assert together == one_by_one
    column = ", columns 1," * ("column" in worst)
    assert together.beyond == (f"y at step 6 of stream 0{column}" if worst.startswith("inf") else "")


def test_steps_of_another_shape_fail():
    errors = Errors()
    errors.add_steps("y", EXACT[:1], EXACT, np.ones((2, 1, 1)), " of a call")
    assert errors.verdict().detail == "y of a call: shape [1, 2], expected [2, 2]"


def test_the_same_bits_pass_and_a_negative_zero_does_not():
    zero = np.zeros(3, np.float32)
    assert same_bits([("y", zero, zero.copy())]).verdict == "pass"
    verdict = same_bits([("y of call 1", -zero, zero)])
    assert verdict.verdict == "fail"
    assert "y of call 1" in verdict.detail


def test_every_pair_is_compared():
    ones, others = np.ones(3, np.float32), np.zeros(3, np.float32)
    assert same_bits([("y of call 1", ones, ones), ("y of call 2", ones, others)]).detail.startswith("y of call 2")


def test_nan_equals_itself_bit_by_bit():
    nan = np.full(2, np.nan, np.float32)
    assert same_bits([("y", nan, nan.copy())]).verdict == "pass"


def test_all_arrays_that_are_wrong_are_named_where_these_are_several():
    errors, got = Errors(), EXACT.copy()
    got[1, 0] = 0.75
    errors.add("y", got, EXACT, 1e-8, {"left": slice(0, 1), "right": slice(1, 2)})
    assert "wrong:" not in errors.verdict().detail
    errors.add("state h at the end", got, EXACT, 1e-8, {"h": slice(None)})
    assert errors.verdict().detail.endswith("; wrong: left, h")


@pytest.mark.parametrize("order", list(permutations(("not-applicable", "pass", "too-short", "chaotic", "fail"))))
def test_a_failure_is_the_worst_of_all_results(order):
    assert worst(*(CheckResult(verdict=verdict) for verdict in order)).verdict == "fail"


def test_an_error_of_just_the_factor_passes():
    errors = Errors()
    errors.add("y", np.array([FACTOR]), np.zeros(1), 1.0)
    assert errors.verdict().verdict == "pass"


def test_whole_numbers_are_equal_whatever_rounding_is_expected():
    for add in (
        lambda e: e.add("n", np.array([[2]]), np.array([[1.0]]), 1e6),
        lambda e: e.add_steps("n", np.array([[[2]]]), np.array([[[1.0]]]), np.array([[[1e6]]])),
    ):
        errors = Errors()
        add(errors)
        assert errors.verdict().verdict == "fail"


def test_bits_of_another_type_fail_and_are_told_as_such():
    zeros = np.zeros((2, 3), np.float32)
    assert same_bits([("y", zeros.astype(np.int32), zeros)]).detail == "y: int32 [2, 3], expected float32 [2, 3]"
    assert same_bits([("y", zeros[:1], zeros)]).detail == "y: float32 [1, 3], expected float32 [2, 3]"


def test_elements_that_differ_are_counted_by_their_bits():
    got = np.array([0.0, -0.0, np.nan, 1.0], np.float32)
    expected = np.array([0.0, 0.0, np.nan, 2.0], np.float32)
    assert same_bits([("y", got, expected)]).detail == "y: 2 of 4 elements differ, in columns 1, 3"


@pytest.mark.parametrize(
    ("marked", "told"),
    [([0, 2, 3, 4, 7], "columns 0, 2-4, 7"), ([5], "columns 5"), (range(0, 30, 2), "columns 0-28")],
)
def test_columns_are_told_as_ranges(marked, told):
    columns = np.zeros((2, 30), bool)
    columns[1, list(marked)] = True
    assert columns_told(columns) == told


def test_results_are_ordered_by_verdict_and_then_by_error():
    ordered = [
        CheckResult(verdict=verdict, rounding=rounding)
        for verdict, rounding in (
            ("not-applicable", 9.0),
            ("pass", 5.0),
            ("pass", 7.0),
            ("too-short", 1.0),
            ("chaotic", None),
            ("chaotic", 0.5),
            ("fail", 17.0),
        )
    ]
    for number, result in enumerate(ordered, start=1):
        for order in permutations(ordered[:number][-3:]):
            assert worst(*order) is result


def test_only_arrays_with_a_number_that_is_too_far_off_are_named():
    errors, got = Errors(), EXACT.copy()
    got[0, 1] = np.nan
    errors.add("y", got, EXACT, 1e-3, {"h": slice(0, 1), "c": slice(1, 2)})
    assert list(errors.wrong) == ["c"]


def test_each_step_that_is_too_far_off_names_its_arrays():
    """Also a step whose error is smaller than an earlier one's."""
    errors, got = Errors(), np.stack([EXACT, EXACT])
    got[0, 0, 0] += 1.0
    got[1, 0, 1] += 0.5
    errors.add_steps(
        "y", got, np.stack([EXACT, EXACT]), np.full((2, 1, 1), 1e-3), arrays={"h": slice(0, 1), "c": slice(1, 2)}
    )
    assert list(errors.wrong) == ["h", "c"]


def test_whole_numbers_are_equal_after_numbers_that_were_rounded():
    errors = Errors()
    errors.add("y", np.array([5.0]), np.zeros(1), 1.0)
    assert errors.verdict().verdict == "pass"
    errors.add_steps("n", np.array([[[2]]]), np.array([[[1.0]]]), np.array([[[1e6]]]))
    assert errors.verdict().verdict == "fail"


def test_what_the_reference_cannot_tell_is_chaotic_unless_something_else_failed():
    errors = Errors()
    errors.add("y at step 3", np.ones(1), np.zeros(1), np.inf)
    errors.add("y at step 4", np.ones(1), np.zeros(1), np.inf)
    assert errors.verdict().verdict == "chaotic"
    assert errors.verdict().detail.startswith("not compared from y at step 3 on")
    errors.add("y at step 2", np.ones(1), np.zeros(1), 1e-3)
    assert errors.verdict().verdict == "fail"


@pytest.mark.parametrize(("column", "verdict"), [(0, "chaotic"), (1, "fail")])
def test_where_one_column_cannot_be_told_the_others_are_compared(column, verdict):
    errors, got = Errors(), EXACT.copy()
    got[:, column] = np.nan
    errors.add("y at step 3", got, EXACT, np.array([[np.inf, 1e-8]]))
    assert errors.verdict().verdict == verdict
    assert errors.beyond == "y at step 3, columns 0,"
