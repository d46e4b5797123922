"""The tensors of a function while it is written: named values, elementwise expressions without a name, constants."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

ALIGNMENT = 64
"""Bytes to which the resources' data are aligned, as IREE aligns its own."""


@dataclass(eq=False)
class Value:
    """A tensor of the function: an SSA name, or an elementwise expression that has no name yet."""

    shape: tuple[int, ...]
    name: str = ""
    body: tuple[str, ...] = ()
    """Lines that compute one element, {r}, from the elements {0}, {1}, … of the operands."""
    operands: tuple[Value, ...] = ()
    is_slice: bool = False
    """Whether it is some columns of a wider value."""
    array: np.ndarray | None = None
    """The numbers of a constant."""

    @property
    def type(self) -> str:
        return tensor(self.shape)


def tensor(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, (*shape, 'f32')))}>"


def joined_dimensions(fine: Sequence[int], coarse: Sequence[int]) -> list[list[int]]:
    """The dimensions of `fine` that each dimension of `coarse` is made of; none where it is not made so."""
    groups: list[list[int]] = []
    axis = 0
    for size in coarse:
        group: list[int] = []
        product = 1
        while axis < len(fine) and (not group or product < size):
            group.append(axis)
            product *= fine[axis]
            axis += 1
        if product != size or not group:
            return []
        groups.append(group)
    groups[-1] += range(axis, len(fine))
    return groups if all(size == 1 for size in fine[axis:]) else []


class Resources:
    """Constants of a module by name. Equal arrays are stored once."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}
        self._packed: dict[int, tuple[np.ndarray, str]] = {}

    def add(self, array: np.ndarray) -> str:
        data = np.ascontiguousarray(array, np.float32)
        shape = "x".join(map(str, data.shape))
        name = f"w_{shape}_{hashlib.sha256(data.tobytes()).hexdigest()[:12]}"
        self._arrays[name] = data
        return name

    def packed(self, array: np.ndarray, pack: Callable[[], np.ndarray]) -> str:
        """The name of an array in another form, which is made once: each copy of a cell reads it."""
        if id(array) not in self._packed:
            self._packed[id(array)] = array, self.add(pack())
        return self._packed[id(array)][1]

    def text(self, functions: str) -> str:
        """The section that ends a module: each blob is its alignment, four bytes, and its data.

        Only what the text of the functions reads.
        """
        read = set(re.findall(r"dense_resource<(\w+)>", functions))
        if not read:
            return ""
        header = ALIGNMENT.to_bytes(4, "little").hex()
        blobs = ",\n      ".join(f'{n}: "0x{header}{a.tobytes().hex()}"' for n, a in self._arrays.items() if n in read)
        return f"{{-#\n  dialect_resources: {{\n    builtin: {{\n      {blobs}\n    }}\n  }}\n#-}}\n"


def without_unread_constants(body: Sequence[str]) -> list[str]:
    """The lines of a function without the constants that no line reads: a weight that was packed is read as packed."""
    uses = Counter(re.findall(r"%\w+", "\n".join(body)))
    constants = ((line, re.match(r"\s*(%\w+) = arith.constant ", line)) for line in body)
    return [line for line, constant in constants if not constant or uses[constant[1]] > 1]


def flatten(roots: Sequence[Value]) -> tuple[list[Value], list[str]]:
    """The named values that expressions rest on, and the lines of a body that yields the roots."""
    leaves: list[Value] = []
    names: dict[Value, str] = {}
    lines: list[str] = []

    def visit(value: Value) -> str:
        if value not in names:
            if value.name:
                names[value] = f"%a{len(leaves)}"
                leaves.append(value)
            else:
                inner = [visit(operand) for operand in value.operands]
                names[value] = f"%e{len(names)}"
                lines.extend(text.format(*inner, r=names[value]) for text in value.body)
        return names[value]

    yielded = ", ".join(visit(root) for root in roots)
    return leaves, [*lines, f"linalg.yield {yielded} : {', '.join(['f32'] * len(roots))}"]
