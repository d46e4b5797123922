"""From counts of operations to `Artifact.lowered`: how the time steps of a program were lowered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from rnnbench.backends.base import Request
from rnnbench.backends.shared import describe_lowered
from rnnbench.backends.torch.library import CUDNN_KERNEL, ONEDNN_KERNEL
from rnnbench.backends.torch.operators import Operators
from rnnbench.backends.torch.stream import Stream
from rnnbench.rnn import Network

MARKS = ("tanh", "relu", "sigmoid", "add")
"""Operators by which copies of a body are counted, where its step has them: the first ones are in a step alone."""
WHOLE_KERNELS = {ONEDNN_KERNEL, CUDNN_KERNEL}
"""oneDNN has one kernel for all steps of a layer, cuDNN one for all layers and steps."""


class Kernel(NamedTuple):
    """A kernel that torch dispatched to, and the shapes of its tensors."""

    name: str
    shapes: tuple[tuple[int, ...], ...]


class KernelRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the kernels that torch dispatches to inside it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kernels: list[Kernel] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        shapes = tuple(tuple(argument.shape) for argument in args if isinstance(argument, Tensor))
        self.kernels.append(Kernel(func._schema.name.removeprefix("aten::"), shapes))
        return func(*args, **(kwargs or {}))


def dispatched(call: Callable[[], object]) -> list[Kernel]:
    """The kernels of a call. In inference mode torch would dispatch whole operators, so it is off."""
    recorder = KernelRecorder()
    with recorder, torch.no_grad():
        call()
    return recorder.kernels


def operator_kernels(stream: Stream, x: Tensor, *, ragged: bool) -> dict[str, int]:
    """How often torch dispatches to each kernel in a call of an RNN operator on x [chunk, batch, input].

    An operator without a kernel for all steps is a loop over the kernels of one step. They are counted once, in a call
    of one step: a loop's passes are no operations of their own. `ragged` rows have different lengths.
    """
    lengths = _different_lengths(x) if ragged else None
    kernels = _counts(partial(stream.step, x, lengths))
    if kernels.keys() & WHOLE_KERNELS:
        return kernels
    if lengths is None:
        return _counts(partial(stream.step, x[:1]))
    with torch.backends.mkldnn.flags(enabled=False):  # It would take rows of one length.
        return _counts(partial(stream.step, x, torch.ones_like(lengths)))


def _counts(call: Callable[[], object]) -> dict[str, int]:
    return dict(sorted(Counter(kernel.name for kernel in dispatched(call)).items()))


def _different_lengths(x: Tensor) -> Tensor:
    """torch uses oneDNN's LSTM only where all rows of a packed chunk are equally long."""
    chunk, batch, _ = x.shape
    return (chunk - torch.arange(batch)).clamp(min=1)


@dataclass(frozen=True)
class LayerKernels:
    """What torch would run for a layer: its projection, and one step. A layer without state has no step."""

    projection: Sequence[Kernel]
    step: Sequence[Kernel] | None


def kernels_by_layer(network: Network, chunk: int, batch: int) -> list[LayerKernels]:
    """The kernels of each layer of the graph. They run over shapes alone."""
    zeros = {name: np.broadcast_to(np.zeros(()), shape) for name, shape, _ in network.weight_specs()}
    weights = network.as_weights(zeros)
    sizes = {name: shape[2] for name, shape in network.state_shapes(batch).items()}
    outputs = [layer.width for layer in network.graph]
    layers = []
    meta = torch.device("meta")
    with torch.inference_mode(False), meta:
        for index, layer in enumerate(network.graph):
            body = network.body(Operators(torch.float32, meta), weights, index)
            width = sum(network.input if source < 0 else outputs[source] for source in layer.sources)
            x, projected = torch.zeros(chunk * batch, width), torch.zeros(batch, layer.projected)
            state = tuple(torch.zeros(batch, sizes[name]) for name, _ in layer.states)
            projection = dispatched(partial(body.project, x))
            step = dispatched(partial(body.advance, projected, state)) if state else None
            layers.append(LayerKernels(projection, step))
    return layers


def copies_among(layers: Sequence[LayerKernels], count: Callable[[Sequence[Kernel]], int], found: int) -> int:
    """The copies of layers' bodies outside loops, where a program has `found` of what `count` counts in no loop."""
    steps = [count(layer.step) for layer in layers if layer.step is not None]
    projections = sum(count(layer.projection) for layer in layers)
    return (found - projections) * len(steps) // sum(steps) if any(steps) else 0


def body_copies(network: Network, counts: Mapping[str, int]) -> int:
    """The copies of layers' bodies in a program without loops, by an operator that most of its layers' steps have."""
    layers = kernels_by_layer(network, 1, 1)
    steps = [{kernel.name for kernel in layer.step} for layer in layers if layer.step is not None]
    mark = max(MARKS, key=lambda name: sum(name in names for names in steps))
    return copies_among(layers, lambda kernels: sum(kernel.name == mark for kernel in kernels), counts.get(mark, 0))


def lowered(loops: Sequence[int], copies: int) -> str:
    """`loops` has, for each loop, the copies of a body in one pass. `copies` is the number of those outside loops."""
    return describe_lowered(loops, copies) or "unrolled 0"


def lowered_together(request: Request, loops: int) -> str:
    """The lowered form of a program whose copies are of many steps, with `loops` loops.

    A layer with a state has one copy, in a loop or outside. TorchScript's executor makes two loops of one.
    """
    layers = sum(bool(layer.states) for layer in request.model.graph)
    looped = min(loops, layers)
    return describe_lowered([1] * looped, layers - looped, time=request.strategy.time)
