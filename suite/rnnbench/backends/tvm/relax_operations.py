"""What is in a Relax module: its calls by name, and what became of the time steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rnnbench.backends.shared import describe_lowered
from rnnbench.backends.tvm.framework import import_tvm

MARKS = (("tanh", "sigmoid", "relu"), ("matmul",), ("add",))
"""Operators that tell a copy of a body. An activation is better than a product, which is folded where a state is zero;
a body that has neither is told by its sums. Names of kernels contain those of their operators."""


@dataclass(frozen=True)
class FunctionCounts:
    """A function as it was written: the copies of layers' bodies in it, and operators by name, in and outside of them.

    Names are those of MARKS.
    """

    copies: int
    inside: Mapping[str, int]
    outside: Mapping[str, int]

    def left(self, called: Mapping[str, int]) -> int:
        """How many copies there still are, by the operators and kernels that the compiled function calls."""
        told_by = next((marks for marks in MARKS if any(self.inside.get(mark) for mark in marks)), ())
        marks = [mark for mark in told_by if self.inside.get(mark)]
        if not marks:
            return 0
        marked = sum(number * name.count(mark) for name, number in called.items() for mark in marks)
        marked -= sum(self.outside.get(mark, 0) for mark in marks)
        return round(marked * self.copies / sum(self.inside[mark] for mark in marks))


def operations(module: Any) -> dict[str, int]:
    """Calls in all functions, by the name of the operator, kernel or function that is called."""
    total: Counter[str] = Counter()
    for counts in _calls(module).values():
        total += counts
    return dict(sorted(total.items()))


def lowered(module: Any, written: Mapping[str, FunctionCounts], time: str) -> str:
    """What became of the time steps of a time, as `Artifact.lowered` has it.

    `written` has `main` and each loop, by its name. Loops are functions that call themselves.
    """
    loops: list[int] = []
    straight = 0
    for name, called in _calls(module).items():
        if called[name]:
            loops.append(written[name].left(called))
        elif name == "main":
            straight = written[name].left(called)
    return describe_lowered(loops, straight, time=time)


def _calls(module: Any) -> dict[str, Counter[str]]:
    """By Relax function, the number of its calls of each operator, kernel and function."""
    tvm = import_tvm()
    by_function = {}
    for name, function in module.functions_items():
        if isinstance(function, tvm.relax.Function):
            counts: Counter[str] = Counter()

            def visit(node: Any, counts: Counter[str] = counts) -> None:
                if isinstance(node, tvm.relax.Call):
                    counts[_name(node.op)] += 1

            tvm.relax.analysis.post_order_visit(function, visit)
            by_function[name.name_hint] = counts
    return by_function


def _name(called: Any) -> str:
    """The name of an operator, a function of the module, or a function of the runtime."""
    return next(str(getattr(called, name)) for name in ("name_hint", "global_symbol", "name") if hasattr(called, name))
