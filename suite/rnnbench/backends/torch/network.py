"""A network as an nn.Module of its layers' bodies, for the routes that trace programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from rnnbench.backends.base import Request
from rnnbench.backends.torch.device import device_of
from rnnbench.backends.torch.operators import Operators
from rnnbench.backends.torch.stream import DTYPES
from rnnbench.cases import Strategy
from rnnbench.rnn import LayerBody, run_graph, runs_together, state_by_array, state_by_layer, together

State = tuple[Tensor, ...]
MakeLoop = Callable[[LayerBody[Tensor], bool, State], nn.Module]
"""Makes the module that runs the body of a layer with a state over all steps. Its arguments are the body, whether it
runs backwards, and examples of one step's projection and state. The module takes (projected [steps, batch, projected],
*state) and returns (y, *state)."""


class Network(nn.Module):
    """forward(x, *state) returns (y, *state). With state `none`, forward(x) starts from zeros and returns y.

    The graph is followed once, in the constructor. What is traced has numbers of values alone.
    """

    def __init__(self, request: Request, make_loop: MakeLoop) -> None:
        super().__init__()
        network, dtype, device = request.model, DTYPES[request.precision.compute], device_of(request)
        self._steps, self._batch = request.strategy.chunk, request.batch
        self._from_zeros = request.strategy.state == "none"
        shapes = network.state_shapes(request.batch)
        self._shapes = list(shapes.values())
        places = {
            name: [(array, row) for row in range(rows)] for array, (name, (rows, *_)) in enumerate(shapes.items())
        }
        self._given = state_by_layer(network, places)
        """For each layer, where its state is in the arrays: an array and a row of it, for each part."""
        parts = [[(index, part) for part in range(len(given))] for index, given in enumerate(self._given)]
        self._returned = list(state_by_array(network, parts).values())
        """For each array, what its rows are: a layer and a part of its state."""
        self._plan: list[tuple[int | None, tuple[int, ...]]] = []
        """What makes value 1, 2, …: a layer, or None where values are joined; and from which values. Value 0 is x."""
        self._y = run_graph(network, 0, self._planned_layer, self._planned_join)
        self._bodies, loops = [], []
        for index, layer in enumerate(network.graph):
            body = network.body(Operators(dtype, device), request.weights, index)
            self._bodies.append(body)
            zeros = partial(torch.zeros, dtype=dtype, device=device)
            state = [zeros(self._shapes[array][1:]) for array, _ in self._given[index]]
            example = zeros(self._batch, layer.projected)
            loops.append(make_loop(body, layer.backward, (example, *state)) if state else nn.Identity())
        self._loops = nn.ModuleList(loops)

    def _planned_layer(self, index: int, x: int) -> int:
        self._plan.append((index, (x,)))
        return len(self._plan)

    def _planned_join(self, values: Sequence[int]) -> int:
        self._plan.append((None, tuple(values)))
        return len(self._plan)

    def forward(self, x: Tensor, *state: Tensor) -> Tensor | State:
        if self._from_zeros:
            y, _ = self._run(x, tuple(x.new_zeros(shape) for shape in self._shapes))
            return y
        y, final = self._run(x, state)
        return (y, *final)

    def _run(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        values = [x]
        final: list[State] = [() for _ in self._given]
        for index, sources in self._plan:
            if index is None:
                values.append(torch.cat([values[source] for source in sources], dim=2))
            else:
                y, final[index] = self._layer(index, values[sources[0]], state)
                values.append(y)
        arrays = [torch.stack([final[index][part] for index, part in rows]) for rows in self._returned]
        return values[self._y], tuple(arrays)

    def _layer(self, index: int, x: Tensor, state: State) -> tuple[Tensor, State]:
        """y of a layer, and its state afterwards."""
        flat = x.reshape(self._steps * self._batch, -1)
        projected = self._bodies[index].project(flat).view(self._steps, self._batch, -1)
        precomputed = self._given[index]
        if not precomputed:
            return projected, ()
        y, *final = self._loops[index](projected, *[state[array][row] for array, row in precomputed])
        return y, tuple(final)


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
            y, state = self.body.advance(step, state)
            outputs.append(y)
        return (torch.stack(outputs[::-1] if self.backward else outputs), *state)


class Together(nn.Module):
    """All steps of a call, or of a block of them, at once, for a layer whose state is linear in itself."""

    def __init__(self, strategy: Strategy, body: LayerBody[Tensor], backward: bool, example: State) -> None:
        super().__init__()
        self.body = body
        self._time, self._steps, self._batch = strategy.time, strategy.copies or strategy.chunk, len(example[0])

    def forward(self, projected: Tensor, *state: Tensor) -> State:
        y, after = together(self.body, self._time, projected.flatten(0, 1), state, self._steps, self._batch)
        # torch's scan operator refuses results that share memory, as the last row of y and a state do.
        return (y.reshape(self._steps, self._batch, -1), *(value.clone() for value in after))


def block_of(request: Request) -> MakeLoop:
    """Makes the module that runs all steps that it is given: of a call, or of a pass of a loop."""
    strategy = request.strategy
    return partial(Together, strategy) if runs_together(strategy.time) else Unrolled


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
    """A user's file may have states of other types than x."""
    model, device = request.model, device_of(request)
    types = {name: model.state_dtype(name, request.precision.compute) for name in model.state_shapes(request.batch)}
    return {
        name: torch.zeros(shape, dtype=getattr(torch, types[name]), device=device)
        for name, shape in model.state_shapes(request.batch).items()
    }


def zero_input(request: Request) -> Tensor:
    """x of one call, in zeros: [chunk, batch, input]."""
    dtype, device = DTYPES[request.precision.compute], device_of(request)
    return torch.zeros(request.strategy.chunk, request.batch, request.model.input, dtype=dtype, device=device)


def example_inputs(request: Request) -> State:
    """Zeros as arguments of the traced module: x, and the state where it is stitched."""
    x = zero_input(request)
    return (x, *zero_state(request).values()) if request.strategy.state == "stitched" else (x,)
