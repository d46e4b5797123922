"""Executables on disk: XLA's serialisation and a description, under a key of all that decides the executable."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
from importlib.metadata import version
from pathlib import Path

import jax
import numpy as np
from jax.experimental import serialize_executable

from rnnbench.backends.base import Artifact, Request
from rnnbench.backends.jax import placement
from rnnbench.disk import read_cached, write_bytes, write_text

SUFFIX = ".xla"
IDENTITY = ".hlo"
"""The optimised HLO without the operations' origins. XLA numbers the parts of an executable anew in every build, so
equal programs have executables of different bytes."""


def key(request: Request, dtype: np.dtype[np.generic]) -> str:
    """The name of an executable. A stitched and a stateful request have the same one."""
    decisive = {
        "model": request.model.params,
        "time": request.strategy.time,
        "carried": request.strategy.state != "none",
        "chunk": request.strategy.chunk,
        "launch": request.strategy.launch,
        "batch": request.batch,
        "ragged": request.ragged,
        "dtype": dtype.name,
        "versions": [version("jax"), version("jaxlib"), version("numpy")],
        "flags": os.environ.get("XLA_FLAGS", ""),
        "threads": request.threads,
        **placement.facts(request),
        "weights": request.weights.digest(request.model),
    }
    return f"jax-{hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:32]}"


def load(folder: Path, name: str, device: jax.Device) -> tuple[jax.stages.Compiled, Artifact] | None:
    """An executable that an earlier build left, loaded for `device`, and its description; None where there is none."""
    artifact = read_cached(folder / f"{name}.json", lambda file: Artifact.model_validate_json(file.read_bytes()))
    if artifact is None:
        return None
    if not all(path.exists() for path in paths(folder, name)):
        return None
    parts = pickle.loads((folder / f"{name}{SUFFIX}").read_bytes())
    return serialize_executable.deserialize_and_load(*parts, device.client, [device]), artifact


def paths(folder: Path, name: str) -> tuple[Path, Path]:
    """The executable and the text of its program."""
    return folder / f"{name}{SUFFIX}", folder / f"{name}{IDENTITY}"


def without_origins(hlo: str) -> str:
    """Optimised HLO without the lines of the source that its operations came from."""
    return re.sub(r", metadata=\{[^}]*\}", "", hlo)


def save(folder: Path, name: str, executable: bytes, hlo: str, artifact: Artifact) -> None:
    """Each file is written as a whole or not at all. The description is the last: it is what `load` looks for."""
    path, identity = paths(folder, name)
    write_bytes(path, executable)
    write_text(identity, without_origins(hlo))
    write_text(folder / f"{name}.json", artifact.model_dump_json(indent=1))
