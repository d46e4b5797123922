"""A user's module of StableHLO as a function of JAX: a primitive whose lowering is the file's own functions.

JAX has no call of a StableHLO module in its public API. `jax.extend.core.Primitive` and `jax.interpreters.mlir` are
what it offers to packages that extend it, without a promise of stability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.extend.mlir.dialects import func
from jax.interpreters import mlir

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.jax.network import is_flat
from rnnbench.backends.shared import from_file, to_file
from rnnbench.model_files import FileNetwork, StablehloFile, read_stablehlo, unchanged_path

_MAIN = "main"


def file_step(request: Request, network: FileNetwork) -> Callable[..., tuple[Any, ...]]:
    """`step(x)` → (y,), or `step(x, state)` → (y, state). Raises ModelFileError.

    All states are in one flat array, or in a list where they have several types.
    """
    file = read_stablehlo(unchanged_path(network))
    shapes, sizes = network.state_shapes(request.batch), (request.strategy.chunk, request.batch)
    flat = is_flat(request)
    constants = network.constant_arrays(request.batch)
    ends = np.cumsum([prod(shape) for shape in shapes.values()])

    def step(x: jax.Array, *state: Any) -> tuple[Any, ...]:
        parts = state[0] if state and not flat else jnp.split(state[0], ends[:-1]) if state else []
        states = {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
        arguments = to_file(_Ops(), network, x, states, *sizes) | constants
        y, after = from_file(_Ops(), network, _called(file, arguments), *sizes)
        if not state:
            return (y,)
        return y, jnp.concatenate([after[name].ravel() for name in shapes]) if flat else [after[n] for n in shapes]

    return step


def _called(file: StablehloFile, given: dict[str, Any]) -> dict[str, jax.Array]:
    """Every output and next state, of every input and state, all by name."""
    arrays = (*file.inputs, *(before for before, _ in file.states))
    output_arrays = (*file.outputs, *(after for _, after in file.states))
    text = f"module {{\n{file.text}\n}}".replace(f"func.func private @{file.entry}(", f"func.func public @{_MAIN}(", 1)
    results = tuple((array.shape, array.dtype) for array in output_arrays)
    outputs = _CALL.bind(*(jnp.asarray(given[array.name]) for array in arrays), text=text, results=results)
    return {array.name: value for array, value in zip(output_arrays, outputs, strict=True)}


def _lowered(context: Any, *arguments: Any, text: str, results: Any) -> list[Any]:
    try:
        module = mlir.ir.Module.parse(text)
    except mlir.ir.MLIRError as error:
        raise BuildError(f"JAX cannot read the file's module: {str(error)[:500]}") from error
    types = mlir.ir.SymbolTable(module.operation)[_MAIN].attributes["function_type"].value.results
    name = mlir.merge_mlir_modules(context.module_context.module, "file", module)
    return list(func.CallOp(types, mlir.ir.FlatSymbolRefAttr.get(name), arguments).results)


_CALL = Primitive("stablehlo_file")
_CALL.multiple_results = True
_CALL.def_abstract_eval(
    lambda *arguments, text, results: [jax.core.ShapedArray(shape, np.dtype(dtype)) for shape, dtype in results]
)
mlir.register_lowering(_CALL, _lowered)


class _Ops:
    """`ArrayOps` over JAX's arrays."""

    def reshaped(self, value: jax.Array, shape: Sequence[int]) -> jax.Array:
        return value.reshape(shape)

    def transposed(self, value: jax.Array, order: Sequence[int]) -> jax.Array:
        return value.transpose(order)

    def columns(self, value: jax.Array, first: int, end: int) -> jax.Array:
        return value[:, :, first:end]

    def cast(self, value: jax.Array, dtype: str) -> jax.Array:
        return value.astype(dtype)

    def joined(self, values: Sequence[jax.Array]) -> jax.Array:
        return jnp.concatenate(values, axis=2)
