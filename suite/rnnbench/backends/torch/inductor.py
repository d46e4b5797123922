"""What the routes through Inductor share: the module to trace, Inductor's folder, and a loop that stays a loop."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan

from rnnbench.backends.base import Artifact, BuildError, OperationStage, Origin, Request
from rnnbench.backends.torch.device import device_of
from rnnbench.backends.torch.file_module import file_module
from rnnbench.backends.torch.inductor_code import calls, lowered_code
from rnnbench.backends.torch.library import Library, library_module, uses_onednn
from rnnbench.backends.torch.network import MakeLoop, Network, State, block_of
from rnnbench.backends.torch.stream import DTYPES
from rnnbench.rnn import LayerBody
from rnnbench.temporary import lasting_folder

FOLDER = "TORCHINDUCTOR_CACHE_DIR"
MESSAGE_END_CHARACTERS = 600
"""A long error message is cut to this number of characters at its start and at its end."""


class Scan(nn.Module):
    """The body, or a block of `copies` steps of it, in torch's scan operator, which Inductor compiles to a loop."""

    def __init__(
        self, body: LayerBody[Tensor], backward: bool, example: State, *, copies: int, make_block: MakeLoop
    ) -> None:
        super().__init__()
        self._copies = copies
        self._backward = backward
        self._block = make_block(body, backward, example)
        # torch.export passes the buffers of modules into the operator's subgraph, but not the tensors of other objects.
        for name, value in list(vars(body).items()):
            if isinstance(value, Tensor):
                self.register_buffer(name, value)

    def forward(self, projected: Tensor, *state: Tensor) -> State:
        def step(old_state: State, rows: Tensor) -> tuple[State, Tensor]:
            y, *new_state = self._block(rows, *old_state)
            return tuple(map(_laid_out, new_state, old_state)), y

        final, y = scan(
            step, state, projected.view(-1, self._copies, *projected.shape[1:]), dim=0, reverse=self._backward
        )
        return (y.flatten(0, 1), *final)


def _laid_out(new: Tensor, old: Tensor) -> Tensor:
    """The new state with the strides of the old one, as the scan operator wants it: columns of a tensor are copied."""
    return new if new.stride() == old.stride() else new.clone(memory_format=torch.contiguous_format)


def network(request: Request) -> nn.Module:
    """The module of a request: a user's file, nn's RNN, or the network with a scan or a copy of its body for each step.

    Raises BuildError for a file that cannot be traced again.
    """
    if request.file is not None:
        return file_module(request, request.file)
    if request.strategy.time == "fused":
        dtype = DTYPES[request.precision.compute]
        weights = {name: torch.tensor(array, dtype=dtype) for name, array in request.weights.named(request.stack)}
        module = library_module(request.stack, dtype, weights, device_of(request))
        return Library(module, request.stack.direction == "reverse")
    copies, block = request.strategy.copies, block_of(request)
    return Network(request, partial(Scan, copies=copies, make_block=block) if copies else block)


def described(request: Request, source: str, code: str, note: str, flags: tuple[str, ...] = ()) -> Artifact:
    """The program that Inductor's `code` calls. `note` is the route's own."""
    return Artifact(
        source_digest=source,
        operations={OperationStage.COMPILED: calls(code)},
        lowered=lowered_code(request, code),
        origin=_origin(request),
        math="exact",
        flags=flags,
        notes=(*_notes(request), note),
    )


def _origin(request: Request) -> Origin:
    if request.file is not None:
        return "imported"
    return "library" if request.strategy.time == "fused" else "authored"


def _notes(request: Request) -> tuple[str, ...]:
    if request.file is not None:
        return ("the user's program of torch.export, traced again with its states as arguments and results",)
    if request.strategy.time != "fused":
        return ("the input projection of a chunk is one product before its loop",)
    if uses_onednn(request):
        return ("nn's operator becomes one call of oneDNN's LSTM, which packs its weights in every call",)
    return ("nn's operator is written out step by step and compiled like an authored cell",)


def build_error(compiler: str, error: Exception) -> BuildError:
    """The error with both ends of a long message: torch.export gives the reason first, a C++ compiler gives it last."""
    message, end = str(error), MESSAGE_END_CHARACTERS
    if len(message) > 2 * end:
        message = f"{message[:end]}\n…\n{message[-end:]}"
    return BuildError(f"{compiler} failed: {type(error).__name__}: {message}")


@contextmanager
def tracing_settings(request: Request) -> Iterator[None]:
    """While torch traces a request: nn's RNNs are allowed, and oneDNN is on only where its LSTM is the faster one.

    Inductor lets Python recurse deeper and leaves it so. That limit is put back.
    """
    fused, recursion_limit = request.strategy.time == "fused", sys.getrecursionlimit()
    torch._C._set_mkldnn_enabled(not fused or uses_onednn(request))
    try:
        with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=fused, enable_aot_compile=True):
            yield
    finally:
        torch._C._set_mkldnn_enabled(True)
        sys.setrecursionlimit(recursion_limit)


def share_machine_files() -> None:
    """Let Inductor keep what it makes once for an interpreter where the user's torch has it, not in a worker's TMPDIR.

    They are precompiled headers, and programs with which it tries whether the compiler knows the processor's vectors:
    440 MB for each interpreter.
    """
    from torch._inductor import codecache

    # Inductor (2.13) names their folder when it is imported.
    header_folder = Path(codecache._HEADER_DIR)
    codecache._HEADER_DIR = str(lasting_folder() / header_folder.parent.name / header_folder.name)
    codecache._HEADER_LOCK_DIR = str(Path(codecache._HEADER_DIR) / Path(codecache._HEADER_LOCK_DIR).name)
    _try_vectors_in_lasting_folder()


@cache
def _try_vectors_in_lasting_folder() -> None:
    """Once in a process. Inductor tries them when it first compiles or loads a program, in the folder of that time."""
    from torch._inductor.cpu_vec_isa import VecISA
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    check_build: Callable[[VecISA, str], bool] = VecISA.check_build

    def check_in_lasting_folder(isa: VecISA, code: str) -> bool:
        with _inductors_folder(lasting_folder() / Path(default_cache_dir()).name):
            return check_build(isa, code)

    VecISA.check_build = check_in_lasting_folder


@contextmanager
def inductor_in(cache: Path) -> Iterator[None]:
    """Inductor's folder is in `cache`."""
    share_machine_files()
    with _inductors_folder(cache / "inductor"):
        yield


@contextmanager
def _inductors_folder(folder: Path) -> Iterator[None]:
    """Inductor reads the folder's name from the environment at each access."""
    previous = os.environ.get(FOLDER)
    os.environ[FOLDER] = str(folder.resolve())
    try:
        yield
    finally:
        if previous is None:
            del os.environ[FOLDER]
        else:
            os.environ[FOLDER] = previous
