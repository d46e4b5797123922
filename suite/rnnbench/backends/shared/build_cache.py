"""Built programs on disk: one folder each, named by a digest of all that decides the program.

A folder has the files of the program and `artifact.json`, which describes them.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rnnbench.backends.base import Artifact, Request
from rnnbench.disk import read_cached, remove_folder, write_text

_DESCRIPTION = "artifact.json"


@dataclass(frozen=True)
class Stored:
    """A built program in its folder. `cached`: an earlier build left it there."""

    folder: Path
    artifact: Artifact
    cached: bool


def program_folder(request: Request, cache: Path, made_by: Mapping[str, str]) -> Path:
    """The folder of a request's program under `cache`.

    `made_by` has the versions, and what else of this machine decides the program. An edit of the adapter needs no
    mention: it has another `cache`.
    """
    decisive = {**request.facts, "made_by": dict(made_by)}
    return cache / hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:32]


def load_or_build(folder: Path, build: Callable[[Path], Artifact]) -> Stored:
    """The program in a folder. Where there is none, `build` fills an empty folder, which then gets that name.

    The folder is there as a whole or not at all, also where other processes build the same program.
    """
    artifact = _load(folder)
    return Stored(folder, artifact or _build(folder, build), artifact is not None)


def _load(folder: Path) -> Artifact | None:
    return read_cached(folder / _DESCRIPTION, lambda path: Artifact.model_validate_json(path.read_bytes()))


def _build(folder: Path, build: Callable[[Path], Artifact]) -> Artifact:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".building-") as temporary:
        building = Path(temporary) / "program"
        building.mkdir()
        artifact = build(building)
        write_text(building / _DESCRIPTION, artifact.model_dump_json(indent=1))
        try:
            building.rename(folder)
        except OSError:
            # Another process has built the program meanwhile, or the folder has no description or a damaged one.
            if _load(folder) is None:
                remove_folder(folder)
                building.rename(folder)
    return artifact
