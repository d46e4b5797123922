"""Products as wide as whole tiles of registers. The schedule divides the columns of a product evenly.

A product of 258 columns would be computed in vectors of two, and one of 129 number by number. Weights are constants, so
they get columns of zeros beforehand, and the columns of the result that these make are cut off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax
from tvm.ir import Op
from tvm.ir.expr import GenericConst
from tvm.relax import op
from tvm.relax.expr_functor import PyExprMutator, mutator

from rnnbench.backends.tvm.relax_pass import each_function

OUTPUTS = 64
"""Outputs that a product keeps in registers: 4 vectors of AVX-512, or 8 of AVX."""
FEW = OUTPUTS // 2
"""Up to so many columns are made whole vectors alone: half of a tile would be zeros, or more."""


def whole_tiles(lanes: int) -> Any:
    """A pass over a Relax module that widens the constant weights of products."""

    return each_function(lambda module: _Widener(module, lanes))


def padded(columns: int, lanes: int) -> int:
    """Columns that so many become. A single column is a sum, which no vector makes faster."""
    unit = lanes if columns <= FEW else OUTPUTS
    return columns if columns == 1 else -(-columns // unit) * unit


@mutator
class _Widener(PyExprMutator):  # type: ignore[misc]
    def __init__(self, module: Any, lanes: int) -> None:
        super().__init__(module)
        self._lanes = lanes

    def visit_call_(self, call: Any) -> Any:
        call = super().visit_call_(call)
        if call.op != Op.get("relax.matmul") or not isinstance(call.args[1], GenericConst):
            return call
        x, weights = call.args[0], call.args[1].value.numpy()
        columns = weights.shape[-1]
        more = padded(columns, self._lanes) - columns
        if weights.ndim < 2 or not more:
            return call
        wide = np.pad(weights, [(0, 0)] * (weights.ndim - 1) + [(0, more)])
        constant = relax.const(wide, str(weights.dtype))  # Without a type, float64 becomes float32.
        product = self.builder_.emit(op.matmul(x, constant, call.attrs.out_dtype))
        return op.strided_slice(product, axes=[len(call.ty.shape) - 1], begin=[0], end=[columns])
