"""Constant weights of products as the schedule reads them: whole tiles of columns, each tile in one piece of memory.

A product keeps some columns of its result in registers, and reads these columns of every row of its weights. Of 2,048
columns, it reads a few cache lines of a row, and those of the next row are 8 KiB further: in another page, and in few
sets of a cache. In tiles they follow each other, so memory is read in order.

The schedule divides columns evenly. 258 columns would get vectors of two numbers, and 129 columns would get none. So
weights get columns of zeros beforehand, and the columns of the result that these make are cut off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax, te
from tvm.ir import Op
from tvm.ir.expr import GenericConst
from tvm.relax import op
from tvm.relax.expr_functor import PyExprMutator, mutator

from rnnbench.backends.tvm.relax_pass import each_function

OUTPUTS = 64
"""Columns of a tile, the most that a product of one row keeps in registers: 4 vectors of AVX-512, or 8 of AVX."""
FEW = OUTPUTS // 2
"""Up to so many columns are made whole vectors alone: half of a tile would be zeros, or more."""
FUSED = {"op_pattern": 4}
"""What follows is computed on the columns in registers: `kOutEWiseFusable`, whose name is in TVM's C++ alone."""


def whole_tiles(lanes: int) -> Any:
    """A pass over a Relax module that packs the constant weights of products in tiles."""

    return each_function(lambda module: _Packer(module, lanes))


def padded(columns: int, lanes: int) -> int:
    """Columns that so many become. A single column is a sum, which no vector makes faster."""
    unit = lanes if columns <= FEW else OUTPUTS
    return columns if columns == 1 else -(-columns // unit) * unit


@mutator
class _Packer(PyExprMutator):  # type: ignore[misc]
    def __init__(self, module: Any, lanes: int) -> None:
        super().__init__(module)
        self._lanes = lanes
        self._packed: dict[Any, Any] = {}
        """By their constants, weights in tiles: copies of a layer share them."""

    def visit_call_(self, call: Any) -> Any:
        call = super().visit_call_(call)
        if call.op != Op.get("relax.matmul") or not isinstance(call.args[1], GenericConst):
            return call
        x, weights = call.args
        *outer, columns = weights.value.shape
        wide = padded(columns, self._lanes)
        if len(outer) == 1 and columns > FEW and call.attrs.out_dtype is None:
            product = self.builder_.call_te(
                _product_of_tiles, x, self._in_tiles(weights), primfunc_name_hint="matmul", primfunc_attrs=FUSED
            )
        elif outer and wide > columns:
            product = op.matmul(x, self._widened(weights), call.attrs.out_dtype)
        else:
            return call
        if wide == columns:
            return product
        return op.strided_slice(self.builder_.emit(product), axes=[len(call.ty.shape) - 1], begin=[0], end=[columns])

    def _in_tiles(self, weights: Any) -> Any:
        """Weights [depth, columns] as [tiles, depth, OUTPUTS]."""
        if weights not in self._packed:
            wide = self._widened(weights).value.numpy()
            tiles = wide.reshape(len(wide), -1, OUTPUTS).transpose(1, 0, 2)
            self._packed[weights] = relax.const(np.ascontiguousarray(tiles), str(wide.dtype))
        return self._packed[weights]

    def _widened(self, weights: Any) -> Any:
        array = weights.value.numpy()
        more = padded(array.shape[-1], self._lanes) - array.shape[-1]
        wide = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, more)])
        return relax.const(wide, str(array.dtype))  # Without a type, float64 becomes float32.


def _product_of_tiles(x: Any, weights: Any) -> Any:
    """x [..., depth] by weights [tiles, depth, OUTPUTS], as [..., columns]."""
    tiles, depth, outputs = weights.shape
    k = te.reduce_axis((0, depth), "k")

    def at(*indices: Any) -> Any:
        *row, column = indices
        return te.sum(x(*row, k) * weights(column // outputs, k, column % outputs), axis=k)

    return te.compute((*x.shape[:-1], tiles * outputs), at, name="matmul")
