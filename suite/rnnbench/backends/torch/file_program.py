"""Route eager over a user's `.pt2` file: Python calls the operators of its graph one by one."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from rnnbench.backends.base import Artifact, OperationStage, Request
from rnnbench.backends.shared import from_file, to_file
from rnnbench.backends.torch.file_module import TensorOps
from rnnbench.backends.torch.network import zero_state
from rnnbench.backends.torch.store import CachedBuild, Described, load_or_build, source_digest
from rnnbench.backends.torch.stream import Opener, PreparedStream
from rnnbench.model_files import FileNetwork, Pt2Program, unchanged_path


def build(request: Request, network: FileNetwork, cache: Path) -> tuple[CachedBuild, Opener]:
    """The file in the cache, and the function that opens a stream over it. Raises ModelFileError."""
    source = source_digest(request)
    stored = load_or_build(cache, source, lambda path: _copied(network, source, path))
    program = Pt2Program(stored.path)
    return stored, lambda: FileStream(request, network, program)


def _copied(network: FileNetwork, source: str, path: Path) -> Described:
    shutil.copyfile(unchanged_path(network), path)
    nodes = [f"{node.operator}.{node.overload}".strip(".") for node in Pt2Program(path).file.all_nodes]
    artifact = Artifact(
        source_digest=source,
        operations={OperationStage.INPUT: dict(sorted(Counter(nodes).items()))},
        lowered="given",
        origin="imported",
        math="exact",
        notes=(
            "The user's program of torch.export: its operators are called one by one, as they stand in the file.",
            "The file is read without torch.export.load, which would read pickles.",
        ),
    )
    return artifact, "\n".join(nodes)


class FileStream(PreparedStream):
    """The states go into each call and come out of it."""

    def __init__(self, request: Request, network: FileNetwork, program: Pt2Program) -> None:
        self._network, self._program = network, program
        self._sizes = request.strategy.chunk, request.batch
        arrays = network.constant_arrays(request.batch)
        self._constants = {name: torch.tensor(value) for name, value in arrays.items()}
        self.state: Mapping[str, Tensor] = zero_state(request)

    def write(self, state: Mapping[str, Tensor]) -> None:
        self.state = dict(state)

    def step(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        arrays = to_file(TensorOps(), self._network, x, self.state, *self._sizes)
        got = self._program({**arrays, **self._constants})
        y, self.state = from_file(TensorOps(), self._network, got, *self._sizes)
        return y.contiguous()

    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> Callable[[], Tensor]:
        return partial(self.step, x)
