"""A request as StableHLO whose state is in globals (the dialect `ml_program`), for adapters of other compilers.

The module is saved, and TensorFlow's own passes lower the SavedModel. TensorFlow is imported by `ml_program` and not
before.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, replace
from typing import Any

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.tensorflow import support
from rnnbench.backends.tensorflow.lowered import TAG
from rnnbench.backends.tensorflow.support import IN_VARIABLES as IN_VARIABLES
from rnnbench.backends.tensorflow.support import environment as environment

AUTHORS = support.AUTHORS["graph"] - {"while"}
COPY = TAG
"""A location in the text that names a copy of a layer's body has this word with its number: `cell_copy_3/mul`."""
FUNCTIONAL = (
    "func.func(tf-executor-graph-pruning,tf-executor-island-coarsening,tf-executor-to-functional-conversion),"
    "tf-shape-inference"
)
"""From a graph of nodes to a function of operations, with the shapes that the next pass needs."""
TENSOR_LISTS = "tf-tensor-list-ops-decomposition"
"""From a loop's TensorArrays to tensors. The pass looks at a function named `main` and at those that it calls."""
LOWER = "tf-lower-to-mlprogram-and-hlo"

_TENSORFLOW_OPERATION = re.compile(r'"(tf\.\w+)"\(')
"""An operation of TensorFlow that the passes have not lowered: iree-compile ends with SIGSEGV at it."""
_LOOP_OPERATIONS = ("While", "StatelessWhile", "Enter", "Exit", "Merge", "NextIteration", "Switch", "LoopCond")
"""A While, and the operations that it becomes in an executed graph."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class MlProgram:
    """A module with `step`: x to y; or x and the state to y and the state after it.

    A stateful one has `step` from x to y, `reset`, `get_state` and `set_state`, and the state in globals.
    """

    text: str
    x: Shape
    state: tuple[Shape, ...]
    """The states of each layer and direction in order (h, or h and c); empty if a call starts from zeros."""


def unsupported(request: Request) -> str:
    """Why there is no module of a request; empty where there is one."""
    return support.unsupported(_of_keras(request) if _is_keras(request) else replace(request, route="graph"))


def ml_program(request: Request) -> MlProgram:
    """A user's SavedModel, the layers of Keras for `fused`, unrolled, else the bodies of the network's layers.

    Raises BuildError.
    """
    from rnnbench.backends.tensorflow.traced_function import x_spec

    text = lowering(request)["stablehlo"]
    state = _state_shapes(request) if request.strategy.state != "none" else ()
    return MlProgram(text, tuple(x_spec(request).shape), state)


def _state_shapes(request: Request) -> tuple[Shape, ...]:
    from rnnbench.backends.tensorflow.traced_function import state_specs

    if request.file is None:
        return tuple(tuple(spec.shape) for spec in state_specs(request))
    return tuple(shape[1:] for shape in request.file.state_shapes(request.batch).values() for _ in range(shape[0]))


def lowering(request: Request) -> dict[str, str]:
    """The module at each stage of TensorFlow's passes, by its dialect. Raises BuildError."""
    import tensorflow as tf

    module = _module(request)
    names = [name for name in ("step", "reset", "get_state", "set_state") if hasattr(module, name)]
    with tempfile.TemporaryDirectory(prefix="rnnbench-saved-model-") as folder:
        tf.saved_model.save(module, folder)
        return _lowered(tf.mlir.experimental, folder, names)


def _is_keras(request: Request) -> bool:
    return request.strategy.time == "fused"


def _of_keras(request: Request) -> Request:
    """Keras' layers as copies of their cells: compilers crash on its loop (docs/upstream/iree-while-conditions.md)."""
    return replace(request, route="keras", strategy=replace(request.strategy, time="unrolled"))


def _module(request: Request) -> Any:
    from rnnbench.backends.tensorflow.traced_function import add_state_functions, authored

    if request.file is not None:
        from rnnbench.backends.tensorflow.file_module import file_module

        module = file_module(request, request.file, jit=False)
    elif _is_keras(request):
        from rnnbench.backends.tensorflow.keras_layers import library

        module = library(_of_keras(request), jit=False)
    else:
        module = authored(request, request.strategy.copies, jit=False)
    if module.state:
        add_state_functions(module)
        _add_reset(module)
    return module


def _add_reset(module: Any) -> None:
    import tensorflow as tf

    def reset() -> None:
        for variable in module.state:
            variable.assign(tf.zeros(variable.shape, variable.dtype))

    module.reset = tf.function(reset, input_signature=[], autograph=False)
    module.reset.get_concrete_function()


def _lowered(mlir: Any, folder: str, names: list[str]) -> dict[str, str]:
    """The functions of a SavedModel on their way to StableHLO, with the names of TensorFlow's nodes as locations."""
    try:
        graph = mlir.convert_saved_model(folder, ",".join(names), True)
        text = mlir.run_pass_pipeline(graph, FUNCTIONAL, True)
        (step,) = re.findall(r'^ *func\.func @(\w+)\(.*exported_names = \["step"\]', text, re.MULTILINE)
        text = mlir.run_pass_pipeline(text.replace(f"@{step}(", "@main("), TENSOR_LISTS, True)
        functional = text.replace("@main(", f"@{step}(")
        lowered = mlir.run_pass_pipeline(functional, LOWER, True)
    except Exception as error:  # the passes' errors have no narrower base class
        raise BuildError(f"TensorFlow's passes failed: {str(error)[:2000]}") from error
    if left := sorted({*_TENSORFLOW_OPERATION.findall(lowered)}):
        raise BuildError(
            f"TensorFlow's passes leave {', '.join(left)} as it is, which no compiler takes. A variable of which a "
            "part is assigned can be assigned as a whole: v.assign(tf.tensor_scatter_nd_update(v, …))"
        )
    return {"tf-executor": graph, "tf": functional, "stablehlo": lowered}


def source_of(name: str, operation: str = "") -> str:
    """Where a node or an operation came from, by the scopes in its name: a cell, the loop, or what is around."""
    in_loop = re.search(r"(?:^|/)while(?:_\d+)?(?:/|$)", name) is not None
    if TAG in name:
        return "cells in a loop" if in_loop else "cells outside of loops"
    if in_loop or operation in _LOOP_OPERATIONS or operation.startswith("TensorList") or "TensorArray" in name:
        return "the loop itself"
    return "around the cells"
