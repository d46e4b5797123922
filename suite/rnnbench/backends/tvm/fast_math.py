"""TVM's own polynomials for exp, tanh and the sigmoid.

With libm's functions, a vector costs a scalar call for each of its numbers.

TVM has a pass for this, `relax.transform.FastMathTransform`. It fails on a module with a call of another function
(0.27), as loops are here, and leaves the sigmoid out.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx, topi
from tvm.ir import Op
from tvm.relax.expr_functor import PyExprMutator, mutator

from rnnbench.backends.tvm.relax_pass import each_function

FLOAT = "float32"
"""The only type with polynomials."""


def fast_math() -> Any:
    """A pass over a Relax module. The names of the new kernels begin with `fast_`."""
    return each_function(_Writer)


def _fast_sigmoid(x: Any) -> Any:
    one = tirx.const(1.0, FLOAT)
    return topi.divide(one, topi.add(one, topi.fast_exp(topi.negative(x))))


FAST = {"exp": topi.fast_exp, "tanh": topi.fast_tanh, "sigmoid": _fast_sigmoid}


@mutator
class _Writer(PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        call = super().visit_call_(call)
        name = call.op.name.removeprefix("relax.") if isinstance(call.op, Op) else ""
        if name not in FAST or call.args[0].ty.dtype != FLOAT:
            return call
        return self.builder_.call_te(FAST[name], call.args[0], primfunc_name_hint=f"fast_{name}")
