"""Route script: TorchScript, deprecated by PyTorch. A trace of all steps, or a scripted loop over traced steps."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rnnbench.backends.base import Artifact, OperationStage, Request
from rnnbench.backends.torch.counting import body_copies, lowered, lowered_together
from rnnbench.backends.torch.device import device_of
from rnnbench.backends.torch.network import (
    MakeLoop,
    Network,
    State,
    Unrolled,
    block_of,
    example_inputs,
    module_to_trace,
    stream_state,
)
from rnnbench.backends.torch.store import CachedBuild, Described, load_or_build, source_digest
from rnnbench.backends.torch.stream import Opener, inference
from rnnbench.backends.torch.traced_stream import TracedStream
from rnnbench.rnn import LayerBody, runs_together

jit: Any = torch.jit  # untyped

SUBGRAPH = "Subgraph"
"""The attribute of a node that stands for several operators, as the executor's fuser makes them for a GPU."""
WARM_CALLS = 3
"""Calls before a session is used: the executor profiles the first one and optimises in the next ones."""


def build(request: Request, cache: Path) -> tuple[CachedBuild, Opener]:
    """The frozen module in the cache. Every stream loads it again, because its state is in the module's buffers."""
    source = source_digest(request)
    with inference(True), _without_deprecation_warnings():
        module = load_or_build(cache, source, partial(_trace, request, source))
    return module, partial(_open, request, module.path)


@contextmanager
def _without_deprecation_warnings() -> Iterator[None]:
    """TorchScript warns in every call that it is deprecated. `docs/backends/torch.md` says so once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit\.", DeprecationWarning)
        yield


def _open(request: Request, path: Path) -> TracedStream:
    with _without_deprecation_warnings():
        module = jit.load(path, map_location=device_of(request))
    for _ in range(WARM_CALLS):
        module.forward(*example_inputs(request))
    state = stream_state(request, module)
    for tensor in state.values():
        tensor.zero_()
    return TracedStream(module, module.forward, state, request.strategy.state == "stitched")


def _trace(request: Request, source: str, path: Path) -> Described:
    copies = request.strategy.copies
    block = block_of(request)
    make_loop = partial(scripted_loop, copies=copies, make_block=block) if copies else block
    module = module_to_trace(request, Network(request, make_loop))
    traced = jit.trace(module, example_inputs(request), check_trace=False)
    frozen = jit.freeze(traced)
    jit.save(frozen, path)
    for _ in range(WARM_CALLS):
        frozen.forward(*example_inputs(request))
    executed = jit.last_executed_optimized_graph()
    artifact = Artifact(
        source_digest=source,
        operations={OperationStage.INPUT: counted(traced.inlined_graph), OperationStage.COMPILED: counted(executed)},
        lowered=_lowered(request, executed),
        origin="authored",
        math="exact",
        notes=("the input projection of a chunk is one product before its loop",),
    )
    return artifact, str(executed)


FORWARD = """
def forward(self, projected: Tensor, {parameters}) -> Tuple[{results}]:
    blocks = projected.view(-1, self.copies, projected.size(1), projected.size(2))
    passes = blocks.size(0)
    outputs: List[Tensor] = []
    for index in range(passes):
        y, {states} = self.block(blocks[passes - 1 - index if self.backward else index], {states})
        outputs.append(y)
    if self.backward:
        outputs.reverse()
    return torch.cat(outputs), {states}
"""
"""The loop in TorchScript, which has no functions of a variable number of arguments: one is written for each number of
state tensors."""


class Loop(nn.Module):
    """What a scripted loop over copies of a body reads. Its `forward` is defined from `FORWARD`."""

    def __init__(self, block: Any, copies: int, backward: bool) -> None:
        super().__init__()
        self.block = block
        self.copies = copies
        self.backward = backward


class Single(Unrolled):
    """`Unrolled` for a single step: without splitting x and joining y."""

    def forward(self, projected: Tensor, *state: Tensor) -> State:
        y, state = self.body.advance(projected[0], state)
        return (y.unsqueeze(0), *state)


def scripted_loop(body: LayerBody[Tensor], backward: bool, example: State, *, copies: int, make_block: MakeLoop) -> Any:
    """The loop as a TorchScript program over a traced block of `copies` steps."""
    projected, *state = example
    block = (Single if copies == 1 else make_block)(body, backward, example)
    traced = jit.trace(block, (projected.expand(copies, -1, -1), *state))
    loop = jit.script(Loop(traced, copies, backward))
    names = [f"state{number}" for number in range(len(state))]
    loop.define(
        FORWARD.format(
            states=", ".join(names),
            parameters=", ".join(f"{name}: Tensor" for name in names),
            results=", ".join(["Tensor"] * (1 + len(names))),
        )
    )
    return loop


def counted(graph: Any) -> dict[str, int]:
    """The number of operators by name, in all blocks."""
    return dict(sorted(Counter(node.kind().removeprefix("aten::") for node in _nodes(graph)).items()))


def _nodes(block: Any) -> Iterator[Any]:
    """The nodes of a graph or block, and those within them. A group of fused operators has them in its subgraph."""
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)
        if node.hasAttribute(SUBGRAPH):
            yield from _nodes(node.g(SUBGRAPH))


def _lowered(request: Request, graph: Any) -> str:
    """A loop appends one output for each block of steps. The executor splits a loop into one over eight passes and one
    for the rest."""
    bodies = [body for node in _nodes(graph) if node.kind() == "prim::Loop" for body in node.blocks()]
    if runs_together(request.strategy.time):
        return lowered_together(request, len(bodies))
    in_block = request.strategy.copies or 1
    in_loops = [counted(body)["append"] * in_block for body in bodies]
    return lowered(in_loops, 0 if bodies else body_copies(request.model, counted(graph)))
