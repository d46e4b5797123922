"""Route script: TorchScript, deprecated by PyTorch. A traced copy of the body for each step, or a scripted loop."""

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
from rnnbench.backends.torch.counting import lowered, steps_in
from rnnbench.backends.torch.network import Network, State, Unrolled, example_inputs, held_state, recorded_module
from rnnbench.backends.torch.recorded import RecordedStream
from rnnbench.backends.torch.store import Kept, kept, sha256, source_digest
from rnnbench.backends.torch.stream import Opener, inference
from rnnbench.rnn.cells import CellBody

jit: Any = torch.jit  # untyped

WARM_CALLS = 3
"""The executor profiles the first call and optimises in the next ones."""


def build(request: Request, cache: Path) -> tuple[Kept, Opener]:
    """The frozen module in the cache, loaded anew for every stream, whose state is in its buffers."""
    source = source_digest(request)
    with inference(True), _deprecated():
        found = kept(cache, source, partial(_make, request, source))
    return found, partial(_open, request, found.path)


@contextmanager
def _deprecated() -> Iterator[None]:
    """TorchScript says in every call that it is deprecated; `docs/backends/torch.md` says it once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit\.", DeprecationWarning)
        yield


def _open(request: Request, path: Path) -> RecordedStream:
    with _deprecated():
        module = jit.load(path)
    for _ in range(WARM_CALLS):
        module.forward(*example_inputs(request))
    held = held_state(request, module)
    for tensor in held.values():
        tensor.zero_()
    return RecordedStream(module, module.forward, held, request.strategy.state == "stitched")


def _make(request: Request, source: str, path: Path) -> Artifact:
    passes = request.strategy.copies
    make_loop = partial(scripted_loop, copies=passes) if passes else Unrolled
    module = recorded_module(request, Network(request, make_loop))
    recorded = jit.trace(module, example_inputs(request), check_trace=False)
    frozen = jit.freeze(recorded)
    jit.save(frozen, path)
    for _ in range(WARM_CALLS):
        frozen.forward(*example_inputs(request))
    executed = jit.last_executed_optimized_graph()
    loops, outside = _copies(request, executed, passes or 1)
    return Artifact(
        source_digest=source,
        digest=sha256(source, str(executed)),
        nbytes=path.stat().st_size,
        operations={OperationStage.INPUT: counted(recorded.inlined_graph), OperationStage.COMPILED: counted(executed)},
        lowered=lowered(loops, outside),
        origin="authored",
        math="exact",
        notes=("the input projection of a chunk is one product before its loop",),
    )


class LoopOverH(nn.Module):
    """A scripted loop over copies of a cell whose state is h."""

    def __init__(self, block: Any, copies: int, backward: bool) -> None:
        super().__init__()
        self.block = block
        self.copies = copies
        self.backward = backward

    def forward(self, projected: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        blocks = projected.view(-1, self.copies, projected.size(1), projected.size(2))
        passes = blocks.size(0)
        outputs: list[Tensor] = []
        for index in range(passes):
            y, h = self.block(blocks[passes - 1 - index if self.backward else index], h)
            outputs.append(y)
        if self.backward:
            outputs.reverse()
        return torch.cat(outputs), h


class LoopOverHC(nn.Module):
    """A scripted loop over copies of a cell whose state is h and c."""

    def __init__(self, block: Any, copies: int, backward: bool) -> None:
        super().__init__()
        self.block = block
        self.copies = copies
        self.backward = backward

    def forward(self, projected: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        blocks = projected.view(-1, self.copies, projected.size(1), projected.size(2))
        passes = blocks.size(0)
        outputs: list[Tensor] = []
        for index in range(passes):
            y, h, c = self.block(blocks[passes - 1 - index if self.backward else index], h, c)
            outputs.append(y)
        if self.backward:
            outputs.reverse()
        return torch.cat(outputs), h, c


class Single(Unrolled):
    """One step: what `Unrolled` is over one, without taking its x apart and its y together."""

    def forward(self, projected: Tensor, *state: Tensor) -> State:
        state = self.body.advance(projected[0], state)
        return (state[0].unsqueeze(0), *state)


def scripted_loop(body: CellBody[Tensor], backward: bool, example: State, copies: int) -> Any:
    """The loop in TorchScript's own words, over traced copies of the step."""
    projected, *state = example
    block = (Single if copies == 1 else Unrolled)(body, backward, example)
    traced = jit.trace(block, (projected.expand(copies, -1, -1), *state))
    loop = LoopOverH if len(state) == 1 else LoopOverHC
    return jit.script(loop(traced, copies, backward))


def counted(graph: Any) -> dict[str, int]:
    """Operators by name, in all blocks."""
    return dict(sorted(Counter(node.kind().removeprefix("aten::") for node in _nodes(graph)).items()))


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _copies(request: Request, graph: Any, in_block: int) -> tuple[list[int], int]:
    """Copies of the cell in each loop, which appends an output for each block of them, and outside of loops.

    The executor unrolls what was written as a loop into one over eight passes, and one for the rest.
    """
    bodies = [body for node in _nodes(graph) if node.kind() == "prim::Loop" for body in node.blocks()]
    inside = [counted(body)["append"] * in_block for body in bodies]
    return inside, 0 if bodies else steps_in(request.model, counted(graph))
