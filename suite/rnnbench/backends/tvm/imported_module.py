"""A request as an IRModule that an importer made: `main` takes x and the state, and returns y and the state."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.torch import export as torch_export
from rnnbench.backends.tvm.framework import import_tvm
from rnnbench.backends.tvm.relax_operations import FunctionCounts
from rnnbench.outside_text import describe_error

Shape = tuple[int, ...]


def imported_module(request: Request) -> tuple[Any, dict[str, FunctionCounts]]:
    """The module, with the weights in it as folded constants, and what `main` has. Raises BuildError."""
    tvm = import_tvm()
    module, written = _from_torch(request) if request.route == "torch" else from_onnx(request)
    # A torch weight is transposed before each product, that is in each step, until constants are folded.
    others = tvm.relax.transform.LegalizeOps(skip_ops=["relax.matmul"])  # The pipeline widens products of constants.
    return tvm.relax.transform.FoldConstant()(others(module)), {"main": written}


def argument_shapes(request: Request) -> tuple[Shape, ...]:
    """The shapes of x and the state. Authored ONNX graphs have steps·batch rows in x, and rows·batch in the state."""
    if request.route == "torch" or request.file is not None:
        return torch_export.argument_shapes(request)
    x, *state = torch_export.argument_shapes(request)
    return (x[0] * x[1], x[2]), *((rows * batch, size) for rows, batch, size in state)


def _from_torch(request: Request) -> tuple[Any, FunctionCounts]:
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    example = torch_export.arguments(request)
    with torch.no_grad(), warnings.catch_warnings():
        # torch.export warns of nn's own attributes.
        warnings.simplefilter("ignore")
        try:
            module = from_exported_program(torch.export.export(torch_export.module(request), example))
        except Exception as error:
            if request.file is None:
                raise
            # A user's file may have whatever its importer does not expect.
            raise BuildError(f"TVM's torch importer: {describe_error(error)[:1000]}") from error
    if request.file is not None:
        return module, FunctionCounts(0, {}, {})
    # torch.export writes out each layer and direction, and a copy of the cell for each step.
    model = request.stack
    copies = request.strategy.chunk * len(model.graph)
    return module, FunctionCounts(copies, {model.activation: copies * (2 if model.cell == "lstm" else 1)}, {})


def from_onnx(request: Request) -> tuple[Any, FunctionCounts]:
    """The suite's ONNX graph, imported. Raises BuildError with the importer's message where it lacks an operator."""
    from tvm.relax.frontend.onnx import from_onnx as tvm_from_onnx

    from rnnbench.backends.shared.onnx_graphs import build_graph

    graph = build_graph(request)
    try:
        return tvm_from_onnx(graph, keep_params_in_input=False), _written(graph)
    except import_tvm().error.OpNotImplemented as error:
        raise BuildError(f"TVM's ONNX importer: {error}") from error
    except Exception as error:
        if request.file is None:
            raise
        # A user's file may have whatever its importer does not expect.
        raise BuildError(f"TVM's ONNX importer: {describe_error(error)}") from error


def _written(graph: Any) -> FunctionCounts:
    """What an unrolled ONNX graph has. The nodes of a copy of a body are told by their names."""
    from rnnbench.backends.shared.onnx_graphs import copies_named

    inside, outside, copies = Counter[str](), Counter[str](), set[str]()
    for node in graph.graph.node:
        named = copies_named([node.name])
        (inside if named else outside)[node.op_type.lower()] += 1
        copies |= named
    return FunctionCounts(len(copies), inside, outside)
