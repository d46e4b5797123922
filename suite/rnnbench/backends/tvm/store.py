"""Compiled programs on disk: a shared library beside a description of it, under a key of all that decides it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rnnbench.backends.base import Artifact, BuildError, Request

LIBRARY = "program.so"
DESCRIPTION = "artifact.json"


@cache
def _generator() -> str:
    """Digest of the modules that generate programs: an edit there makes new programs."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def key(request: Request, target: str, weights: str) -> str:
    """Names a program: what was asked for, the target, the versions, the digest of weights that are compiled in."""
    asked = {
        "route": request.route,
        "model": request.model.model_dump(),
        "strategy": dataclasses.asdict(request.strategy),
        "batch": request.batch,
        "precision": dataclasses.asdict(request.precision),
        "target": target,
        "versions": [version("apache-tvm"), version("apache-tvm-ffi")],
        "generator": _generator(),
        "weights": weights,
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:32]


def find(folder: Path) -> Artifact | None:
    """The description of a program that an earlier build left, or None."""
    path = folder / DESCRIPTION
    if not path.is_file():
        return None
    fields = json.loads(path.read_text())
    return Artifact(**{**fields, "flags": tuple(fields["flags"]), "notes": tuple(fields["notes"])})


def keep(folder: Path, export: Callable[[Path], None], describe: Callable[[bytes], Artifact]) -> Artifact:
    """Export a library into `folder` and describe it; whole or not at all, whoever else builds the same."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".building-") as temporary:
        building = Path(temporary) / "program"
        building.mkdir()
        export(building / LIBRARY)
        artifact = describe((building / LIBRARY).read_bytes())
        (building / DESCRIPTION).write_text(json.dumps(dataclasses.asdict(artifact), indent=1))
        try:
            building.rename(folder)
        except OSError:
            if not (folder / DESCRIPTION).is_file():
                raise
    return artifact


def export(executable: Any, path: Path) -> None:
    """Link a compiled module into a shared library: by the C compiler where there is one, else by a bare linker."""
    from tvm.support.cc import get_cc

    linker = None if get_cc() else _bare_linker()
    try:
        executable.export_library(str(path), fcompile=linker)
    except RuntimeError as error:
        raise BuildError(f"linking the compiled program failed: {error}") from error


def _bare_linker() -> Callable[..., None]:
    """Programs need no C library of their own, so `ld -shared` links them as well as a compiler's driver does."""
    found = next((path for name in ("ld", "ld.lld", "ld.gold", "lld") if (path := shutil.which(name))), None)
    if found is None:
        raise BuildError(
            "TVM writes object files and needs a linker to load them: found neither a C compiler (g++, gcc, clang, cc; "
            "CXX and CC name another) nor ld or ld.lld. Install one, with `apt install binutils` or `gcc`"
        )

    def link(output: str, objects: list[str], **_: object) -> None:
        done = subprocess.run([found, "-shared", "-o", output, *objects], capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"{found} failed: {done.stderr}")

    return link
