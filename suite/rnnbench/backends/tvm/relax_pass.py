"""Passes of the suite's own over a Relax module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import relax
from tvm.ir.transform import module_pass
from tvm.relax.expr_functor import PyExprMutator


def each_function(mutator_of: Callable[[Any], PyExprMutator]) -> Any:
    """A pass that writes each Relax function anew, by the mutator that `mutator_of` makes for a module."""

    def write(module: Any, _: Any) -> Any:
        mutator = mutator_of(module)
        for name, function in list(module.functions_items()):
            if isinstance(function, relax.Function):
                mutator.builder_.update_func(name, mutator.visit_expr(function))
        return mutator.builder_.get()

    return module_pass(write, opt_level=0)
