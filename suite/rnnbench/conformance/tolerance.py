"""The tolerance of results, and the errors that were found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from rnnbench.results import CheckResult, CheckVerdict

FACTOR = 16.0
"""The largest error that passes, in units of the expected rounding error. It allows for fused multiply-add and for
vector libraries whose activations are off by a few ULP. A wrong gate, bias or state is off by thousands."""
Number = TypeVar("Number", np.float64, np.ndarray)
CHAOS = "computed in this dtype, is off by a share of its own values (chaos), or out of the dtype's range"
WRONG = "; wrong: "
"""The text before the names of wrong arrays, if there are several."""
SIMILAR_SIZE = 16.0
"""Columns have the rounding of the whole array if their largest values are within this factor of its largest. Smaller
ones have a share of it, or what was measured of them if that is more."""
NO_ARRAYS: Mapping[str, slice] = {}
MOST_RANGES = 10
"""Ranges of columns that a detail lists. If there are more, it has the first and the last column."""
Pair = tuple[str, np.ndarray, np.ndarray]
"""A description, the program's array, and the expected array."""


@dataclass
class Errors:
    """The errors of one check, each compared with the rounding expected at its step."""

    max_abs: float = 0.0
    max_ulp: float = 0.0
    rounding: float = 0.0
    detail: str = ""
    beyond: str = ""
    """The first place at which nothing could be compared, because the expected rounding is infinite."""
    wrong: dict[str, None] = field(default_factory=dict)
    """The names of the arrays (see `add`) with a number that is too far off."""

    def add(
        self,
        what: str,
        got: np.ndarray,
        exact: np.ndarray,
        expected: float | np.ndarray,
        arrays: Mapping[str, slice] = NO_ARRAYS,
    ) -> None:
        """Compare `got` with the reference's float64 `exact`, given an expected rounding error of `expected`.

        `expected` is that of every number, or of each column, with 1 in the place of the batch. Where it is infinite,
        nothing but the shape is compared: in this dtype the reference itself gives arbitrary numbers. Whole numbers are
        not rounded, so they must be equal. `arrays` are the columns of `got` that are arrays of their own, by name.
        """
        if got.shape != exact.shape:
            self._worse(np.inf, f"{what}: shape {list(got.shape)}, expected {list(exact.shape)}")
            return
        unknown = np.isinf(expected)
        if unknown.any():
            self.beyond = self.beyond or what + (f", {columns_told(unknown)}," if not unknown.all() else "")
        if unknown.all():
            return
        error, size, expected = _comparable(got, exact, expected)
        most = float(error.max())
        self.max_abs = max(self.max_abs, most if np.isfinite(most) else float("inf"))
        self.max_ulp = max(self.max_ulp, float(_ulps(got.dtype, size.max(), np.float64(most))))
        ratios = _ratios(error, expected, size, got.dtype)
        ratio = float(ratios.max())
        if ratio > FACTOR:
            self.wrong |= {
                name: None for name, columns in arrays.items() if ratios[..., columns].max(initial=0) > FACTOR
            }
        if ratio > self.rounding:  # Only a new worst error is described: this takes longer than the rest.
            where = np.unravel_index(int(np.argmax(ratios)), error.shape)
            off = error[where] if np.isfinite(error[where]) else np.inf
            values = f"got {float(got[where]):.6g}, expected {exact[where]:.6g}"
            self._worse(ratio, f"{what}: off by {off:.3g} at {[int(i) for i in where]}, {values}")

    def add_steps(
        self,
        what: str,
        got: np.ndarray,
        exact: np.ndarray,
        expected: np.ndarray,
        where: str = "",
        arrays: Mapping[str, slice] = NO_ARRAYS,
    ) -> None:
        """As `add` for each step of arrays [steps, batch, columns], given the expected roundings [steps, 1, columns].

        Steps that are not worse than earlier ones are compared together: one by one they would take as long as the
        calls of a small program. With `arrays`, each step that is too far off is added by itself.
        """
        if got.shape != exact.shape:
            self.add(f"{what}{where}", got, exact, 0.0)
            return
        of_step = tuple(range(1, got.ndim))
        error, size, known = _comparable(got, exact, expected)
        most = error.max(axis=of_step)
        comparable = np.isfinite(expected).all(axis=of_step)
        ratios = _ratios(error, known, size, got.dtype).max(axis=of_step)
        for step, ratio in enumerate(ratios.tolist()):
            together = min(self.rounding, FACTOR) if arrays else self.rounding
            if not (comparable[step] and ratio <= together):
                self.add(f"{what} at step {step}{where}", got[step], exact[step], expected[step], arrays)
        comparable_errors = comparable & np.isfinite(most)
        if comparable_errors.any():
            self.max_abs = max(self.max_abs, float(most[comparable_errors].max()))
            largest = size.max(axis=of_step)[comparable_errors]
            self.max_ulp = max(self.max_ulp, float(np.fmax.reduce(_ulps(got.dtype, largest, most[comparable_errors]))))

    def verdict(self) -> CheckResult:
        verdict, detail = self._verdict_and_detail()
        return CheckResult(
            verdict=verdict,
            detail=detail,
            max_abs=self.max_abs if np.isfinite(self.max_abs) else None,
            max_ulp=self.max_ulp if np.isfinite(self.max_ulp) else None,
            rounding=self.rounding if np.isfinite(self.rounding) else None,
        )

    def _verdict_and_detail(self) -> tuple[CheckVerdict, str]:
        if self.rounding > FACTOR:
            return "fail", self.detail + (WRONG + ", ".join(self.wrong)) * (len(self.wrong) > 1)
        if self.beyond:
            return "chaotic", f"not compared from {self.beyond} on: there the reference itself, {CHAOS}"
        return "pass", ""

    def _worse(self, ratio: float, detail: str) -> None:
        if ratio > self.rounding:
            self.rounding, self.detail = ratio, detail


def _comparable(
    got: np.ndarray, exact: np.ndarray, expected: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Absolute errors and values, and the roundings that are expected: zeros where the latter are infinite."""
    known = np.isfinite(expected)
    with np.errstate(invalid="ignore"):
        error = np.where(known, np.abs(got.astype(np.float64) - exact), 0.0)
    return error, np.where(known, np.abs(exact), 0.0), np.where(known, expected, 0.0)


def _ratios(error: np.ndarray, expected: float | np.ndarray, size: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The errors in units of the rounding that is expected of each. `size` has the absolute values that are right.

    A column that is small beside others has its own rounding, and no less than its share of theirs: in the runs in
    which rounding was measured, it may have been smaller still.
    """
    of_column = np.asarray(expected if dtype.kind == "f" else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        if of_column.ndim and of_column.min() < of_column.max():
            sizes = size.max(axis=(*range(size.ndim - of_column.ndim), -2), keepdims=True)
            share = SIMILAR_SIZE * sizes / sizes.max(axis=-1, keepdims=True)
            whole = of_column.max(axis=-1, keepdims=True)
            of_column = np.where(share < 1, np.maximum(of_column, share * whole), whole)
        ratios = np.where(error == 0, 0.0, error / of_column)
    return np.where(np.isnan(ratios), np.inf, ratios)


def _ulps(dtype: np.dtype, largest: Number, error: Number) -> Number:
    """An error in ULP of an array's largest value. In ULP of a zero any error would be infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        ulps: Number = error / np.spacing(largest.astype(dtype))
        return ulps


def worst(*results: CheckResult) -> CheckResult:
    """The most severe of several results. Among equally severe ones, the one with the largest error."""
    severity = {"not-applicable": 0, "pass": 1, "too-short": 2, "chaotic": 3, "fail": 4}
    return max(results, key=lambda result: (severity[result.verdict], result.rounding or 0.0))


def same_bits(pairs: Iterable[Pair]) -> CheckResult:
    """Pass if the arrays of every pair are equal to the bit."""
    for what, got, expected in pairs:
        if (got.dtype, got.shape) != (expected.dtype, expected.shape):
            shown = f"{got.dtype} {list(got.shape)}, expected {expected.dtype} {list(expected.shape)}"
            return CheckResult(verdict="fail", detail=f"{what}: {shown}")
        if got.tobytes() != expected.tobytes():
            differing = (_bytes(got) != _bytes(expected)).any(axis=1).reshape(got.shape)
            detail = f"{what}: {differing.sum()} of {got.size} elements differ, in {columns_told(differing)}"
            return CheckResult(verdict="fail", detail=detail)
    return CheckResult(verdict="pass")


def columns_told(marked: np.ndarray) -> str:
    """The columns, along the last axis, in which an element is true: `columns 0-3, 7`."""
    marked = np.atleast_1d(marked)
    columns = np.flatnonzero(marked.reshape(-1, marked.shape[-1]).any(axis=0)).tolist()
    ends = [column for column in columns if column + 1 not in columns]
    begins = [column for column in columns if column - 1 not in columns]
    if len(ends) > MOST_RANGES:
        begins, ends = begins[:1], ends[-1:]
    ranges = (f"{begin}-{end}" if end > begin else f"{begin}" for begin, end in zip(begins, ends, strict=True))
    return f"columns {', '.join(ranges)}"


def _bytes(array: np.ndarray) -> np.ndarray:
    """The bytes of each element, in a row: a zero and a negative zero are equal numbers, and differ."""
    return np.frombuffer(array.tobytes(), np.uint8).reshape(array.size, array.itemsize)
