"""A request as an IRModule that an importer made: `main` takes x and the state, and returns y and the state."""

from __future__ import annotations

import warnings
from typing import Any

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.torch import export as torch_export
from rnnbench.backends.tvm.framework import import_tvm

Shape = tuple[int, ...]


def imported_module(request: Request) -> Any:
    """The module, with the weights in it as folded constants. Raises BuildError."""
    tvm = import_tvm()
    module = _from_torch(request) if request.route == "torch" else from_onnx(request)
    # A torch weight is transposed before each product, that is in each step, until constants are folded.
    return tvm.relax.transform.FoldConstant()(tvm.relax.transform.LegalizeOps()(module))


def argument_shapes(request: Request) -> tuple[Shape, ...]:
    """The shapes of x and the state. Authored ONNX graphs have steps·batch rows in x, and layers·batch in the state."""
    if request.route == "torch":
        return torch_export.argument_shapes(request)
    x, *state = torch_export.argument_shapes(request)
    return (x[0] * x[1], x[2]), *((rows * batch, size) for rows, batch, size in state)


def _from_torch(request: Request) -> Any:
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    example = tuple(torch.zeros(shape) for shape in torch_export.argument_shapes(request))
    with torch.no_grad(), warnings.catch_warnings():
        # torch.export warns of nn's own attributes.
        warnings.simplefilter("ignore")
        return from_exported_program(torch.export.export(torch_export.module(request), example))


def from_onnx(request: Request) -> Any:
    """The suite's ONNX graph, imported. Raises BuildError with the importer's message where it lacks an operator."""
    from tvm.relax.frontend.onnx import from_onnx as tvm_from_onnx

    from rnnbench.backends.shared.onnx_graphs import build_graph

    try:
        return tvm_from_onnx(build_graph(request), keep_params_in_input=False)
    except import_tvm().error.OpNotImplemented as error:
        raise BuildError(f"TVM's ONNX importer: {error}") from error
