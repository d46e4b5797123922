"""torch.nn's RNNs as pure functions for torch.export, for adapters of other compilers.

Only `module` imports torch. torch.export has no RNN operator: it writes an nn.LSTM out step by step, so every size is
fixed in its result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rnnbench.backends.base import Request
from rnnbench.backends.shared import rnn_signature
from rnnbench.backends.torch import support
from rnnbench.model_files import FileNetwork

Shape = tuple[int, ...]


def unsupported(request: Request) -> str:
    """Why torch has no module for a request; empty where it has one."""
    if request.file is not None:
        return ""
    if request.strategy.time != "fused":
        return "The route imports torch.nn's RNNs, which torch.export writes out step by step: it has time fused only."
    if request.stack.direction == "reverse":
        return "torch.nn has no RNN that only runs backwards."
    return support.unsupported(replace(request, route="eager"))


def argument_shapes(request: Request) -> tuple[Shape, ...]:
    """The shapes of the function's arguments: x and, unless the state is `none`, h (and c)."""
    state = request.model.state_shapes(request.batch).values() if request.strategy.state != "none" else ()
    return (request.strategy.chunk, request.batch, request.model.input), *state


def arguments(request: Request) -> tuple[Any, ...]:
    """Zeros as the function's arguments, in the types in which the suite has them: bfloat16 is in float32."""
    import torch

    specs = rnn_signature(request)
    types = [spec.dtype for spec in (*specs.of("input"), *specs.of("state"))]
    shapes = zip(argument_shapes(request), types, strict=True)
    return tuple(torch.zeros(shape, dtype=getattr(torch, dtype)) for shape, dtype in shapes)


def module(request: Request) -> Any:
    """An nn.Module: step(x, h, c) → (y, h, c), or step(x) → (y,), which starts from zeros.

    It is torch.nn's RNN, or a user's `.pt2` file. Raises ModelFileError for a file that cannot be read.
    """
    import torch

    if request.file is not None:
        return _of_file(request, request.file)
    from rnnbench.backends.torch.library import library_module

    weights = {name: torch.tensor(array) for name, array in request.weights.named(request.stack)}

    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = library_module(request.stack, torch.float32, weights)

        def forward(self, x: Any, *state: Any) -> Any:
            y, after = self.rnn(x, state if len(state) == 2 else state[0] if state else None)
            if not state:
                return (y,)
            return (y, *after) if len(state) == 2 else (y, after)

    return Step().eval()


def _cast(array: Any, dtype: Any) -> Any:
    """A cast to the type that an array has would be a node for an importer to read."""
    return array if array.dtype == dtype else array.to(dtype)


def _of_file(request: Request, network: FileNetwork) -> Any:
    import torch

    from rnnbench.backends.torch.file_module import file_module

    traced = file_module(request, network)
    exchanged = [array.dtype for array in arguments(request)]
    states = network.state_shapes(request.batch)
    held = [getattr(torch, dtype) for dtype in (network.dtype, *(network.state_dtype(name, "") for name in states))]

    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.file = traced

        def forward(self, *given: Any) -> Any:
            results = self.file(*map(_cast, given, held))
            return tuple(map(_cast, results if len(given) > 1 else (results,), exchanged))

    return Step()
