"""A user's `.pt2` file as an nn.Module, of x and states as the suite has them: for all that trace a module.

States are arguments and results, those in buffers of the file included. So no importer can lose one.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rnnbench.backends.base import BuildError, Request
from rnnbench.backends.shared import from_file, to_file
from rnnbench.backends.torch.network import zero_input, zero_state
from rnnbench.model_files import FileNetwork, Pt2Program, unchanged_path
from rnnbench.outside_text import describe_error


class FileModule(nn.Module):
    """forward(x, *state) returns (y, *state). Without a state, forward(x) returns y."""

    def __init__(self, request: Request, network: FileNetwork) -> None:
        """Raises ModelFileError."""
        super().__init__()
        self._program = Pt2Program(unchanged_path(network))
        self._network, self._sizes = network, (request.strategy.chunk, request.batch)
        self._names = list(network.state_shapes(request.batch)) if request.strategy.state != "none" else []
        self._weights = list(self._program.weights)
        for index, name in enumerate(self._weights):
            self.register_buffer(f"weight{index}", self._program.weights[name])
        for index, value in enumerate(network.constant_arrays(request.batch).values()):
            self.register_buffer(f"constant{index}", torch.tensor(value))

    def forward(self, x: Tensor, *state: Tensor) -> Any:
        arrays = to_file(TensorOps(), self._network, x, dict(zip(self._names, state, strict=True)), *self._sizes)
        arrays |= {name: self.get_buffer(f"constant{i}") for i, (name, *_) in enumerate(self._network.constants)}
        weights = {name: self.get_buffer(f"weight{index}") for index, name in enumerate(self._weights)}
        got = self._program(arrays, weights)
        y, after = from_file(TensorOps(), self._network, got, *self._sizes)
        return (y, *(after[name] for name in self._names)) if self._names else y


def file_module(request: Request, network: FileNetwork) -> nn.Module:
    """The module with its graph traced: no code of this suite is in it.

    Raises BuildError and ModelFileError.
    """
    module = FileModule(request, network).eval()
    states = zero_state(request).values() if request.strategy.state != "none" else ()
    example = (zero_input(request), *states)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced: Any = torch.export.export(module, example, strict=False).module(check_guards=False)
    except Exception as error:  # torch.export raises what it likes for a program that it cannot trace
        raise BuildError(f"torch.export cannot trace the file again: {describe_error(error)[:1000]}") from error
    # The module of an exported program refuses `eval`, which has no effect on a traced graph.
    program: nn.Module = torch.fx.GraphModule(traced, traced.graph)
    return program


class TensorOps:
    """`ArrayOps` over tensors."""

    def reshaped(self, value: Tensor, shape: Sequence[int]) -> Tensor:
        return value.reshape(tuple(shape))

    def transposed(self, value: Tensor, order: Sequence[int]) -> Tensor:
        return value.permute(tuple(order))

    def columns(self, value: Tensor, first: int, end: int) -> Tensor:
        return value[:, :, first:end]

    def cast(self, value: Tensor, dtype: str) -> Tensor:
        return value.to(getattr(torch, dtype))

    def joined(self, values: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(values), 2)
