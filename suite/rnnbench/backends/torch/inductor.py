"""What the routes through Inductor share: their module, its folder, and a loop that it keeps one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan

from rnnbench.backends.base import BuildError, Origin, Request
from rnnbench.backends.torch.library import Library, library_module, uses_onednn
from rnnbench.backends.torch.network import Network, State, Unrolled
from rnnbench.backends.torch.stream import DTYPES
from rnnbench.rnn.cells import CellBody

FOLDER = "TORCHINDUCTOR_CACHE_DIR"
SAID = 600
"""Characters that are kept of either end of a message."""


class Scan(nn.Module):
    """The body, or `copies` of it, under torch's scan operator, which Inductor makes a loop of."""

    def __init__(self, body: CellBody[Tensor], backward: bool, example: State, copies: int) -> None:
        super().__init__()
        self._copies = copies
        self._backward = backward
        self._block = Unrolled(body, backward, example)
        # Export lifts a module's buffers into the operator's subgraph, and no tensors of other objects.
        for name, value in list(vars(body).items()):
            if isinstance(value, Tensor):
                self.register_buffer(name, value)

    def forward(self, projected: Tensor, *state: Tensor) -> State:
        def step(held: State, rows: Tensor) -> tuple[State, Tensor]:
            y, *new = self._block(rows, *held)
            return tuple(new), y

        final, y = scan(
            step, state, projected.view(-1, self._copies, *projected.shape[1:]), dim=0, reverse=self._backward
        )
        return (y.flatten(0, 1), *final)


def network(request: Request) -> nn.Module:
    """What a request asks for: nn's own module, or the authored cell under a scan, or a copy of it for each step."""
    if request.strategy.time == "fused":
        dtype = DTYPES[request.precision.compute]
        weights = {name: torch.tensor(array, dtype=dtype) for name, array in request.weights.named(request.model)}
        return Library(library_module(request.model, dtype, weights), request.model.direction == "reverse")
    passes = request.strategy.copies
    return Network(request, partial(Scan, copies=passes) if passes else Unrolled)


def origin(request: Request) -> Origin:
    return "library" if request.strategy.time == "fused" else "authored"


def notes(request: Request) -> tuple[str, ...]:
    if request.strategy.time != "fused":
        return ("the input projection of a chunk is one product before its loop",)
    if uses_onednn(request):
        return ("nn's operator stays one call of oneDNN's LSTM, which packs its weights in every call",)
    return ("nn's operator is written out step by step, and compiled like a cell of one's own",)


def failed(what: str, error: Exception) -> BuildError:
    """Export gives its reason first and a C++ compiler last: of a long message, both ends."""
    said = str(error)
    if len(said) > 2 * SAID:
        said = f"{said[:SAID]}\n…\n{said[-SAID:]}"
    return BuildError(f"{what} failed: {type(error).__name__}: {said}")


@contextmanager
def recording(request: Request) -> Iterator[None]:
    """nn's RNNs may be recorded; and oneDNN's LSTM is in what is recorded only where it pays."""
    fused = request.strategy.time == "fused"
    torch._C._set_mkldnn_enabled(not fused or uses_onednn(request))
    try:
        with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=fused):
            yield
    finally:
        torch._C._set_mkldnn_enabled(True)


@contextmanager
def inductor_in(cache: Path) -> Iterator[None]:
    """Inductor reads its folder from the environment whenever it looks there."""
    before = os.environ.get(FOLDER)
    os.environ[FOLDER] = str(cache.resolve() / "inductor")
    try:
        yield
    finally:
        if before is None:
            del os.environ[FOLDER]
        else:
            os.environ[FOLDER] = before
