"""MLIR text: one function's body, line by line, with its loops and tensors. `primitives.py` has those of layers.

Values are ranked float32 tensors. Elementwise operations wait until a value is needed, and then become one
`linalg.generic` with all that led to it, so a step's gate math is one operation. Weights are `dense_resource`
constants: their bytes stand once, at the module's end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Self

from rnnbench.backends.iree.lowered import TAG
from rnnbench.backends.iree.values import Resources, Value, flatten, joined_dimensions, tensor


@dataclass
class Loop:
    """A loop while its body is written: its counter, the values it carries, and what a pass leaves of them."""

    index: str
    carried: tuple[Value, ...]
    results: tuple[Value, ...] = ()


class Emitter:
    """What loops and strategies need. Lines gather in `lines`, inside a function's braces.

    `lanes` is the number of float32 in a vector of the processor; 0 for other devices.
    """

    def __init__(self, resources: Resources, lanes: int = 0) -> None:
        self.lines: list[str] = []
        self.resources = resources
        self.lanes = lanes
        self._numbers = 0
        self._indent = "    "
        self._copies = 0
        self.location = ""

    @contextmanager
    def copy(self) -> Iterator[None]:
        """A copy of the cell. Its operations have a location, by which it is found again in the compiled program."""
        self.location = f' loc("{TAG}{self._copies}")'
        self._copies += 1
        yield
        self.location = ""

    def line(self, text: str) -> None:
        self.lines.append(self._indent + text)

    def scalar(self, text: str) -> str:
        """The name of a new value, defined by the operation `text`."""
        name = f"%{self.number()}"
        self.line(f"{name} = {text}{self.location}")
        return name

    def value(self, shape: Sequence[int], text: str) -> Value:
        return Value(tuple(shape), self.scalar(text))

    def another(self) -> Self:
        """An emitter for another function of the same module."""
        return type(self)(self.resources, self.lanes)

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def empty(self, shape: Sequence[int]) -> Value:
        return self.value(shape, f"tensor.empty() : {tensor(shape)}")

    def zeros(self, shape: Sequence[int]) -> Value:
        zero, empty = self.scalar("arith.constant 0.0 : f32"), self.empty(shape)
        return self.value(shape, f"linalg.fill ins({zero} : f32) outs({empty.name} : {empty.type}) -> {empty.type}")

    def reshape(self, x: Value, *shape: int) -> Value:
        """Dimensions are joined or divided, and where that is not enough, joined to one first. One may be −1."""
        self.compute(x)
        size = prod(x.shape)
        shape = tuple(size // -prod(shape) if length == -1 else length for length in shape)
        if shape == x.shape:
            return x
        if groups := joined_dimensions(x.shape, shape):
            return self.value(shape, f"tensor.collapse_shape {x.name} {groups} : {x.type} into {tensor(shape)}")
        if groups := joined_dimensions(shape, x.shape):
            sizes = f"output_shape [{', '.join(map(str, shape))}]"
            return self.value(shape, f"tensor.expand_shape {x.name} {groups} {sizes} : {x.type} into {tensor(shape)}")
        return self.reshape(self.reshape(x, size), *shape)

    def cut(self, x: Value, offset: int, shape: Sequence[int]) -> Value:
        """[rows, columns] of a flat x, from `offset` on."""
        rows, columns = shape
        size = rows * columns
        if size == 1:
            # The compiler (3.13) folds a slice of one element and its expansion into a slice of a higher rank, which
            # its verifier then refuses. So x is expanded here, and then sliced.
            line = self._expanded(x, (1, *x.shape))
            part = f"[0, {offset}] [1, 1] [1, 1] : {line.type} to {tensor(shape)}"
            return self.value(shape, f"tensor.extract_slice {line.name}{part}")
        part = f"[{offset}] [{size}] [1] : {x.type} to {tensor((size,))}"
        return self._expanded(self.value((size,), f"tensor.extract_slice {x.name}{part}"), shape)

    def _expanded(self, x: Value, shape: Sequence[int]) -> Value:
        """A flat x as [rows, columns]."""
        rows, columns = shape
        return self.value(
            shape,
            f"tensor.expand_shape {x.name} [[0, 1]] output_shape [{rows}, {columns}] : {x.type} into {tensor(shape)}",
        )

    def flat(self, parts: Sequence[Value]) -> Value:
        """[rows, columns] each, one after the other."""
        lines = []
        for part in parts:
            shape = (part.shape[0] * part.shape[1],)
            text = f"tensor.collapse_shape {part.name} [[0, 1]] : {part.type} into {tensor(shape)}"
            lines.append(self.value(shape, text))
        return self.concatenated(lines, (sum(line.shape[0] for line in lines),), 0)

    def join(self, parts: Sequence[Value]) -> Value:
        """[steps, batch, size] each, side by side."""
        shape = (*parts[0].shape[:2], sum(p.shape[2] for p in parts))
        return self.concatenated(parts, shape, 2)

    def concatenated(self, parts: Sequence[Value], shape: tuple[int, ...], axis: int) -> Value:
        names, types = ", ".join(p.name for p in parts), ", ".join(p.type for p in parts)
        return self.value(shape, f"tensor.concat dim({axis}) {names} : ({types}) -> {tensor(shape)}")

    def row(self, x: Value, index: str) -> Value:
        """x[index] of x [steps, batch, size]."""
        _, batch, size = x.shape
        part = f"[{index}, 0, 0] [1, {batch}, {size}] [1, 1, 1]"
        kind = tensor((batch, size))
        return self.value((batch, size), f"tensor.extract_slice {x.name}{part} : {x.type} to {kind}")

    def put(self, row: Value, into: Value, index: str) -> Value:
        """`into` [steps, batch, size] with `row` at `index`."""
        _, batch, size = into.shape
        part = f"[{index}, 0, 0] [1, {batch}, {size}] [1, 1, 1]"
        return self.value(
            into.shape, f"tensor.insert_slice {row.name} into {into.name}{part} : {row.type} into {into.type}"
        )

    @contextmanager
    def loop(self, passes: int, start: Sequence[Value]) -> Iterator[Loop]:
        """An `scf.for` that carries `start`. The block sets `results` to the values after a pass.

        After the block `results` are the values after the loop.
        """
        number = self.number()
        lower, upper, one = (self.scalar(f"arith.constant {i} : index") for i in (0, passes, 1))
        carried = tuple(Value(v.shape, f"%v{number}_{i}") for i, v in enumerate(start))
        loop = Loop(f"%k{number}", carried)
        pairs = ", ".join(f"{inner.name} = {outer.name}" for inner, outer in zip(carried, start, strict=True))
        types = ", ".join(v.type for v in start)
        self.line(
            f"%{number}:{len(start)} = scf.for {loop.index} = {lower} to {upper} step {one}"
            f" iter_args({pairs}) -> ({types}) {{"
        )
        self._indent += "  "
        yield loop
        self.line(f"scf.yield {', '.join(v.name for v in loop.results)} : {types}")
        self._indent = self._indent[:-2]
        self.line("}")
        loop.results = tuple(Value(v.shape, f"%{number}#{i}") for i, v in enumerate(start))

    def index(self, counter: str, factor: int, offset: int) -> str:
        """counter · factor + offset."""
        by, plus = (self.scalar(f"arith.constant {i} : index") for i in (factor, offset))
        product = self.scalar(f"arith.muli {counter}, {by} : index")
        return self.scalar(f"arith.addi {product}, {plus} : index")

    def compute(self, *values: Value) -> None:
        """Give names to values that are still expressions: one operation for all of one shape."""
        pending: dict[tuple[int, ...], list[Value]] = {}
        for value in dict.fromkeys(values):
            if not value.name:
                pending.setdefault(value.shape, []).append(value)
        for of_one_shape in pending.values():
            self._compute(of_one_shape)

    def _compute(self, pending: Sequence[Value]) -> None:
        leaves, body = flatten(pending)
        shape = pending[0].shape
        axes = ("r", "c") if len(shape) == 2 else tuple(f"d{axis}" for axis in range(len(shape)))
        maps = ", ".join(
            f"affine_map<({', '.join(axes)}) -> ({', '.join(axes[len(axes) - len(value.shape) :])})>"
            for value in (*leaves, *pending)
        )
        parallel = ", ".join(['"parallel"'] * len(shape))
        out = self.empty(shape)
        outs = f"{', '.join([out.name] * len(pending))} : {', '.join([out.type] * len(pending))}"
        number = self.number()
        left = f"%{number}" if len(pending) == 1 else f"%{number}:{len(pending)}"
        self.line(
            f"{left} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{parallel}]}}"
            f" ins({', '.join(v.name for v in leaves)} : {', '.join(v.type for v in leaves)}) outs({outs}) {{"
        )
        arguments = [f"%a{i}: f32" for i in range(len(leaves))] + [f"%o{i}: f32" for i in range(len(pending))]
        self.line(f"^bb0({', '.join(arguments)}):")
        for text in body:
            self.line("  " + text)
        kinds = ", ".join([out.type] * len(pending))
        self.line(f"}} -> {kinds if len(pending) == 1 else f'({kinds})'}{self.location}")
        for i, value in enumerate(pending):
            value.name = f"%{number}" if len(pending) == 1 else f"%{number}#{i}"
