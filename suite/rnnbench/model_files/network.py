"""A user's model file as a network: its arrays are called in the suite's layout, and its reference is the oracle.

The suite feeds x [steps, batch, input] and reads y [steps, batch, width]. An input of a file has its own order of axes;
several inputs are parts of x, and several outputs parts of y. `FileArray` says how each lies in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from pydantic import Field

from rnnbench.model_files.description import Constant
from rnnbench.model_files.file_arrays import BATCH, FLOATS, CarriedState, FileArray, widest
from rnnbench.model_files.file_bytes import require_unchanged
from rnnbench.model_files.formats import Oracle
from rnnbench.model_files.given_arrays import GivenArrays
from rnnbench.model_files.reading import oracle_of
from rnnbench.rnn import (
    DTYPES,
    Activations,
    Arithmetic,
    LayerBody,
    LayerSpec,
    Network,
    Primitives,
    Trajectory,
    Weights,
    WeightSpec,
    X,
    rounded,
    run_reference,
)

V = TypeVar("V")
STATE_STEPS = 3
"""Steps of the run whose states of whole numbers are drawn ones."""


class FileNetwork(Network):
    """A model file. Its fields are what was read of the file and what the case says of it; see `network_of`."""

    network: ClassVar[str] = "file"
    keys_in_case: ClassVar[bool] = False
    file: str = Field(description="Path of the model file, from the case file's folder.")
    path: str
    sha256: str
    format: str = "onnx"
    """The name of its format. Adapters name those that they read (`Probe.reads`). Plans of older runs do not say it."""
    external: tuple[str, ...] = ()
    """Names of the files beside it that have weights."""
    operators: tuple[str, ...] = ()
    """Kinds of operators in it, the most frequent first. An importer may lack one."""
    inputs: tuple[FileArray, ...]
    results: tuple[FileArray, ...]
    states: tuple[CarriedState, ...]
    constants: tuple[tuple[str, Constant, str], ...]
    """Name, value and type of inputs that are the same in every call."""
    constant_shapes: tuple[tuple[int | str, ...], ...] = ()
    """The shape of each, with `batch` for the rows of a call. Plans of older runs have single values, and no shapes."""
    steps: int | None
    """Steps of a call, where the file fixes them."""
    rows: int | None
    """Rows of a batch, where the file fixes them."""
    given: GivenArrays | None = None
    """The inputs, where the user gives them. They are repeated where a stream is longer or a batch has more rows."""
    expected: GivenArrays | None = None
    """What the outputs must be for these inputs, from the initial state."""
    ranges: tuple[tuple[str, int, int], ...] = ()
    """Name, smallest and largest value of inputs of whole numbers that are drawn."""
    weights: int
    """Elements of all weights."""
    quantised: Activations = ""
    """How the file quantises what its operators give and take."""
    spoiled: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Its traits, each with the arrays that may be wrong by it; see `traits`. Plans of older runs do not say them."""

    @property
    def input(self) -> int:
        return sum(array.size for array in self.inputs)

    @property
    def width(self) -> int:
        return sum(array.size for array in self.results)

    @property
    def dtype(self) -> str:
        """The type of x and y: the widest of the file's inputs and outputs."""
        return widest(array.dtype for array in (*self.inputs, *self.results))

    @property
    def types(self) -> frozenset[str]:
        """The types of all arrays that are given and made in each call."""
        return frozenset(a.dtype for a in (*self.inputs, *self.results, *(state.before for state in self.states)))

    @property
    def traits(self) -> Mapping[str, frozenset[str]]:
        return {name: frozenset(arrays) for name, arrays in self.spoiled}

    @property
    def parts_of_y(self) -> Mapping[str, slice]:
        ends = [0, *np.cumsum([array.size for array in self.results]).tolist()]
        return {array.name: slice(*ends[place : place + 2]) for place, array in enumerate(self.results)}

    def weights_not_finite(self) -> str:
        return _oracle(self.path, self.sha256, self.external).weights_not_finite()

    def state_dtype(self, name: str, dtype: str) -> str:
        return next(state.before.dtype for state in self.states if state.name == name)

    def arithmetic_of(self, dtype: str) -> str:
        """The widest type of the file's arrays, float32 at the least. The oracle rounds what the file has in a narrower
        one so."""
        return widest((dtype, "float32", *(state.before.dtype for state in self.states)))

    @property
    def label(self) -> str:
        """The file's name. Every SavedModel is called the same, so it is told by its folder."""
        path = Path(self.file)
        name = Path(self.path).parent.name if path.name == "saved_model.pb" else path.stem
        return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:40] or "file"

    @property
    def params(self) -> dict[str, object]:
        """The file by its content, and how it is called. Where it lies is not part of it."""
        return {
            "network": self.network,
            "file": Path(self.file).name,
            "sha256": self.sha256[:16],
            "called": self.called,
            **{key: arrays.sha256[:16] for key, arrays in self._arrays_given.items()},
            **({"ranges": {name: [low, high] for name, low, high in self.ranges}} if self.ranges else {}),
        }

    @property
    def _arrays_given(self) -> dict[str, GivenArrays]:
        both = {"inputs": self.given, "expected": self.expected}
        return {key: arrays for key, arrays in both.items() if arrays is not None}

    @property
    def activations(self) -> Activations:
        return self.quantised

    @property
    def takes_any_number(self) -> bool:
        return all(array.dtype in FLOATS for array in self.inputs) and not self.ranges

    def draw_x(self, generator: np.random.Generator, steps: int, batch: int) -> np.ndarray:
        if self.given is not None:
            x = self._as_in_file(self.given.laid(self.inputs))
            return x[np.arange(steps) % len(x)][:, np.arange(batch) % x.shape[1]]
        x, first = super().draw_x(generator, steps, batch), 0
        bounds = {name: (low, high) for name, low, high in self.ranges}
        # Each from a generator of its own: a longer stream begins as a shorter one.
        for array, array_generator in zip(self.inputs, generator.spawn(len(self.inputs)), strict=True):
            if array.name in bounds:
                low, high = bounds[array.name]
                x[:, :, first : first + array.size] = array_generator.integers(
                    low, high + 1, (steps, batch, array.size)
                )
            first += array.size
        return self._as_in_file(x)

    def _as_in_file(self, x: np.ndarray) -> np.ndarray:
        """x, of which each part has values that its input in the file can have."""
        parts = zip(self.inputs, self._parts(x), strict=True)
        return np.concatenate([_fitting(array, part) for array, part in parts], axis=2)

    def _parts(self, x: np.ndarray) -> list[np.ndarray]:
        """The inputs of the file, of x."""
        return np.split(x, np.cumsum([array.size for array in self.inputs])[:-1], axis=2)

    def draw_state(self, generator: np.random.Generator, batch: int) -> dict[str, np.ndarray]:
        """Whole numbers are those after STATE_STEPS steps from zeros: they may be positions, or have another range."""
        state = super().draw_state(generator, batch)
        whole = [state.name for state in self.states if state.before.dtype not in FLOATS]
        if whole:
            run = run_reference(self, Weights(), self.draw_x(generator, STATE_STEPS, batch))
            state |= {name: run.final[name] for name in whole}
        return state

    def expected_y(self, batch: int) -> np.ndarray | None:
        if self.expected is None:
            return None
        y = self.expected.laid(self.results)
        return y[:, np.arange(batch) % y.shape[1]]

    @property
    def called(self) -> str:
        """How it is called: `x [n, batch, 5], h0 → hn [2, batch, 7], sr = 16000: y [n, batch, 3]`.

        A state that begins elsewhere in the file is `h0 from 0 → hn`.
        """
        states = (f"{state.before.name}{' from 0' * state.has_start} → {state.next_in_words}" for state in self.states)
        constants = (f"{name} = {value}" for name, value, _ in self.constants)
        return f"{', '.join([*map(str, self.inputs), *states, *constants])}: {', '.join(map(str, self.results))}"

    def constant_arrays(self, batch: int) -> dict[str, np.ndarray]:
        """The inputs that are the same in every call, with their value in each element."""
        shapes = self.constant_shapes or ((),) * len(self.constants)
        return {
            name: np.full([batch if dim == BATCH else int(dim) for dim in shape], value, dtype)
            for (name, value, dtype), shape in zip(self.constants, shapes, strict=True)
        }

    @property
    def case_keys(self) -> dict[str, Any]:
        return {}

    def state_shapes(self, batch: int) -> dict[str, tuple[int, int, int]]:
        return {state.name: state.before.state_shape(batch) for state in self.states}

    @property
    def graph(self) -> tuple[LayerSpec, ...]:
        """One layer that reads all weights once a call: what a file needs at the least."""
        rows = tuple((name, row) for name, (count, _, _) in self.state_shapes(1).items() for row in range(count))
        return (LayerSpec((X,), self.input, self.width, rows, hoistable_weights=self.weights),)

    def body(self, ops: Primitives[V], weights: Weights, index: int) -> LayerBody[V]:
        raise TypeError(f"{self.file}: a file is read by a runtime, and not written over primitives")

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
    def file_format(self) -> str:
        return self.format

    def refusal(self, *, time: str, state: str, chunk: int, batch: int, dtype: str) -> tuple[str, str] | None:
        if time != "given":
            return "time", f"a model file brings its own program: time is given, not {time}"
        if dtype != self.dtype:
            of_quantiser = "; for int8, quantise the file and give that one" if DTYPES[dtype].base else ""
            return (
                "dtype",
                f"{self.file} is called in {self.dtype}, not {dtype}: write dtype: {self.dtype}{of_quantiser}",
            )
        if self.steps not in (None, chunk):
            return "chunk", f"a call of {self.file} has {self.steps} steps, not {chunk}"
        if self.rows not in (None, batch):
            return "batch", f"{self.file} has a batch of {self.rows}, not {batch}"
        if self.states and state == "none":
            return "state", f"{self.file} takes the state {', '.join(self.state_shapes(1))}: write stitched or stateful"
        if not self.states and state != "none":
            return "state", f"{self.file} has no state, so its state is none, not {state}"
        if self.states and self.steps not in (None, 1):
            return (
                "state",
                f"{self.file} takes {self.steps} steps at once; a stream needs calls of one step, or of any; "
                "with time: null, such a call is one step",
            )
        return None

    def run(
        self, arithmetic: Arithmetic, weights: Weights, x: np.ndarray, state: Mapping[str, np.ndarray]
    ) -> Trajectory:
        """Step by step where the file has a state, and otherwise in one call; by the oracle."""
        oracle = _oracle(self.path, self.sha256, self.external)
        parts = []
        for rows, row_arithmetic in arithmetic.by_rows(x.shape[1]):
            called, size = oracle.in_arithmetic(row_arithmetic), self.rows or max(1, rows.stop - rows.start)
            for first in range(rows.start, rows.stop, size):
                # A call of fewer rows than the file has is filled up with the same ones.
                here = np.arange(first, min(first + size, rows.stop))
                some = np.resize(here, size)
                y, held = self._run_rows(called, x[:, some], {name: a[:, some] for name, a in state.items()})
                parts.append((y[:, : len(here)], {name: a[:, :, : len(here)] for name, a in held.items()}))
        y = np.concatenate([part[0] for part in parts], axis=1).astype(arithmetic.stored, copy=False)
        states = {
            carried.name: np.concatenate([part[1][carried.name] for part in parts], axis=2).astype(
                arithmetic.stored if carried.before.dtype in FLOATS else np.float64, copy=False
            )
            for carried in self.states
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
        arrays = {
            array.name: _carried(array, array.to_file(_fitting(array, part)))
            for array, part in zip(self.inputs, self._parts(x), strict=True)
        }
        arrays |= {
            carried.before.name: _carried(carried.before, carried.before.to_file(state[carried.name]))
            for carried in self.states
        }
        arrays |= self.constant_arrays(rows)
        got = oracle.run(arrays)
        y = [array.from_file(got[array.name], len(x), rows) for array in self.results]
        after = {carried.name: carried.after.from_file(got[carried.after.name], 1, rows) for carried in self.states}
        return np.concatenate(y, axis=2), after


def _carried(array: FileArray, values: np.ndarray) -> np.ndarray:
    """The values in the type in which they are computed with: a float keeps the arithmetic's."""
    return values if array.dtype in FLOATS else values.astype(array.dtype, copy=False)


def _fitting(array: FileArray, values: np.ndarray) -> np.ndarray:
    """The nearest values that an input can have, in the type that they are in."""
    return rounded(values, array.dtype).astype(values.dtype) if array.dtype in FLOATS else values


@cache
def _oracle(path: str, sha256: str, external: tuple[str, ...]) -> Oracle:
    require_unchanged(Path(path), sha256, external)
    return oracle_of(Path(path))


FAMILIES = (FileNetwork,)
