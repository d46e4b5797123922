"""What a build leaves in the cache: a file or folder that its route can load, and beside it what the artifact is."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from rnnbench.backends.base import Artifact, Request


@dataclass(frozen=True)
class Kept:
    """A build in the cache. `cached`: it was there before."""

    path: Path
    artifact: Artifact
    cached: bool


def kept(cache: Path, source: str, make: Callable[[Path], Artifact], suffix: str = "") -> Kept:
    """The build of that source digest: found under `cache`, or made there by `make`, which writes the path it is given.

    Whole or not at all: another process may be at the same build meanwhile.
    """
    path, facts = cache / f"torch-{source[:32]}{suffix}", cache / f"torch-{source[:32]}.json"
    if path.exists() and facts.exists():
        return Kept(path, Artifact.model_validate_json(facts.read_bytes()), True)
    cache.mkdir(parents=True, exist_ok=True)
    part, part_facts = (p.with_name(f"part-{os.getpid()}-{p.name}") for p in (path, facts))
    artifact = make(part)
    part.replace(path)
    part_facts.write_text(artifact.model_dump_json())
    part_facts.replace(facts)
    return Kept(path, artifact, False)


def source_digest(request: Request) -> str:
    """SHA-256 of all that decides a program: this build of torch, the request, the weights."""
    strategy = request.strategy
    description = {
        "torch": [str(torch.__version__), torch.backends.cpu.get_cpu_capability()],
        "route": request.route,
        "model": request.model.model_dump(),
        "strategy": [strategy.time, strategy.state, strategy.chunk],
        "batch": request.batch,
        "dtype": request.precision.compute,
        "threads": request.threads,
        "ragged": request.ragged,
        "weights": request.weights.digest(request.model),
    }
    return sha256(json.dumps(description, sort_keys=True))


def sha256(*parts: str | bytes) -> str:
    return hashlib.sha256(b"\n".join(p.encode() if isinstance(p, str) else p for p in parts)).hexdigest()
