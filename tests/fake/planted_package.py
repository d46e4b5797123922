"""An installed package that no index has, and what may be done to its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

FILES = {"planted/__init__.py": b"A = 1\n", "planted/code.so": b"code", "shared/planted/__init__.py": b"B = 1\n"}
INSTALLED = 1_700_000_000


def install(folder: Path, files: Mapping[str, bytes] = FILES) -> Path:
    """A package in a folder, as pip leaves it: `RECORD` is written last."""
    info = folder / "planted-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    rows = [f"{name},sha256=x,{len(content)}" for name, content in files.items()]
    (info / "RECORD").write_text("\n".join([*rows, "planted-1.0.dist-info/RECORD,,"]))
    for path in folder.rglob("*"):
        os.utime(path, (INSTALLED, INSTALLED))
    return folder


def write_later(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    os.utime(path, (INSTALLED + 10, INSTALLED + 10))


def write_with_the_old_time(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    os.utime(path, (INSTALLED, INSTALLED))


IN_A_PACKAGE: Mapping[str, Callable[[Path], object]] = {
    "a source of another size": lambda site: write_with_the_old_time(site / "planted/__init__.py", b"A = 22\n"),
    "a source of the same size": lambda site: write_later(site / "planted/__init__.py", b"A = 2\n"),
    "a library": lambda site: write_later(site / "planted/code.so", b"edoc"),
    "a module of a shared folder": lambda site: write_later(site / "shared/planted/__init__.py", b"B = 2\n"),
    "a file that is missing": lambda site: (site / "planted/code.so").unlink(),
}
"""Changes after the installation, by what they change."""
