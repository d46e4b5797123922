"""A model file and what a case says of it, as a network. What the suite cannot feed is refused here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rnnbench.model_files.axes import Axes
from rnnbench.model_files.description import (
    ArrayDescription,
    Constant,
    Dim,
    FileDescription,
    answer_in_case,
    option,
    same_elements,
    sized,
)
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.file_arrays import BATCH, FLOATS, TIME, CarriedState, FileArray, widest
from rnnbench.model_files.file_bytes import digest_of
from rnnbench.model_files.given_arrays import given_arrays
from rnnbench.model_files.limits import LARGEST_INTEGER
from rnnbench.model_files.network import FileNetwork
from rnnbench.model_files.section import FileSection
from rnnbench.model_files.traits import traits_of
from rnnbench.rnn import DTYPES


@dataclass(frozen=True)
class UserInputs:
    """What a user gives beside the file: paths of `.npz` files, and the bounds of integers that are drawn."""

    inputs: Path | None = None
    expected: Path | None = None
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)


NOTHING = UserInputs()
STREAMED = dict.fromkeys(("keras", "onnx", "pt2", "savedmodel", "stablehlo"), FLOATS)
"""The types of inputs, outputs and states that are fed and compared, by format; of others it is float32."""
WHOLE_STATES = frozenset({"onnx", "pt2", "savedmodel", "stablehlo", "tflite"})
"""Formats whose states may be whole numbers, or true and false."""
CONSTANT_FLOATS = ("float16", "float32", "float64")
"""The types of NumPy among those of inputs that are the same in every call."""
NO_INPUT = "all its inputs are states or constants; one that is new in each call is needed"
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def network_of(
    path: Path, section: FileSection, description: FileDescription, beside: UserInputs = NOTHING
) -> FileNetwork:
    """The network of a file that is called as `section` says. Raises ModelFileError for what the suite cannot feed."""
    description = sized(description, section.sizes)
    input_arrays = {array.name: array for array in description.of_role("input", "state_in", "constant")}
    output_arrays = {array.name: array for array in description.of_role("output", "state_out") if not array.is_empty}
    _require_known(section, input_arrays, output_arrays)
    streams = [array for name, array in input_arrays.items() if name not in {*section.state, *section.constants}]
    results = _compared(section, description, output_arrays)
    states = [(input_arrays[before], output_arrays[after]) for before, after in section.state.items()]
    _check(streams, results, states, beside, description.format)
    axes = Axes(section.time, section.batch)
    inputs = tuple(_array(array, axes) for array in streams)
    steps, rows = (_fixed_along(streams, axis) for axis in axes)
    outputs = tuple(_array(array, _axes_of_output(array, streams[0], axes, rows)) for array in results)
    if beside.expected is not None and beside.inputs is None:
        raise ModelFileError("outputs are expected of inputs that are given: write inputs too", "expected")
    carried = tuple(_carried(before, after.name, rows, section.batch, streams[0]) for before, after in states)
    called = {state.before.name: state.name for state in carried}
    return FileNetwork(
        given=given_arrays("inputs", beside.inputs, inputs) if beside.inputs is not None else None,
        expected=given_arrays("expected", beside.expected, outputs) if beside.expected is not None else None,
        ranges=tuple((name, low, high) for name, (low, high) in _ranges(streams, beside).items()),
        file=section.file,
        path=os.path.abspath(path),  # A link keeps its name, whose end says the format.
        sha256=digest_of(path, description.external),
        format=description.format,
        external=description.external,
        operators=tuple(description.operators),
        inputs=inputs,
        results=outputs,
        states=carried,
        constants=tuple(
            (n, constant_of(input_arrays[n], value), input_arrays[n].dtype) for n, value in section.constants.items()
        ),
        constant_shapes=tuple(constant_shape(input_arrays[name], streams, section.batch) for name in section.constants),
        steps=steps,
        rows=rows,
        quantised=description.activations,
        spoiled=tuple(
            (name, tuple(sorted(called.get(array, array) for array in arrays)))
            for name, arrays in traits_of(description, section.state)
        ),
        weights=max(1, description.weight_bytes // DTYPES[widest(a.dtype for a in (*streams, *results))].itemsize),
    )


def _compared(
    section: FileSection, description: FileDescription, outputs: Mapping[str, ArrayDescription]
) -> list[ArrayDescription]:
    """The outputs that are compared: those that the case names, else all that are no next states."""
    if section.outputs:
        return [array for name, array in outputs.items() if name in section.outputs]
    # A state that is a constant begins each call anew: nobody takes its next value.
    dropped = {pair.after for pair in description.state if pair.before in section.constants}
    after = {*section.state.values(), *dropped}
    others = [array for name, array in outputs.items() if name not in after]
    # Where all outputs are next states, as of a cell, these are what it gives.
    floats = [array for array in outputs.values() if array.dtype in FLOATS]
    return others or floats or list(outputs.values())


def _check(
    streams: Sequence[ArrayDescription],
    results: Sequence[ArrayDescription],
    states: Sequence[tuple[ArrayDescription, ArrayDescription]],
    beside: UserInputs,
    file_format: str,
) -> None:
    """Raises ModelFileError for arrays that the suite cannot feed or compare."""
    floats = STREAMED.get(file_format, ("float32",))
    if not streams:
        raise ModelFileError(NO_INPUT)
    if not results:
        raise ModelFileError("it has no outputs, so there is nothing to compare")
    _check_types(streams, beside, floats)
    next_states = [after for _, after in states]
    compared = [array.name for array in results if array.dtype in floats] or [
        array.name for array in next_states if array.dtype in floats
    ]
    names = ", ".join(compared)
    others = f"; or compare the others ({option(f'outputs=[{names}]')})" if compared else ""
    for array in results:
        _check_float(array, floats, others)
    for before, _ in states:
        if file_format not in WHOLE_STATES or before.dtype not in (*INTEGERS, "bool"):
            otherwise = f"; or begin each call with the same value of it, as in {option(f'constants.{before.name}=0')}"
            _check_float(before, floats, otherwise)
    for before, after in states:
        _check_fits(before, after)


def _check_types(streams: Sequence[ArrayDescription], beside: UserInputs, floats: Sequence[str]) -> None:
    """Raises ModelFileError for inputs that are no numbers, and integers of which nobody says what they are."""
    integers = {array.name for array in streams if array.dtype in INTEGERS}
    flags = {array.name for array in streams if array.dtype == "bool"}
    if unknown := beside.ranges.keys() - {array.name for array in streams}:
        named = ", ".join(array.name for array in streams)
        told = f"it has no input {min(unknown)} that is new in each call; those that it has: {named}"
        raise ModelFileError(told, "ranges", min(unknown), is_name=True)
    for name, (low, high) in beside.ranges.items():
        if name in flags and not 0 <= low <= high <= 1:
            told = f"the range of {name} is {low} to {high}; it is true or false, which is [0, 1]"
            raise ModelFileError(told, "ranges", name)
        if not -LARGEST_INTEGER <= low <= high <= LARGEST_INTEGER:
            raise ModelFileError(
                f"the range of {name} is {low} to {high}; expected the smaller number first, "
                f"and both up to {LARGEST_INTEGER:,}",
                "ranges",
                name,
            )
    for array in streams:
        if array.name in flags:
            continue
        if array.name not in integers:
            _check_float(array, floats, "; or give its value under `constants`, if it is the same in every call")
        elif not beside.inputs and array.name not in beside.ranges:
            raise ModelFileError(
                f"{array.name} is {array.dtype}, and the file does not say which numbers it takes; say what they are, "
                f"as in {answer_in_case('ranges', array.name, '[0, 99]')}; or give inputs, or give its value under "
                "`constants`, if it is the same in every call"
            )


def _ranges(streams: Sequence[ArrayDescription], beside: UserInputs) -> dict[str, tuple[int, int]]:
    """The ranges of all inputs that are drawn as whole numbers: true and false are 1 and 0."""
    flags = {array.name: (0, 1) for array in streams if array.dtype == "bool" and not beside.inputs}
    return {**flags, **beside.ranges}


def _check_float(array: ArrayDescription, allowed: Sequence[str], otherwise: str = "") -> None:
    if array.dtype in allowed:
        return
    how = (
        "convert the file to inputs and outputs of float32"
        if "float" in array.dtype
        else "export the file with float32 there, and cast it inside"
    )
    raise ModelFileError(
        f"{array.name} is {array.dtype}, and the suite feeds and compares {', '.join(allowed)}; {how}{otherwise}"
    )


def _check_fits(before: ArrayDescription, after: ArrayDescription) -> None:
    """Raises ModelFileError where a state that a call gives cannot be the one that the next call takes."""
    if after.dtype != before.dtype or not same_elements(before, after):
        shapes = (f"{array.name} is {array.dtype} {array.shown_shape}" for array in (before, after))
        raise ModelFileError(
            f"{' and '.join(shapes)}, so the one cannot be the next value of the other", "state", before.name
        )


def _require_known(section: FileSection, inputs: Mapping[str, object], outputs: Mapping[str, object]) -> None:
    for key, name in [
        *(("state", name) for name in section.state),
        *(("constants", name) for name in section.constants),
    ]:
        if name not in inputs:
            told = f"it has no input {name}; its inputs are {', '.join(inputs)}"
            raise ModelFileError(told, key, name, is_name=True)
    if both := section.state.keys() & section.constants.keys():
        told = f"{min(both)} is a state and a constant as the case has it; write it as one of them"
        raise ModelFileError(told, "constants", min(both), is_name=True)
    named: list[tuple[str, str | int, str]] = [("state", before, after) for before, after in section.state.items()]
    named += [("outputs", index, name) for index, name in enumerate(section.outputs)]
    for key, which, name in named:
        if name not in outputs:
            raise ModelFileError(f"it has no output {name}; its outputs are {', '.join(outputs)}", key, which)


def constant_of(array: ArrayDescription, value: Constant | None) -> Constant:
    """The value of an input that is the same in every call. Raises ModelFileError where its type cannot hold it."""
    name, kind = array.name, array.dtype
    if value is None:
        told = f"the constant {name} has no value; write one, as in {answer_in_case('constants', name, '16000')}"
        raise ModelFileError(told, "constants", name)
    if kind not in (*INTEGERS, *CONSTANT_FLOATS, "bool"):
        raise ModelFileError(
            f"{name} is {kind}; constants are {', '.join(CONSTANT_FLOATS)}, whole numbers, true and false; "
            "export the file with float32 there, and cast it inside",
            "constants",
            name,
        )
    low, high = _range_of(kind)
    whole = isinstance(value, int) or value.is_integer()
    if not low <= value <= high or (kind in INTEGERS and not whole):
        raise ModelFileError(f"the constant {name} is {kind}, which cannot be {value}", "constants", name)
    return value


def _range_of(kind: str) -> tuple[float, float]:
    if kind == "bool":
        return 0, 1
    if kind in INTEGERS:
        return int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    return float(np.finfo(kind).min), float(np.finfo(kind).max)


def constant_shape(
    array: ArrayDescription, streams: Sequence[ArrayDescription], batch: int | None
) -> tuple[int | str, ...]:
    """Its shape, with BATCH where a size has the name of the batch of the streams."""
    if array.shape is None:
        raise ModelFileError(f"the file does not say the shape of {array.name}")
    shapes = [stream.shape for stream in streams if batch is not None and stream.shape and batch < len(stream.shape)]
    rows = {shape[batch] for shape in shapes if batch is not None}
    for axis, dim in enumerate(array.shape):
        if not isinstance(dim, int) and (dim is None or dim not in rows):
            raise ModelFileError(
                f"size {axis} of the constant {array.name} is open; write "
                f"{answer_in_case('sizes', f'{array.name}.{axis}', '1')}",
                "constants",
                array.name,
            )
    return tuple(dim if isinstance(dim, int) else BATCH for dim in array.shape)


def _fixed_along(streams: Sequence[ArrayDescription], axis: int | None) -> int | None:
    """The size that all inputs have along an axis; None where the caller chooses it; 1 without such an axis."""
    if axis is None:
        return 1
    dims: set[Dim] = {array.shape[axis] for array in streams if array.shape}
    sizes = sorted(dim for dim in dims if isinstance(dim, int))
    if len(sizes) > 1:
        raise ModelFileError(f"its inputs have {sizes} steps or rows, and one number is needed")
    return sizes[0] if sizes else None


def batch_axis(
    array: ArrayDescription, rows: int | None, stream_batch: int | None, stream: ArrayDescription
) -> int | None:
    """The axis of the batch of an output or state, or None: the told one, the open one, or the one of `rows`.

    Raises ModelFileError where several axes have as many elements, and the input `stream` has other axes.
    """
    if array.batch is not None or stream_batch is None:
        return array.batch
    dims = array.shape or ()
    fitting = [axis for axis, dim in enumerate(dims) if not isinstance(dim, int)]
    if not fitting and rows is not None and rows > 1:
        fitting = [axis for axis, dim in enumerate(dims) if dim == rows]
        if not fitting:
            raise ModelFileError(f"{array.name} has no axis of {rows} rows, and the batch has so many")
        if len(fitting) > 1 and len(dims) != len(stream.shape or ()):
            raise ModelFileError(
                f"{array.name} has {len(fitting)} axes of {rows} elements, so its batch may be any of them; "
                "export the network with another number of rows"
            )
    return fitting[0] if len(fitting) == 1 else stream_batch if stream_batch in fitting else None


def _axes_of_output(
    array: ArrayDescription,
    stream: ArrayDescription,
    axes: Axes,
    rows: int | None,
) -> Axes:
    """Axes of time and batch of an output: as told, or those of an input with as many axes."""
    same = array.shape is not None and stream.shape is not None and len(array.shape) == len(stream.shape)
    time = array.time
    if time is None and same and _may_be_time(array, stream, axes.time):
        time = axes.time
    if axes.time is not None and time is None:
        fixed = array.shape[axes.time] if same and array.shape and array.shape[axes.time] != 1 else 16
        size = answer_in_case("sizes", f"{stream.name}.{axes.time}", str(fixed))
        raise ModelFileError(
            f"{array.name} has no axis of time, and the suite compares what each step gives; with time: null "
            f"({option('time=null')}) and a fixed number of steps a call is one step by itself (where the number is "
            f"open: {size}); or leave it out (outputs: those that are compared)"
        )
    batch = axes.batch if same and array.batch is None else batch_axis(array, rows, axes.batch, stream)
    return Axes(time if axes.time is not None else None, batch if axes.batch is not None else None)


def _may_be_time(array: ArrayDescription, stream: ArrayDescription, axis: int | None) -> bool:
    """Not where the caller chooses the number of steps, and the file has a number of its own there."""
    if axis is None or array.shape is None or stream.shape is None:
        return False
    return not isinstance(array.shape[axis], int) or array.shape[axis] == stream.shape[axis]


def _array(array: ArrayDescription, axes: Axes) -> FileArray:
    if array.shape is None:
        raise ModelFileError(f"the file does not say the shape of {array.name}")
    named = {axis: name for axis, name in zip(axes, (TIME, BATCH), strict=True) if axis is not None}
    if any(axis >= len(array.shape) for axis in named):
        raise ModelFileError(
            f"{array.name} has {len(array.shape)} axes, and the case says that axis {max(named)} is one",
            "time" if named[max(named)] == TIME else "batch",
        )
    shape = tuple(named.get(axis, dim) for axis, dim in enumerate(array.shape))
    for axis, dim in enumerate(shape):
        if not isinstance(dim, int) and axis not in named:
            raise ModelFileError(
                f"the size of axis {axis} of {array.name} is not fixed; say what it is (time or batch), or how large "
                f"({answer_in_case('sizes', f'{array.name}.{axis}', '16')}); a state has the same size in every call"
            )
    dims = tuple(dim if isinstance(dim, int) else str(dim) for dim in shape)
    return FileArray(name=array.name, shape=dims, dtype=array.dtype, is_new=True)


def _carried(
    before: ArrayDescription, after: str, rows: int | None, stream_batch: int | None, stream: ArrayDescription
) -> CarriedState:
    """The state, whose next value is laid out as it is itself: it may lack axes of one element."""
    axes = Axes(None, batch_axis(before, rows, stream_batch, stream))
    shaped = _array(before, axes).model_copy(update={"is_new": False})
    next_value = shaped.model_copy(update={"name": after})
    return CarriedState(before=shaped, after=next_value, has_start=before.has_start)
