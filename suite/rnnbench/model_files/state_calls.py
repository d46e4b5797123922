"""The calls of a file that show whether its states are states. `state_check` says what was seen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rnnbench.model_files.calling import INTEGERS, NO_INPUT, batch_axis, constant_of, constant_shape
from rnnbench.model_files.description import ArrayDescription, FileDescription, answer_in_case, option
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.file_arrays import BATCH
from rnnbench.model_files.formats import Oracle
from rnnbench.model_files.section import FileSection
from rnnbench.model_files.state_check import CALLS_OF, EQUAL, LARGE, StateCheck, open_sizes

STEPS = 4
"""Steps of each half, where the file leaves their number open."""
ROWS = 2
"""Rows of the batch, where the file leaves their number open."""
MORE_CALLS = 8
"""Calls with other inputs and states, where a state seems lost. One that matters in half of the calls is missed in 1
of 512."""
_FIXED_SIZE = (
    ". A state has the same size in every call: a cache that grows is not read, so export it with a fixed size"
)
Arrays = Mapping[str, np.ndarray]


def check_state(oracle: Oracle, description: FileDescription, section: FileSection, seed: int = 0) -> StateCheck:
    """Call the file in float64, with inputs drawn from a seed and states that begin at zero. Raises ModelFileError.

    A file whose batch is open may take one row only, as one whose exporter has written that number into its graph.
    """
    check = _Calls(oracle, description, section, seed)
    try:
        return check.result()
    except ModelFileError as error:
        if section.batch is None or check.rows == 1:
            raise
        with suppress(ModelFileError):
            single = _Calls(oracle, description, section, seed, rows=1)
            checked = single.result()
            return replace(checked, one_row=str(error), made_sizes={**checked.made_sizes, **single.row_sizes()})
        raise


class _Call(NamedTuple):
    """Inputs, the states before the call, and all that it gave."""

    x: Arrays
    held: Arrays
    made: Arrays


class _Calls:
    def __init__(
        self, oracle: Oracle, description: FileDescription, section: FileSection, seed: int, rows: int = ROWS
    ) -> None:
        self._oracle, self._section, self._description = oracle, section, description
        self._draw = np.random.default_rng(seed)
        answered = {*section.state, *section.constants}
        inputs = description.of_role("input", "state_in", "constant")
        self._streams = [array for array in inputs if array.name not in answered]
        self._states = [array for array in inputs if array.name in section.state]
        self._outputs = [
            array for array in description.of_role("output", "state_out") if array.name not in section.state.values()
        ]
        if not self._streams:
            raise ModelFileError(NO_INPUT)
        one_row = any(self._batch_axis_of(array) is None for array in self._states)
        self.rows, self._steps = 1 if one_row else rows, STEPS
        self._made = description.of_role("output", "state_out")
        if any(value is None for value in section.constants.values()):
            raise ModelFileError("its constants have no values; give them first")
        self._constants = {array.name: self._constant(array) for array in inputs if array.name in section.constants}

    def result(self) -> StateCheck:
        first_x, second_x = self._inputs(), self._inputs()
        zero = {array.name: np.zeros(self._shape(array), _dtype(array)) for array in self._states}
        first = self._run(first_x, zero)
        self._check_shapes(first)
        carried = self._next(first)
        for name, value in carried.items():
            if value.dtype.kind == "f" and not np.isfinite(value).all():
                raise ModelFileError(
                    f"{name} becomes NaN or infinite in a call, so no state can be checked; {self._why_not_finite()}"
                )
        second = self._run(second_x, carried)
        # From zeros, a state that begins with what another one was stays zero for a while.
        calls = [_Call(first_x, zero, first), _Call(second_x, carried, second), self._call_from_drawn(second_x)]
        moved, used = self._moved_and_used(calls, calls[1:])
        for _ in range(MORE_CALLS):
            if all(moved.values()) and all(used.values()):
                break
            # A state may matter on one side of a condition only.
            call = self._call_from_drawn(self._inputs())
            more_moved, more_used = self._moved_and_used([call], [call])
            moved = {name: seen or more_moved[name] for name, seen in moved.items()}
            used = {name: seen or more_used[name] for name, seen in used.items()}
        self._check_rows(calls[-1])
        halves, why = self._halves((first_x, second_x), zero, (first, second))
        large = None if halves is None else self._large_halves((first_x, second_x), zero)
        failing = {steps: failure for steps in CALLS_OF if (failure := self._failure(steps, zero))}
        return StateCheck(moved, used, halves, large, why, self._made_sizes(first, zero), failing_steps=failing)

    def _failure(self, steps: int, zero: Arrays) -> str:
        """Why a call of so many steps fails; empty where it does not, and where the file has their number."""
        if not self._has_open_steps():
            return ""
        try:
            self._run_steps(steps, zero)
        except ModelFileError as error:
            return str(error)
        return ""

    def _run_steps(self, steps: int, zero: Arrays) -> dict[str, np.ndarray]:
        self._steps = steps
        try:
            return self._run(self._inputs(), zero)
        finally:
            self._steps = STEPS

    def _has_open_steps(self) -> bool:
        """Whether the caller chooses the number of steps."""
        axis = self._section.time
        return axis is not None and all(
            array.shape is not None and not isinstance(array.shape[axis], int) for array in self._streams
        )

    def _made_sizes(self, outputs: Arrays, zero: Arrays) -> dict[str, int]:
        """The sizes that the call shows, but for those that may be the batch's, or follow the number of steps."""
        opened, others = open_sizes(self._description, self._section), outputs
        if opened and self._has_open_steps():
            try:
                others = self._run_steps(STEPS + 1, zero)
            except ModelFileError:
                return {}
        shown = {f"{name}.{axis}": (outputs[name].shape[axis], others[name].shape[axis]) for name, axis in opened}
        may_be_rows = self._section.batch is not None and self.rows > 1
        return {
            axis: size
            for axis, (size, other) in shown.items()
            if size == other and not (may_be_rows and size == self.rows)
        }

    def row_sizes(self) -> dict[str, int]:
        """One row, for each axis of the batch whose size the file leaves open, as `array.axis`."""
        rows = [(array, self._section.batch) for array in self._streams]
        rows += [(array, self._batch_axis_of(array)) for array in self._states]
        rows += [(array, axis) for array in self._outputs for axis in {self._section.batch, array.batch}]
        return {
            f"{array.name}.{axis}": 1
            for array, axis in rows
            if axis is not None and axis < len(array.shape or ()) and not isinstance((array.shape or ())[axis], int)
        }

    def _call_from_drawn(self, x: Arrays) -> _Call:
        drawn = {array.name: self._drawn(array) for array in self._states}
        return _Call(x, drawn, self._run(x, drawn))

    def _moved_and_used(self, calls: list[_Call], used_in: list[_Call]) -> tuple[dict[str, bool], dict[str, bool]]:
        """By state: whether one of `calls` changes it, and whether one of `used_in` gives something else without it."""
        names = list(self._section.state)
        moved = {name: any(_differ(call.held[name], self._next(call.made)[name]) for call in calls) for name in names}
        return moved, {name: any(self._is_used(name, call) for call in used_in) for name in names}

    def _is_used(self, name: str, call: _Call) -> bool:
        other = self._run(call.x, {**call.held, name: np.zeros_like(call.held[name])})
        return any(_differ(other[output], call.made[output]) for output in call.made)

    def _check_rows(self, call: _Call) -> None:
        """Raises ModelFileError where outputs are not in another order with the rows of all inputs and states in it."""
        batch = self._section.batch
        rows = 1 if batch is None else call.x[self._streams[0].name].shape[batch]
        if rows == 1:
            return
        axes = {array.name: batch for array in self._streams}
        axes |= {array.name: batch_axis(array, rows, batch, self._streams[0]) for array in self._states}
        x, held = ({n: _turned(value, axes[n]) for n, value in arrays.items()} for arrays in (call.x, call.held))
        for name, turned in self._run(x, held).items():
            made = call.made[name]
            places = [axis for axis, size in enumerate(made.shape) if size == rows]
            if places and not any(_difference(_turned(made, axis), turned) <= EQUAL for axis in places):
                raise ModelFileError(
                    f"its {rows} rows depend on each other, or the batch is another axis: with the rows of inputs and "
                    f"states in another order, {name} is not in that order. Say which axis of the inputs it is "
                    f"({option('batch=null')}: none), or export the network with another number of rows"
                )

    def _halves(
        self, x: tuple[Arrays, Arrays], zero: Arrays, results: tuple[Arrays, Arrays]
    ) -> tuple[float | None, str]:
        axis = self._section.time
        if not self._states:
            return None, "it has no state, so every call begins anew"
        if axis is None:
            return None, "one call is one step"
        if any(array.shape is not None and isinstance(array.shape[axis], int) for array in self._streams):
            return None, "the file fixes the number of steps in a call"
        joined = {name: np.concatenate([x[0][name], x[1][name]], axis) for name in x[0]}
        whole = self._run(joined, zero)
        differences = [_difference(whole[name], results[1][name]) for name in self._section.state.values()]
        for array in self._outputs:
            name = array.name
            along = _time_axis(array, whole[name], results[0][name], results[1][name])
            if along is not None and along != axis and whole[name].ndim == joined[self._streams[0].name].ndim:
                raise ModelFileError(_misplaced(name, 2 * STEPS, whole[name], STEPS, results[0][name]))
            if along is None:
                differences.append(_difference(whole[name], results[1][name]))
            else:
                differences.append(
                    _difference(whole[name], np.concatenate([results[0][name], results[1][name]], along))
                )
        return max(differences, default=0.0), ""

    def _large_halves(self, x: tuple[Arrays, Arrays], zero: Arrays) -> float | None:
        """The difference with inputs LARGE times as large. None if a result is not finite, or the file refuses them."""
        drawn = {array.name for array in self._streams if self._is_normal(array)}
        large = tuple({n: value * LARGE if n in drawn else value for n, value in one.items()} for one in x)
        with suppress(ModelFileError):
            first = self._run(large[0], zero)
            second = self._run(large[1], self._next(first))
            difference, _ = self._halves((large[0], large[1]), zero, (first, second))
            if difference is not None and math.isfinite(difference):
                return difference
        return None

    def _run(self, x: Arrays, states: Arrays) -> dict[str, np.ndarray]:
        try:
            return self._oracle.run({**x, **states, **self._constants})
        except ValueError as error:
            raise ModelFileError(f"it cannot be called as the section says: {error}") from error
        except ModelFileError as error:
            raise ModelFileError(f"{error}{self._called(x)}") from error

    def _called(self, x: Arrays) -> str:
        """How a call that failed was made, where the check has chosen sizes; empty where the file has them all."""
        chosen = {
            array.name: list(x[array.name].shape)
            for array in self._streams
            if not all(isinstance(size, int) for size in array.shape or ())
        }
        if not chosen:
            return ""
        shapes = ", ".join(f"{name} {shape}" for name, shape in chosen.items())
        return f". It was called with {shapes}; where it needs other sizes, say them, as in --set sizes.NAME=512"

    def _check_shapes(self, outputs: Arrays) -> None:
        """Raises ModelFileError if an output does not have the shape that the file declares.

        Sizes of time and batch may be those of the export: many files keep them.
        """
        section = self._section
        chosen = {size for axis, size in ((section.time, STEPS), (section.batch, self.rows)) if axis is not None}
        known = all((array.time, array.batch) == (section.time, section.batch) for array in self._streams)
        for array in self._made:
            shape = outputs[array.name].shape
            fits = array.shape is None or len(array.shape) == len(shape)
            axes = {array.time, array.batch}
            may_differ = axes if known and None not in axes else set(range(len(shape)))
            sizes = enumerate(zip(array.shape or (), shape, strict=False))
            if not fits or any(
                isinstance(declared, int) and declared != actual and not (axis in may_differ and actual in chosen)
                for axis, (declared, actual) in sizes
            ):
                raise ModelFileError(
                    f"{array.name} has the shape {list(shape)}, and the file declares {array.shown_shape}; correct "
                    "that, as by what onnx.helper.make_tensor_value_info makes, in place of what `graph.output` has"
                )
            time = array.time if self._has_open_steps() and array.role == "output" else None
            if time is not None and not isinstance((array.shape or shape)[time], int) and shape[time] != STEPS:
                raise ModelFileError(
                    f"{array.name} has {shape[time]} steps in a call of {STEPS}, and the suite compares what each step "
                    "gives; with time: null and a fixed number of steps a call is one step by itself; or leave it out "
                    "(outputs: those that are compared)"
                )

    def _next(self, outputs: Arrays) -> dict[str, np.ndarray]:
        return {array.name: self._of_shape(array, outputs[self._section.state[array.name]]) for array in self._states}

    def _of_shape(self, array: ArrayDescription, value: np.ndarray) -> np.ndarray:
        """The next value of a state, which may lack axes of one element."""
        shape = self._shape(array)
        if value.size != math.prod(shape):
            raise ModelFileError(
                f"the next value of {array.name} has the shape {list(value.shape)}, not {list(shape)}; a state has "
                "the same size in every call, so export a cache that grows as one of a fixed size"
            )
        return value.reshape(shape)

    def _why_not_finite(self) -> str:
        if wrong := self._oracle.weights_not_finite():
            return f"weights that are NaN or infinite: {wrong}. Export the network again"
        first = self._streams[0].name
        return f"if inputs must be within a range, say so: {answer_in_case('ranges', first, '[0, 1]')}"

    def _inputs(self) -> dict[str, np.ndarray]:
        return {array.name: self._drawn(array) for array in self._streams}

    def _drawn(self, array: ArrayDescription) -> np.ndarray:
        shape = self._shape(array)
        low, high = self._section.ranges.get(array.name, (0, 1))
        normal = self._is_normal(array)
        values = self._draw.standard_normal(shape) if normal else self._draw.integers(low, high + 1, shape)
        return values.astype(_dtype(array))

    def _is_normal(self, array: ArrayDescription) -> bool:
        """Whether the array is drawn from a normal distribution, and not from whole numbers of a range."""
        return _dtype(array).kind == "f" and array.name not in self._section.ranges

    def _constant(self, array: ArrayDescription) -> np.ndarray:
        value = constant_of(array, self._section.constants[array.name])
        shape = constant_shape(array, self._streams, self._section.batch)
        return np.full([self.rows if dim == BATCH else int(dim) for dim in shape], value, _dtype(array))

    def _batch_axis_of(self, state: ArrayDescription) -> int | None:
        """The axis of the batch of a state, as a case that runs the file has it."""
        return batch_axis(state, None, self._section.batch, self._streams[0])

    def _shape(self, array: ArrayDescription) -> tuple[int, ...]:
        """Sizes that the file leaves open: STEPS along time; along the batch ROWS, or 1 where a state has one row."""
        if array.shape is None:
            raise ModelFileError(f"the file does not say how many axes {array.name} has")
        is_state = array.name in self._section.state
        time, batch = (None, self._batch_axis_of(array)) if is_state else (self._section.time, self._section.batch)
        open_sizes = {time: self._steps, batch: self.rows}
        sizes = []
        for axis, size in enumerate(array.shape):
            if not isinstance(size, int) and axis not in open_sizes:
                raise ModelFileError(
                    f"size {axis} of {array.name} is open, and is neither time nor batch; say how large it is, as in "
                    f"{answer_in_case('sizes', f'{array.name}.{axis}', '16')}{_FIXED_SIZE if is_state else ''}"
                )
            sizes.append(size if isinstance(size, int) else open_sizes[axis])
        return tuple(sizes)


def _dtype(array: ArrayDescription) -> np.dtype:
    """Floats of any width are drawn in float64. Raises ModelFileError for elements that are no numbers."""
    if array.dtype not in (*INTEGERS, "bool") and "float" not in array.dtype:
        raise ModelFileError(f"{array.name} is {array.dtype}; inputs and states are numbers")
    return np.dtype("float64" if "float" in array.dtype else array.dtype)


def _turned(array: np.ndarray, axis: int | None) -> np.ndarray:
    return array if axis is None else np.flip(array, axis)


def _differ(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape != other.shape or not np.array_equal(one, other, equal_nan=True)


def _difference(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference, relative to 1 where all values are smaller. Equal infinities do not differ; NaN does."""
    if one.shape != other.shape:
        return float("inf")
    if one.size == 0 or one.dtype.kind not in "fiu":
        return 0.0 if np.array_equal(one, other) else float("inf")
    one, other = one.astype(np.float64), other.astype(np.float64)
    differing = one != other
    apart = np.abs(one[differing] - other[differing]).max(initial=0.0)
    largest = np.abs(one[np.isfinite(one)]).max(initial=1.0)
    return float(apart / largest) if np.isfinite(apart) else float("inf")


def _time_axis(array: ArrayDescription, whole: np.ndarray, first: np.ndarray, second: np.ndarray) -> int | None:
    """The axis along which the whole is as long as both halves; None where the output is one for all steps."""
    if array.time is not None:
        return array.time
    axes = [i for i, size in enumerate(whole.shape) if i < first.ndim and size == first.shape[i] + second.shape[i]]
    return axes[0] if len(axes) == 1 else None


def _misplaced(name: str, steps: int, whole: np.ndarray, fewer: int, half: np.ndarray) -> str:
    """Why an output whose rows grow with the steps is none. Exporters write the number of steps that they saw."""
    return (
        f"{name} has the shape {list(whole.shape)} in a call of {steps} steps and {list(half.shape)} in one of "
        f"{fewer}; steps are where rows should be, as an exporter may have fixed their number. Export the network "
        "again, or fix the number of steps with sizes, and say time: null"
    )
