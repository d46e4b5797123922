"""Built programs in the cache: a file or folder that the route loads, and a JSON file that describes the artifact."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from rnnbench.backends.base import Artifact, ProgramFiles, Request
from rnnbench.backends.shared import CUDA
from rnnbench.backends.torch.cuda import compiled_for
from rnnbench.disk import read_cached, write_text


@dataclass(frozen=True)
class CachedBuild:
    """A build in the cache. `cached` says whether an earlier build left it there."""

    path: Path
    identity: Path
    """The text of the program: of the generated code, or of the calls that Python makes."""
    artifact: Artifact
    cached: bool

    @property
    def files(self) -> ProgramFiles:
        return ProgramFiles((self.path,), (self.identity,))


Described = tuple[Artifact, str]
"""A program's artifact, and its text."""


def load_or_build(cache: Path, source: str, build: Callable[[Path], Described], suffix: str = "") -> CachedBuild:
    """The build with that source digest: from `cache`, or made by `build`, which writes to the path that it gets.

    Files are moved to their place when they are complete, because another process may make the same build.
    """
    path, description = cache / f"torch-{source[:32]}{suffix}", cache / f"torch-{source[:32]}.json"
    identity = description.with_suffix(".txt")
    described = read_cached(description, lambda file: Artifact.model_validate_json(file.read_bytes()))
    if path.exists() and identity.exists() and described is not None:
        return CachedBuild(path, identity, described, True)
    cache.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"part-{os.getpid()}-{path.name}")
    artifact, text = build(part)
    part.replace(path)
    write_text(identity, f"{source}\n{text}")
    write_text(description, artifact.model_dump_json())
    return CachedBuild(path, identity, artifact, False)


def source_digest(request: Request) -> str:
    """SHA-256 of all that determines a program: this build of torch, the request and the weights."""
    strategy = request.strategy
    description = {
        "torch": [str(torch.__version__), torch.backends.cpu.get_cpu_capability()],
        "route": request.route,
        "model": request.model.params,
        "strategy": [strategy.time, strategy.state, strategy.chunk],
        "batch": request.batch,
        "precision": asdict(request.precision),
        "threads": request.threads,
        "ragged": request.ragged,
        "weights": request.weights.digest(request.model),
        **({"device": [request.device, *compiled_for()]} if request.device == CUDA else {}),
    }
    return sha256(json.dumps(description, sort_keys=True))


def sha256(*parts: str | bytes) -> str:
    return hashlib.sha256(b"\n".join(p.encode() if isinstance(p, str) else p for p in parts)).hexdigest()
