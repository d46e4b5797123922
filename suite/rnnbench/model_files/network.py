"""A user's model file as a network: its arrays are called in the suite's layout, and its reference is the oracle.

The suite feeds x [steps, batch, input] and reads y [steps, batch, width]. An input of a file has its own order of axes;
several inputs are parts of x, and several outputs parts of y. `FileArray` says how each lies in the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from rnnbench.model_files.description import ArrayDescription, Dim, FileDescription, sized
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.onnx_file import read_onnx, type_names
from rnnbench.model_files.oracle import Oracle
from rnnbench.model_files.section import Constant, FileSection
from rnnbench.model_files.tensors import load_external
from rnnbench.rnn import Arithmetic, LayerBody, LayerSpec, Network, Primitives, Trajectory, Weights, WeightSpec, X

V = TypeVar("V")
TIME, BATCH = "n", "batch"
STREAMED = "float32"
"""The type of arrays that the suite draws and compares."""


class Layout(NamedTuple):
    """How an array of the suite becomes one of the file: cut into `split`, its axes in `order`, seen as `native`."""

    split: tuple[int, ...]
    order: tuple[int, ...]
    native: tuple[int, ...]


class FileArray(BaseModel):
    """An array of a file: `shape` in the file's order, with `n` for the steps of a call and `batch` for its rows."""

    model_config = ConfigDict(frozen=True)

    name: str
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{self.name} [{', '.join(map(str, self.shape))}]"

    @property
    def size(self) -> int:
        """Elements of one step of one row."""
        return prod(dim for dim in self.shape if isinstance(dim, int))

    @property
    def is_state_of_layers(self) -> bool:
        """Whether it is [rows, batch, size], as the suite has states."""
        return len(self.shape) == 3 and self.shape[1] == BATCH and TIME not in self.shape

    def layout(self, steps: int, batch: int) -> Layout:
        """Of an array [steps, batch, size] of the suite; of a state of layers, which is the same in both."""
        sizes = {TIME: steps, BATCH: batch}
        native = tuple(sizes[dim] if isinstance(dim, str) else dim for dim in self.shape)
        if self.is_state_of_layers:
            return Layout(native, (0, 1, 2), native)
        places = [self.shape.index(dim) for dim in (TIME, BATCH) if dim in self.shape]
        places += [place for place, dim in enumerate(self.shape) if isinstance(dim, int)]
        order = tuple(places.index(place) for place in range(len(native)))
        return Layout(tuple(native[place] for place in places), order, native)

    def to_file(self, array: np.ndarray) -> np.ndarray:
        """An array of the suite as the file has it."""
        layout = self.layout(array.shape[0], array.shape[1])
        return array.reshape(layout.split).transpose(layout.order)

    def from_file(self, array: np.ndarray, steps: int, batch: int) -> np.ndarray:
        """The inverse of `to_file`."""
        layout = self.layout(steps, batch)
        back = array.reshape(layout.native).transpose(np.argsort(layout.order))
        return back if self.is_state_of_layers else back.reshape(steps, batch, self.size)

    def state_shape(self, batch: int) -> tuple[int, int, int]:
        """The shape that it has as a state of the suite, [rows, batch, size]."""
        rows, _, size = self.shape if self.is_state_of_layers else (1, BATCH, self.size)
        return int(rows), batch, int(size)


class CarriedState(BaseModel):
    """A state: the output `after` of one call is the input `before` of the next."""

    model_config = ConfigDict(frozen=True)

    before: FileArray
    after: FileArray


class FileNetwork(Network):
    """A model file. Its fields are what was read of the file and what the case says of it; see `network_of`."""

    network: ClassVar[str] = "file"
    keys_in_case: ClassVar[bool] = False
    file: str = Field(description="Path of the model file, from the case file's folder.")
    path: str
    sha256: str
    inputs: tuple[FileArray, ...]
    outputs_: tuple[FileArray, ...]
    states: tuple[CarriedState, ...]
    constants: tuple[tuple[str, Constant, str], ...]
    """Name, value and type of inputs that are the same in every call."""
    steps: int | None
    """Steps of a call, where the file fixes them."""
    rows: int | None
    """Rows of a batch, where the file fixes them."""
    weights: int
    """Elements of all weights."""

    @property
    def input(self) -> int:
        return sum(array.size for array in self.inputs)

    @property
    def width(self) -> int:
        return sum(array.size for array in self.outputs_)

    @property
    def label(self) -> str:
        return "".join(c if c.isalnum() or c in "-_" else "-" for c in Path(self.file).stem)[:40] or "file"

    @property
    def params(self) -> dict[str, object]:
        """The file by its content, and how it is called. Where it lies is not part of it."""
        return {
            "network": self.network,
            "file": Path(self.file).name,
            "sha256": self.sha256[:16],
            "called": self.called,
        }

    @property
    def called(self) -> str:
        """How it is called: `x [n, batch, 5], h0 → hn [2, batch, 7], sr = 16000: y [n, batch, 3]`."""
        states = (f"{one.before.name} → {one.after}" for one in self.states)
        constants = (f"{name} = {value}" for name, value, _ in self.constants)
        return f"{', '.join([*map(str, self.inputs), *states, *constants])}: {', '.join(map(str, self.outputs_))}"

    @property
    def case_keys(self) -> dict[str, Any]:
        return {}

    def state_shapes(self, batch: int) -> dict[str, tuple[int, int, int]]:
        return {state.before.name: state.before.state_shape(batch) for state in self.states}

    @property
    def graph(self) -> tuple[LayerSpec, ...]:
        """One layer that reads all weights once a call: what a file needs at the least."""
        rows = tuple((name, row) for name, (count, _, _) in self.state_shapes(1).items() for row in range(count))
        return (LayerSpec((X,), self.input, self.width, rows, hoistable_weights=self.weights),)

    def body(self, ops: Primitives[V], weights: Weights, index: int) -> LayerBody[V]:
        raise NotImplementedError("a file is read by a runtime, and not written over primitives")

    def weight_specs(self) -> Iterator[WeightSpec]:
        return iter(())

    @property
    def weight_count(self) -> int:
        return self.weights

    @property
    def reference_work(self) -> int:
        """ONNX's reference evaluator takes milliseconds a step, and each row by itself where the file fixes them."""
        return max(self.weights, 10**6) * (10 if self.rows else 1)

    @property
    def longest_reference(self) -> int:
        return 512

    @property
    def brings_program(self) -> bool:
        return True

    def refusal(self, *, time: str, state: str, chunk: int, batch: int, dtype: str) -> tuple[str, str] | None:
        if time != "given":
            return "time", f"a model file brings its own program: time is given, not {time}"
        if dtype != STREAMED:
            return "dtype", f"a model file is called in {STREAMED}, not {dtype}"
        if self.steps not in (None, chunk):
            return "chunk", f"a call of {self.file} has {self.steps} steps, not {chunk}"
        if self.rows not in (None, batch):
            return "batch", f"{self.file} has a batch of {self.rows}, not {batch}"
        if self.states and state == "none":
            return "state", f"{self.file} takes the state {', '.join(self.state_shapes(1))}: write stitched or stateful"
        if not self.states and state != "none":
            return "state", f"{self.file} has no state, so its state is none, not {state}"
        if self.states and self.steps not in (None, 1):
            return "state", f"{self.file} takes {self.steps} steps at once; a stream needs calls of one step, or of any"
        return None

    def run(
        self,
        arithmetic: Arithmetic,
        weights: Weights,
        x: np.ndarray,
        state: Mapping[str, np.ndarray],
        lengths: np.ndarray | None = None,
    ) -> Trajectory:
        """Step by step where the file has a state, and otherwise in one call; by the oracle."""
        if lengths is not None:
            raise ValueError("lengths: rows of their own lengths are for stacks of cells")
        oracle = _oracle(self.path, self.sha256)
        parts = []
        for rows, own in arithmetic.by_rows(x.shape[1]):
            called = oracle.in_arithmetic(own)
            for first in range(rows.start, rows.stop, self.rows or max(1, rows.stop - rows.start)):
                some = slice(first, first + self.rows if self.rows else rows.stop)
                parts.append(self._run_rows(called, x[:, some], {name: a[:, some] for name, a in state.items()}))
        y = np.concatenate([part[0] for part in parts], axis=1).astype(arithmetic.stored, copy=False)
        states = {
            name: np.concatenate([part[1][name] for part in parts], axis=2).astype(arithmetic.stored, copy=False)
            for name in state
        }
        return Trajectory(y, {name: array[-1] for name, array in states.items()}, states)

    def _run_rows(
        self, oracle: Oracle, x: np.ndarray, state: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """y [steps, rows, width] and the states after each step, of as many rows as a call has."""
        steps, rows = x.shape[:2]
        length = 1 if self.states else steps
        held, outputs = dict(state), []
        history: dict[str, list[np.ndarray]] = {name: [] for name in state}
        for first in range(0, steps, length):
            y, held = self._call(oracle, x[first : first + length], held, rows)
            outputs.append(y)
            for name, array in held.items():
                history[name].append(array)
        return np.concatenate(outputs), {name: np.stack(arrays) for name, arrays in history.items()}

    def _call(
        self, oracle: Oracle, x: np.ndarray, state: Mapping[str, np.ndarray], rows: int
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        cuts = np.cumsum([array.size for array in self.inputs])[:-1]
        given = {a.name: a.to_file(part) for a, part in zip(self.inputs, np.split(x, cuts, axis=2), strict=True)}
        given |= {one.before.name: one.before.to_file(state[one.before.name]) for one in self.states}
        given |= {name: np.array(value, dtype) for name, value, dtype in self.constants}
        got = oracle.run(given)
        y = [array.from_file(got[array.name], len(x), rows) for array in self.outputs_]
        after = {one.before.name: one.after.from_file(got[one.after.name], 1, rows) for one in self.states}
        return np.concatenate(y, axis=2), after


@cache
def _oracle(path: str, sha256: str) -> Oracle:
    """Raises ModelFileError where the file is not what it was when the case was read."""
    _require_same(Path(path), sha256)
    return Oracle(Path(path))


def read_whole(path: Path, sha256: str) -> Any:
    """The file as an `onnx.ModelProto`, with all of its weights. Raises ModelFileError."""
    _require_same(path, sha256)
    model = read_onnx(path).model
    load_external(model, path.parent, type_names())
    return model


def _require_same(path: Path, sha256: str) -> None:
    if _digest(path, read_onnx(path).external) != sha256:
        raise ModelFileError(f"{path} has changed since the case was read; run the command again")


def _digest(path: Path, external: Sequence[str]) -> str:
    """SHA-256 of a file and of the files beside it that have its weights. Raises ModelFileError."""
    digest = hashlib.sha256()
    for each in (path, *(path.parent / name for name in external)):
        try:
            with each.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise ModelFileError(f"{each.name} cannot be read: {error.strerror}") from error
    return digest.hexdigest()


def network_of(path: Path, section: FileSection, description: FileDescription) -> FileNetwork:
    """The network of a file that is called as `section` says. Raises ModelFileError for what the suite cannot feed."""
    description = sized(description, section.sizes)
    given = {array.name: array for array in description.of_role("input", "state_in", "constant")}
    made = {array.name: array for array in description.of_role("output", "state_out")}
    _known(section, given, made)
    streams = [array for name, array in given.items() if name not in {*section.state, *section.constants}]
    results = [array for name, array in made.items() if name not in section.state.values()]
    if not streams or not results:
        raise ModelFileError("it has no input that is new in each call, or no output but its states")
    for array in (*streams, *results, *(given[name] for name in section.state)):
        if array.dtype != STREAMED:
            raise ModelFileError(
                f"{array.name} is {array.dtype}, and the suite feeds and compares {STREAMED}; "
                "give an input that is always the same under `constants`"
            )
    axes = section.time, section.batch
    inputs = tuple(_array(array, axes) for array in streams)
    dims = [(array, axes[0], axes[1]) for array in streams]
    return FileNetwork(
        file=section.file,
        path=str(path.resolve()),
        sha256=_digest(path, description.external),
        inputs=inputs,
        outputs_=tuple(_array(array, _axes_of_output(array, streams[0], axes)) for array in results),
        states=tuple(
            CarriedState(before=_state(given[before]), after=_state(given[before], name=after))
            for before, after in section.state.items()
        ),
        constants=tuple((name, _valued(name, value), given[name].dtype) for name, value in section.constants.items()),
        steps=_fixed([array.shape[time] for array, time, _ in dims if time is not None and array.shape], 1)
        if section.time is not None
        else 1,
        rows=_fixed([array.shape[batch] for array, _, batch in dims if batch is not None and array.shape], 1)
        if section.batch is not None
        else 1,
        weights=max(1, description.weight_bytes // 4),
    )


def _known(section: FileSection, given: Mapping[str, object], made: Mapping[str, object]) -> None:
    for name in (*section.state, *section.constants):
        if name not in given:
            raise ModelFileError(f"it has no input {name}; its inputs are {', '.join(given)}")
    for name in section.state.values():
        if name not in made:
            raise ModelFileError(f"it has no output {name}; its outputs are {', '.join(made)}")


def _valued(name: str, value: Constant | None) -> Constant:
    if value is None:
        raise ModelFileError(f"the constant {name} has no value; write one, as in constants: {{{name}: 16000}}")
    return value


def _fixed(dims: Sequence[Dim], otherwise: int) -> int | None:
    """The size that all have; None where the caller chooses it."""
    sizes = {dim for dim in dims if isinstance(dim, int)}
    if len(sizes) > 1:
        raise ModelFileError(f"its inputs have {sorted(sizes)} steps or rows, and one number is needed")
    return sizes.pop() if sizes else None if dims else otherwise


def _axes_of_output(
    array: ArrayDescription, stream: ArrayDescription, axes: tuple[int | None, int | None]
) -> tuple[int | None, int | None]:
    """Axes of time and batch of an output: as told, or those of an input with as many axes."""
    same = array.shape is not None and stream.shape is not None and len(array.shape) == len(stream.shape)
    time = array.time if array.time is not None else axes[0] if same else None
    batch = array.batch if array.batch is not None else axes[1] if same else None
    if axes[0] is not None and time is None:
        raise ModelFileError(f"{array.name} has no axis of time, and the suite compares what each step gives")
    return (time if axes[0] is not None else None), (batch if axes[1] is not None else None)


def _array(array: ArrayDescription, axes: tuple[int | None, int | None]) -> FileArray:
    if array.shape is None:
        raise ModelFileError(f"the file does not say the shape of {array.name}")
    named = {axis: name for axis, name in zip(axes, (TIME, BATCH), strict=True) if axis is not None}
    if any(axis >= len(array.shape) for axis in named):
        raise ModelFileError(
            f"{array.name} has {len(array.shape)} axes, and the case says that axis {max(named)} is one"
        )
    shape = tuple(named.get(axis, dim) for axis, dim in enumerate(array.shape))
    for axis, dim in enumerate(shape):
        if not isinstance(dim, int) and axis not in named:
            raise ModelFileError(
                f"the size of axis {axis} of {array.name} is not fixed; say what it is (time or batch)"
            )
    return FileArray(name=array.name, shape=tuple(dim if isinstance(dim, int) else str(dim) for dim in shape))


def _state(array: ArrayDescription, name: str = "") -> FileArray:
    """A state has an axis of the batch or none; an axis whose size the caller chooses is the batch's."""
    open_axes = [axis for axis, dim in enumerate(array.shape or ()) if not isinstance(dim, int)]
    batch = array.batch if array.batch is not None else open_axes[0] if len(open_axes) == 1 else None
    shaped = _array(array, (None, batch))
    return shaped.model_copy(update={"name": name}) if name else shaped


FAMILIES = (FileNetwork,)
