"""What is in a Relax module: its calls by name, and what became of the time steps."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rnnbench.backends.shared import describe_lowered
from rnnbench.backends.tvm.framework import import_tvm
from rnnbench.rnn import Model


def operations(module: Any) -> dict[str, int]:
    """Calls in all functions, by the name of the operator, kernel or function that is called."""
    total: Counter[str] = Counter()
    for counts in _calls(module).values():
        total += counts
    return dict(sorted(total.items()))


def lowered(module: Any, model: Model) -> str:
    """What became of the time steps, as `Artifact.lowered` has it.

    Loops are functions that call themselves. Copies of the cell are counted by its products, a counter's by its sums.
    """
    operator = "add" if model.cell == "counter" else "matmul"
    products = {"lstm": 1 + bool(model.projection), "gru": 2 - model.reset_after}.get(model.cell, 1)
    loops: list[int] = []
    straight = 0
    for name, counts in _calls(module).items():
        number = sum(count for called, count in counts.items() if operator in called)
        if counts[name]:
            loops.append(number // products)
        elif name == "main":
            straight = (number if model.cell == "counter" else number - model.layers * model.directions) // products
    return describe_lowered(loops, straight)


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
