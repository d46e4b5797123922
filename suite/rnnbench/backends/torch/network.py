"""A model as an nn.Module of the authored cell, for the routes that trace programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from rnnbench.backends.base import Request
from rnnbench.backends.torch.operators import Operators
from rnnbench.backends.torch.stream import DTYPES
from rnnbench.rnn import LayerBody, cell_body

State = tuple[Tensor, ...]
MakeLoop = Callable[[LayerBody[Tensor], bool, State], nn.Module]
"""Makes the module that runs a cell body over all steps. Its arguments are the body, whether it runs backwards, and
examples of one step's projection and state. The module takes (projected [steps, batch, gates·hidden], h, c) and returns
(y, h, c)."""


class Network(nn.Module):
    """forward(x, h, c) returns (y, h, c). With state `none`, forward(x) starts from zeros and returns y."""

    def __init__(self, request: Request, make_loop: MakeLoop) -> None:
        super().__init__()
        model = request.stack
        dtype = DTYPES[request.precision.compute]
        self._layers, self._directions = model.layers, model.directions
        self._steps, self._batch = request.strategy.chunk, request.batch
        self._from_zeros = request.strategy.state == "none"
        self._shapes = list(model.state_shapes(request.batch).values())
        state = [torch.zeros(shape[1:], dtype=dtype) for shape in self._shapes]
        self._bodies, loops = [], []
        for row in range(self._layers * self._directions):
            body = cell_body(Operators(dtype), model, request.weights.row(row))
            x = torch.zeros(self._batch, model.layer_input(row // self._directions), dtype=dtype)
            backward = model.direction == "reverse" or row % self._directions == 1
            self._bodies.append(body)
            loops.append(make_loop(body, backward, (body.project(x), *state)))
        self._loops = nn.ModuleList(loops)

    def forward(self, x: Tensor, *state: Tensor) -> Tensor | State:
        if self._from_zeros:
            y, _ = self._run(x, tuple(x.new_zeros(shape) for shape in self._shapes))
            return y
        y, final = self._run(x, state)
        return (y, *final)

    def _run(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        final: list[State] = []
        for _ in range(self._layers):
            flat = x.reshape(self._steps * self._batch, -1)
            sides = []
            for _ in range(self._directions):
                row = len(final)
                projected = self._bodies[row].project(flat).view(self._steps, self._batch, -1)
                side, *last = self._loops[row](projected, *[tensor[row] for tensor in state])
                sides.append(side)
                final.append(tuple(last))
            x = sides[0] if len(sides) == 1 else torch.cat(sides, dim=2)
        return x, tuple(torch.stack(rows) for rows in zip(*final, strict=True))


class Stateful(nn.Module):
    """A network with its state in buffers: forward(x) writes them in place and returns y."""

    def __init__(self, network: nn.Module, state: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._network = network
        self._names = list(state)
        for name, tensor in state.items():
            self.register_buffer(name, tensor)

    def forward(self, x: Tensor) -> Tensor:
        buffers = [self.get_buffer(name) for name in self._names]
        y: Tensor
        y, *final = self._network(x, *buffers)
        for buffer, new in zip(buffers, final, strict=True):
            buffer.copy_(new)
        return y


class Unrolled(nn.Module):
    """A copy of the body for each step."""

    def __init__(self, body: LayerBody[Tensor], backward: bool, example: State) -> None:
        super().__init__()
        self.body = body
        self.backward = backward

    def forward(self, projected: Tensor, *state: Tensor) -> State:
        outputs = []
        for step in projected.unbind()[:: -1 if self.backward else 1]:
            _, state = self.body.advance(step, state)
            outputs.append(state[0])
        return (torch.stack(outputs[::-1] if self.backward else outputs), *state)


def module_to_trace(request: Request, network: nn.Module) -> nn.Module:
    """The module that a route traces: the network, with its state in buffers where the strategy is stateful."""
    module = Stateful(network, zero_state(request)) if request.strategy.state == "stateful" else network
    return module.eval()


def stream_state(request: Request, module: nn.Module) -> dict[str, Tensor]:
    """The state of a stream over `module`: nothing, zeros to pass in, or the buffers that the module writes."""
    if request.strategy.state == "none":
        return {}
    buffers = dict(module.named_buffers())
    zeros = zero_state(request)
    return zeros if request.strategy.state == "stitched" else {name: buffers[name] for name in zeros}


def zero_state(request: Request) -> dict[str, Tensor]:
    dtype = DTYPES[request.precision.compute]
    return {name: torch.zeros(shape, dtype=dtype) for name, shape in request.model.state_shapes(request.batch).items()}


def example_inputs(request: Request) -> State:
    """Zeros as arguments of the traced module: x, and the state where it is stitched."""
    dtype = DTYPES[request.precision.compute]
    x = torch.zeros(request.strategy.chunk, request.batch, request.model.input, dtype=dtype)
    return (x, *zero_state(request).values()) if request.strategy.state == "stitched" else (x,)
