"""Built programs on disk: a folder of files beside the artifact that describes them, named by all that decides them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rnnbench.backends.base import Artifact, Request

_DESCRIPTION = "artifact.json"


def folder(request: Request, cache: Path, versions: Mapping[str, str], sources: Iterable[Path]) -> Path:
    """Where a request's program lies under `cache`. `sources`: folders of modules; an edit there is a new program."""
    asked = {
        "route": request.route,
        "model": request.model.model_dump(),
        "strategy": dataclasses.asdict(request.strategy),
        "batch": request.batch,
        "precision": dataclasses.asdict(request.precision),
        "device": request.device,
        "threads": request.threads,
        "ragged": request.ragged,
        "versions": dict(versions),
    }
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode())
    for module in sorted(path for source in sources for path in source.glob("*.py")):
        digest.update(module.read_bytes())
    for name, array in request.weights.named(request.model):
        digest.update(f"{name} {array.dtype}".encode())
        digest.update(array.tobytes())
    return cache / digest.hexdigest()[:32]


def find(kept: Path) -> Artifact | None:
    """The artifact of the program in a folder, or None where there is none."""
    path = kept / _DESCRIPTION
    if not path.is_file():
        return None
    fields = json.loads(path.read_text())
    return Artifact(**{**fields, "flags": tuple(fields["flags"]), "notes": tuple(fields["notes"])})


def keep(kept: Path, build: Callable[[Path], Artifact]) -> Artifact:
    """What `build` makes of an empty folder becomes `kept`, whole or not at all, whoever else builds the same."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".building-") as temporary:
        building = Path(temporary) / "program"
        building.mkdir()
        artifact = build(building)
        (building / _DESCRIPTION).write_text(json.dumps(dataclasses.asdict(artifact), indent=1))
        try:
            building.rename(kept)
        except OSError:
            if not (kept / _DESCRIPTION).is_file():
                raise
    return artifact
