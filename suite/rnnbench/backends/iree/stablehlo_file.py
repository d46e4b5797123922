"""A user's module of StableHLO in a module for IREE: its functions stand unchanged, and `step` lays their arrays out.

none, stitched   step(x, *state) -> (y, *state)
stateful         step(x) -> y, and reset, get_state, set_state; the state is in globals of `ml_program`

Arguments and results are those of the suite, which has bfloat16 in float32: they are converted in these functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rnnbench.backends.base import Request
from rnnbench.backends.iree.imported import Imported, encloses
from rnnbench.backends.shared import STORED_AS, from_file, to_file
from rnnbench.model_files import FileNetwork, StablehloFile, read_stablehlo, unchanged_path
from rnnbench.rnn import DTYPES

Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Value:
    name: str
    shape: Shape
    dtype: str

    @property
    def type(self) -> str:
        return f"tensor<{'x'.join([*map(str, self.shape), _ELEMENTS[self.dtype]])}>"


_ELEMENTS = {
    **{f"{kind}{bits}": f"{sign}{bits}" for kind, sign in (("int", "i"), ("uint", "ui")) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
    "bfloat16": "bf16",
    "bool": "i1",
}


def file_module(request: Request, network: FileNetwork) -> Imported:
    """The module of a request. Raises ModelFileError."""
    file = read_stablehlo(unchanged_path(network))
    shapes = network.state_shapes(request.batch)
    x = _Value("%x", (request.strategy.chunk, request.batch, network.input), network.dtype)
    states = {
        name: _Value(f"%state{index}", shape, network.state_dtype(name, network.dtype))
        for index, (name, shape) in enumerate(shapes.items())
    }
    build = _stateful if encloses(request) else _stitched
    lines = build(_Step(request, network, file), x, states)
    text = "\n".join(["module @rnn {", *lines, *(f"  {line}" for line in file.text.splitlines()), "}"])
    return Imported(text, x.shape, tuple(shapes.values()))


def _stitched(step: _Step, x: _Value, states: Mapping[str, _Value]) -> list[str]:
    entering = {name: step.entering(state) for name, state in states.items()}
    y, after = step.call(step.entering(x), entering)
    results = [step.leaving(value) for value in (y, *after.values())]
    return _function("step", [_exchanged(value) for value in (x, *states.values())], results, step.lines)


def _stateful(step: _Step, x: _Value, states: Mapping[str, _Value]) -> list[str]:
    values = list(states.values())
    loads = [f"{state.name} = ml_program.global_load {_global(state)} : {state.type}" for state in values]
    y, after = step.call(step.entering(x), states)
    leaving, read, written = step.leaving(y), step.another(), step.another()
    results = [read.leaving(value) for value in values]
    entering = [written.entering(value) for value in values]
    return [
        *(f"  ml_program.global private mutable {_global(s)}({_zero(s)} : {s.type}) : {s.type}" for s in values),
        *_function("step", [_exchanged(x)], [leaving], [*loads, *step.lines, *_stores(values, list(after.values()))]),
        *_function("reset", [], [], _zeros(values)),
        *_function("get_state", [], results, [*loads, *read.lines]),
        *_function("set_state", list(map(_exchanged, values)), [], [*written.lines, *_stores(values, entering)]),
    ]


def _global(state: _Value) -> str:
    return f"@global_{state.name.removeprefix('%')}"


def _exchanged(value: _Value) -> _Value:
    """An argument or result as the suite has it."""
    return replace(value, dtype=STORED_AS.get(value.dtype, value.dtype))


def _zero(value: _Value) -> str:
    return f"dense<{'0.0' if value.dtype in DTYPES else 'false' if value.dtype == 'bool' else 0}>"


def _zeros(states: Sequence[_Value]) -> list[str]:
    zeros = [f"{state.name} = stablehlo.constant {_zero(state)} : {state.type}" for state in states]
    return [*zeros, *_stores(states, states)]


def _stores(states: Sequence[_Value], values: Sequence[_Value]) -> list[str]:
    pairs = zip(states, values, strict=True)
    return [f"ml_program.global_store {_global(state)} = {value.name} : {value.type}" for state, value in pairs]


def _function(name: str, arguments: Sequence[_Value], results: Sequence[_Value], lines: Sequence[str]) -> list[str]:
    parameters = ", ".join(f"{value.name}: {value.type}" for value in arguments)
    types = ", ".join(value.type for value in results)
    returned_names = ", ".join(value.name for value in results)
    returned = f"return {returned_names} : {types}" if results else "return"
    return [
        f"  func.func public @{name}({parameters}) -> ({types}) {{",
        *(f"    {line}" for line in (*lines, returned)),
        "  }",
    ]


class _Step:
    """The lines of a call of the file: `ArrayOps` over values of MLIR."""

    def __init__(self, request: Request, network: FileNetwork, file: StablehloFile) -> None:
        self._request, self._network, self._file = request, network, file
        self._sizes = request.strategy.chunk, request.batch
        self.lines: list[str] = []

    def another(self) -> _Step:
        """For the lines of another function."""
        return _Step(self._request, self._network, self._file)

    def entering(self, value: _Value) -> _Value:
        """An argument in the type of the file."""
        exchanged = _exchanged(value)
        return value if exchanged == value else self.cast(exchanged, value.dtype)

    def leaving(self, value: _Value) -> _Value:
        """A result as the suite has it."""
        stored = _exchanged(value).dtype
        return value if stored == value.dtype else self.cast(value, stored)

    def call(self, x: _Value, states: Mapping[str, _Value]) -> tuple[_Value, dict[str, _Value]]:
        """y, and the next states by the names of the states."""
        file_inputs = to_file(self, self._network, x, states, *self._sizes)
        constants = self._network.constant_arrays(self._sizes[1])
        file_inputs |= {name: self._constant(filled) for name, filled in constants.items()}
        before, after = ([pair[side] for pair in self._file.states] for side in (0, 1))
        arguments = [file_inputs[array.name] for array in (*self._file.inputs, *before)]
        arrays = (*self._file.outputs, *after)
        results = [_Value(f"%call#{index}", array.shape, array.dtype) for index, array in enumerate(arrays)]
        names, types = (", ".join(texts) for texts in ([v.name for v in arguments], [v.type for v in arguments]))
        result_types = ", ".join(value.type for value in results)
        self.lines.append(f"%call:{len(results)} = call @{self._file.entry}({names}) : ({types}) -> ({result_types})")
        got = {array.name: value for array, value in zip(arrays, results, strict=True)}
        return from_file(self, self._network, got, *self._sizes)

    def reshaped(self, value: _Value, shape: Sequence[int]) -> _Value:
        return value if value.shape == tuple(shape) else self._line("reshape", [value], tuple(shape))

    def transposed(self, value: _Value, order: Sequence[int]) -> _Value:
        shape = tuple(value.shape[axis] for axis in order)
        return self._line("transpose", [value], shape, f", dims = [{', '.join(map(str, order))}]")

    def columns(self, value: _Value, first: int, end: int) -> _Value:
        steps, batch, _ = value.shape
        return self._line("slice", [value], (steps, batch, end - first), f" [0:{steps}, 0:{batch}, {first}:{end}]")

    def cast(self, value: _Value, dtype: str) -> _Value:
        return self._line("convert", [value], value.shape, dtype=dtype)

    def joined(self, values: Sequence[_Value]) -> _Value:
        shape = (*values[0].shape[:2], sum(value.shape[2] for value in values))
        return self._line("concatenate", values, shape, ", dim = 2")

    def _constant(self, filled: np.ndarray) -> _Value:
        constant = _Value(f"%laid{len(self.lines)}", filled.shape, str(filled.dtype))
        value = filled.flat[0].item() if filled.size else ""
        number = f"{value:.16e}" if isinstance(value, float) else str(value).lower()
        self.lines.append(f"{constant.name} = stablehlo.constant dense<{number}> : {constant.type}")
        return constant

    def _line(self, kind: str, values: Sequence[_Value], shape: Shape, said: str = "", *, dtype: str = "") -> _Value:
        result = _Value(f"%laid{len(self.lines)}", shape, dtype or values[0].dtype)
        names, types = ", ".join(value.name for value in values), ", ".join(value.type for value in values)
        self.lines.append(f"{result.name} = stablehlo.{kind} {names}{said} : ({types}) -> {result.type}")
        return result
