"""Route `relax`: the module of a request, compiled to a library for Relax's virtual machine, and its program."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from rnnbench.backends.base import Artifact, Request
from rnnbench.backends.chunked import ChunkedProgram, of_one_step
from rnnbench.backends.tvm import store
from rnnbench.backends.tvm.framework import import_tvm, lanes, target
from rnnbench.backends.tvm.relax_counting import operations, relax_lowered
from rnnbench.backends.tvm.relax_module import relax_module
from rnnbench.backends.tvm.relax_session import RelaxSession
from rnnbench.backends.tvm.schedule import VECTORS, pipeline


class RelaxProgram(ChunkedProgram):
    def __init__(self, request: Request, artifact: Artifact, cached: bool, folder: Path) -> None:
        super().__init__(request, artifact, cached, lambda: build_relax(of_one_step(request), folder.parent))
        self.library = import_tvm().runtime.load_module(str(folder / store.LIBRARY))

    def open(self) -> RelaxSession:
        """A stream with a virtual machine of its own."""
        tvm = import_tvm()
        return RelaxSession(self, tvm.relax.VirtualMachine(self.library, tvm.cpu()))


def build_relax(request: Request, cache: Path) -> RelaxProgram:
    """The program of a request that `support` takes. Raises BuildError."""
    digest = hashlib.sha256()
    for name, array in request.weights.named(request.model):
        digest.update(name.encode() + array.tobytes())
    folder = cache / f"tvm-{store.key(request, str(target()), digest.hexdigest())}"
    artifact = store.find(folder)
    cached = artifact is not None
    if artifact is None:
        artifact = _compile(request, folder, digest.hexdigest())
    return RelaxProgram(request, artifact, cached, folder)


def _compile(request: Request, folder: Path, weights: str) -> Artifact:
    tvm = import_tvm()
    module = relax_module(request)
    final: list[Any] = []
    executable = tvm.compile(module, target=target(), relax_pipeline=pipeline(target(), lanes(), final.append))

    def describe(library: bytes) -> Artifact:
        return Artifact(
            source_digest=hashlib.sha256(f"{module.script()}{weights}".encode()).hexdigest(),
            digest=hashlib.sha256(library).hexdigest(),
            nbytes=len(library),
            operations={"input": operations(module), "compiled": operations(final[0])},
            lowered=relax_lowered(final[0], request.model),
            origin="authored",
            math="exact",
            flags=(str(target()),),
            notes=(
                f"Scheduled here: products keep {VECTORS} vectors of {lanes()} lanes in registers, and the rest is "
                "loops over vectors. TVM's default pipeline leaves scalar loops, ten times slower.",
                "The projection of x is one product before the first step.",
            ),
        )

    return store.keep(folder, lambda path: store.export(executable, path), describe)
