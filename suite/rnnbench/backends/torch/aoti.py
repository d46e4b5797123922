"""Route aoti: torch.export and AOTInductor, which make a package of machine code and weights that needs no Python."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rnnbench.backends.base import Artifact, Request
from rnnbench.backends.torch.generated import calls, lowered_code
from rnnbench.backends.torch.inductor import failed, inductor_in, network, notes, origin, recording
from rnnbench.backends.torch.network import example_inputs, recorded_module, zero_state
from rnnbench.backends.torch.recorded import RecordedStream
from rnnbench.backends.torch.store import Kept, kept, sha256, source_digest
from rnnbench.backends.torch.stream import Opener


def build(request: Request, cache: Path) -> tuple[Kept, Opener]:
    """The package in the cache, loaded anew for every stream: its runner is not for two threads."""
    source = source_digest(request)
    with inductor_in(cache):
        found = kept(cache, source, partial(_make, request, source), ".pt2")
    return found, partial(_open, request, found.path)


def _open(request: Request, path: Path) -> RecordedStream:
    """A stateful program works in tensors of the stream's own: `user_managed` buffers are read and written in place."""
    model = torch._inductor.aoti_load_package(path, run_single_threaded=True)
    loader: Any = model.loader
    state = {} if request.strategy.state == "none" else zero_state(request)
    stitched = request.strategy.state == "stitched"
    if state and not stitched:
        loader.load_constants(state, False, False, True)

    return PackageStream(model, loader.run, state, stitched)


class PackageStream(RecordedStream):
    """A prepared call is one frame of Python above the package's runner, which takes a list and returns one: where the
    network has swept the interpreter out of the cache, each further frame costs some 5 µs."""

    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> Callable[[], Tensor]:
        return partial(self._hand_on if self._stitched else self._advance, x)

    def _hand_on(self, x: Tensor) -> Tensor:
        y: Tensor
        y, *self._held = self._fast([x, *self._held])
        return y

    def _advance(self, x: Tensor) -> Tensor:
        (y,) = self._fast([x])
        return y  # type: ignore[no-any-return]


def _make(request: Request, source: str, path: Path) -> Artifact:
    passes = request.strategy.copies
    module = recorded_module(request, network(request))
    with recording(request):
        try:
            exported = torch.export.export(module, example_inputs(request), strict=passes is not None)
            torch._inductor.aoti_compile_and_package(exported, package_path=str(path))
        except Exception as error:
            raise failed("AOTInductor", error) from error
    code = _code(path)
    return Artifact(
        source_digest=source,
        digest=sha256(source, code),
        nbytes=path.stat().st_size,
        operations={"compiled": calls(code)},
        lowered=lowered_code(request.model, code, passes or 1),
        origin=origin(request),
        math="exact",
        notes=(
            *notes(request),
            "bound calls go to the package's runner, past the checks of the Python callable",
        ),
    )


def _code(path: Path) -> str:
    """The generated C++ that lies in the package beside its machine code."""
    with zipfile.ZipFile(path) as package:
        names = sorted(name for name in package.namelist() if name.endswith(".cpp"))
        return "\n".join(package.read(name).decode() for name in names)
