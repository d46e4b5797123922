"""MLIR text: one function's body, line by line, with the cells' primitives as operations of linalg, arith and math.

Values are ranked float32 tensors. Elementwise operations wait until a value is needed, and then become one
`linalg.generic` with all that led to it, so a step's gate math is one operation. Weights are `dense_resource`
constants: their bytes stand once, at the module's end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from rnnbench.backends.iree.lowered import TAG
from rnnbench.backends.iree.values import Resources, Value, flatten, tensor


@dataclass
class Loop:
    """A loop while its body is written: its counter, the values it carries, and what a pass leaves of them."""

    index: str
    carried: tuple[Value, ...]
    results: tuple[Value, ...] = ()


class Emitter:
    """Primitives of `rnnbench.rnn.cells` and what loops need. Lines gather in `lines`, inside a function's braces."""

    def __init__(self, resources: Resources) -> None:
        self.lines: list[str] = []
        self._resources = resources
        self._numbers = 0
        self._indent = "    "
        self._copies = 0
        self._location = ""

    @contextmanager
    def copy(self) -> Iterator[None]:
        """A copy of the cell. Its operations have a location, by which it is found again in the compiled program."""
        self._location = f' loc("{TAG}{self._copies}")'
        self._copies += 1
        yield
        self._location = ""

    def line(self, text: str) -> None:
        self.lines.append(self._indent + text)

    def scalar(self, text: str) -> str:
        """The name of a new value, defined by the operation `text`."""
        name = f"%{self._number()}"
        self.line(f"{name} = {text}{self._location}")
        return name

    def value(self, shape: Sequence[int], text: str) -> Value:
        return Value(tuple(shape), self.scalar(text))

    def another(self) -> Emitter:
        """An emitter for another function of the same module."""
        return Emitter(self._resources)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    # The primitives of a cell.

    def constant(self, array: np.ndarray) -> Value:
        name = self._resources.add(array)
        return self.value(array.shape, f"arith.constant dense_resource<{name}> : {tensor(array.shape)}")

    def matmul(self, x: Value, weight: Value) -> Value:
        self.compute(x)
        shape = (x.shape[0], weight.shape[1])
        start = self._zeros(shape)
        return self.value(
            shape,
            f"linalg.matmul ins({x.name}, {weight.name} : {x.type}, {weight.type})"
            f" outs({start.name} : {start.type}) -> {start.type}",
        )

    def add(self, a: Value, b: Value) -> Value:
        return self._pointwise((a, b), "{r} = arith.addf {0}, {1} : f32")

    def sub(self, a: Value, b: Value) -> Value:
        return self._pointwise((a, b), "{r} = arith.subf {0}, {1} : f32")

    def mul(self, a: Value, b: Value) -> Value:
        return self._pointwise((a, b), "{r} = arith.mulf {0}, {1} : f32")

    def sigmoid(self, x: Value) -> Value:
        return self._pointwise(
            (x,),
            "{r}_1 = arith.constant 1.0 : f32",
            "{r}_n = arith.negf {0} : f32",
            "{r}_e = math.exp {r}_n : f32",
            "{r}_d = arith.addf {r}_e, {r}_1 : f32",
            "{r} = arith.divf {r}_1, {r}_d : f32",
        )

    def tanh(self, x: Value) -> Value:
        return self._pointwise((x,), "{r} = math.tanh {0} : f32")

    def relu(self, x: Value) -> Value:
        return self._pointwise((x,), "{r}_0 = arith.constant 0.0 : f32", "{r} = arith.maximumf {0}, {r}_0 : f32")

    def clip(self, x: Value, bound: float) -> Value:
        high = f"{np.float32(bound):.9e}"
        return self._pointwise(
            (x,),
            f"{{r}}_h = arith.constant {high} : f32",
            f"{{r}}_l = arith.constant -{high} : f32",
            "{r}_m = arith.minimumf {0}, {r}_h : f32",
            "{r} = arith.maximumf {r}_m, {r}_l : f32",
        )

    def split(self, x: Value, parts: int) -> list[Value]:
        """Slices. Those of an elementwise expression are taken from its operands, before it is computed."""
        rows, size = x.shape[0], x.shape[-1] // parts
        if not x.name:
            operands = [self.split(operand, parts) for operand in x.operands]
            return [Value((rows, size), body=x.body, operands=group) for group in zip(*operands, strict=True)]
        if len(x.shape) == 1:
            slices = [f"[{i * size}] [{size}] [1] : {x.type} to {tensor((size,))}" for i in range(parts)]
            return [self.value((size,), f"tensor.extract_slice {x.name}{text}") for text in slices]
        kind = tensor((rows, size))
        slices = [f"[0, {i * size}] [{rows}, {size}] [1, 1] : {x.type} to {kind}" for i in range(parts)]
        return [self.value((rows, size), f"tensor.extract_slice {x.name}{text}") for text in slices]

    def concat(self, parts: Sequence[Value]) -> Value:
        self.compute(*parts)
        return self._concat(parts, (parts[0].shape[0], sum(part.shape[1] for part in parts)), 1)

    def columns(self, x: Value, start: int, stop: int) -> Value:
        self.compute(x)
        rows = x.shape[0]
        kind = tensor((rows, stop - start))
        part = f"[0, {start}] [{rows}, {stop - start}] [1, 1]"
        return self.value((rows, stop - start), f"tensor.extract_slice {x.name}{part} : {x.type} to {kind}")

    def div(self, a: Value, b: Value) -> Value:
        return self._pointwise((a, b), "{r} = arith.divf {0}, {1} : f32")

    def sqrt(self, x: Value) -> Value:
        return self._pointwise((x,), "{r} = math.sqrt {0} : f32")

    def mean(self, x: Value) -> Value:
        self.compute(x)
        start, every = self._zeros(x.shape[:1]), self.empty(x.shape)
        ends = f"ins({x.name} : {x.type}) outs({start.name} : {start.type}) dimensions = [1]"
        total = self.value(start.shape, f"linalg.reduce {{ arith.addf }} {ends}")
        ends = f"ins({total.name} : {total.type}) outs({every.name} : {every.type}) dimensions = [1]"
        scale = f"{{r}}_s = arith.constant {1 / x.shape[1]:.9e} : f32"
        return self._pointwise(
            (self.value(x.shape, f"linalg.broadcast {ends}"),), scale, "{r} = arith.mulf {0}, {r}_s : f32"
        )

    # What the strategies need besides the primitives.

    def empty(self, shape: Sequence[int]) -> Value:
        return self.value(shape, f"tensor.empty() : {tensor(shape)}")

    def _zeros(self, shape: Sequence[int]) -> Value:
        zero, empty = self.scalar("arith.constant 0.0 : f32"), self.empty(shape)
        return self.value(shape, f"linalg.fill ins({zero} : f32) outs({empty.name} : {empty.type}) -> {empty.type}")

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """[a, b, c] to [a·b, c], or back."""
        self.compute(x)
        if len(shape) == 2:
            return self.value(shape, f"tensor.collapse_shape {x.name} [[0, 1], [2]] : {x.type} into {tensor(shape)}")
        return self.value(
            shape,
            f"tensor.expand_shape {x.name} [[0, 1], [2]] output_shape [{', '.join(map(str, shape))}]"
            f" : {x.type} into {tensor(shape)}",
        )

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
        return self._concat(lines, (sum(line.shape[0] for line in lines),), 0)

    def join(self, parts: Sequence[Value]) -> Value:
        """[steps, batch, size] each, side by side."""
        shape = (*parts[0].shape[:2], sum(p.shape[2] for p in parts))
        return self._concat(parts, shape, 2)

    def _concat(self, parts: Sequence[Value], shape: tuple[int, ...], axis: int) -> Value:
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
        number = self._number()
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
        """Give names to values [rows, columns] that are still expressions: one operation for all of one shape."""
        pending: dict[tuple[int, ...], list[Value]] = {}
        for value in dict.fromkeys(values):
            if not value.name:
                pending.setdefault(value.shape, []).append(value)
        for of_one_shape in pending.values():
            self._compute(of_one_shape)

    def _compute(self, pending: Sequence[Value]) -> None:
        leaves, body = flatten(pending)
        shape = pending[0].shape
        full, columns = "affine_map<(r, c) -> (r, c)>", "affine_map<(r, c) -> (c)>"
        maps = ", ".join([columns if len(leaf.shape) == 1 else full for leaf in leaves] + [full] * len(pending))
        out = self.empty(shape)
        outs = f"{', '.join([out.name] * len(pending))} : {', '.join([out.type] * len(pending))}"
        number = self._number()
        left = f"%{number}" if len(pending) == 1 else f"%{number}:{len(pending)}"
        self.line(
            f'{left} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}'
            f" ins({', '.join(v.name for v in leaves)} : {', '.join(v.type for v in leaves)}) outs({outs}) {{"
        )
        arguments = [f"%a{i}: f32" for i in range(len(leaves))] + [f"%o{i}: f32" for i in range(len(pending))]
        self.line(f"^bb0({', '.join(arguments)}):")
        for text in body:
            self.line("  " + text)
        kinds = ", ".join([out.type] * len(pending))
        self.line(f"}} -> {kinds if len(pending) == 1 else f'({kinds})'}{self._location}")
        for i, value in enumerate(pending):
            value.name = f"%{number}" if len(pending) == 1 else f"%{number}#{i}"

    @staticmethod
    def _pointwise(operands: tuple[Value, ...], *body: str) -> Value:
        return Value(operands[0].shape, body=body, operands=operands)
