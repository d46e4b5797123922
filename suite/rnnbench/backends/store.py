"""Built programs on disk: a folder of files beside the artifact that describes them, named by all that decides them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rnnbench.backends.base import Artifact, Request

_DESCRIPTION = "artifact.json"


@dataclass(frozen=True)
class Stored:
    """A built program in its folder. `cached`: an earlier build left it there."""

    folder: Path
    artifact: Artifact
    cached: bool


def folder(request: Request, cache: Path, made_by: Mapping[str, str], sources: Iterable[Path]) -> Path:
    """Where a request's program lies under `cache`.

    `made_by` has versions and what else of this machine decides it; `sources` folders of modules: an edit there is a
    new program.
    """
    asked = {
        "route": request.route,
        "model": request.model.model_dump(),
        "strategy": dataclasses.asdict(request.strategy),
        "batch": request.batch,
        "precision": dataclasses.asdict(request.precision),
        "device": request.device,
        "threads": request.threads,
        "ragged": request.ragged,
        "made_by": dict(made_by),
        "weights": request.weights.digest(request.model),
    }
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode())
    for module in sorted(path for source in sources for path in source.glob("*.py")):
        digest.update(module.read_bytes())
    return cache / digest.hexdigest()[:32]


def found_or_built(kept: Path, build: Callable[[Path], Artifact]) -> Stored:
    """The program in a folder; where there is none, what `build` makes of an empty folder becomes that folder.

    Whole or not at all, whoever else builds the same.
    """
    artifact = _found(kept)
    return Stored(kept, artifact or _built(kept, build), artifact is not None)


def _found(kept: Path) -> Artifact | None:
    path = kept / _DESCRIPTION
    if not path.is_file():
        return None
    return Artifact.model_validate_json(path.read_bytes())


def _built(kept: Path, build: Callable[[Path], Artifact]) -> Artifact:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".building-") as temporary:
        building = Path(temporary) / "program"
        building.mkdir()
        artifact = build(building)
        (building / _DESCRIPTION).write_text(artifact.model_dump_json(indent=1))
        try:
            building.rename(kept)
        except OSError:
            if not (kept / _DESCRIPTION).is_file():
                raise
    return artifact
