"""What is in an installed package: a digest that changes with its files.

`RECORD` has a digest of each file as it was installed. What was changed since, and a copy of the package that Python
imports in its place, are not in it: so those are looked at, by their sizes and times.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from rnnbench.disk import open_plain

INIT = "__init__.py"
COMPILED = (".pyc", ".pyo")
"""Python writes these itself, when it imports."""
Seen = tuple[str, int, int]
"""A file's path, its size, and the time of its last change in ns; -1 for both where there is none."""


@cache
def package_digest(name: str) -> str:
    """The version of an installed package, and a digest of its files. Empty where it is not installed.

    The version alone counts for one that has no `RECORD`, or an editable install. A file that was replaced by one of
    the same size, with a time before the installation, is not seen.
    """
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return ""
    record = package.read_text("RECORD") or ""
    sizes = {row[0]: row[2] for row in csv.reader(record.splitlines()) if len(row) == 3}
    digest = hashlib.sha256(record.encode())
    for path, size, changed in (*_changed_files(package, sizes), *_files_elsewhere(package, sizes)):
        digest.update(f"\n{path} {size} {changed}".encode(errors="surrogateescape"))
    return f"{package.version} {digest.hexdigest()[:32]}"


def installed_files(package: Distribution) -> str:
    """A digest of the files of an installed package, equal where another environment has the same ones.

    Of an editable install the files of its modules count. What an installer writes about the environment does not:
    scripts, and the files of `.dist-info`. Empty for a package that says nothing of its files.
    """
    rows = [row for row in csv.reader((package.read_text("RECORD") or "").splitlines()) if len(row) == 3]
    files = {path: digest for path, digest, _ in rows if _is_own(path) and digest}
    root, sizes = str(package.locate_file("")), {path: size for path, _, size in rows}
    for path, _, _ in _changed_files(package, sizes):
        if (own := os.path.relpath(path, root)) in files:
            files[own] = _digest_as_recorded(path)
    for module, folder in _modules_elsewhere(package, sizes):
        files.update(_files_below(folder, module))
    if '"editable": true' in (package.read_text("direct_url.json") or ""):
        for module in (package.read_text("top_level.txt") or package.name.replace("-", "_")).split():
            spec = find_spec(module)  # An installer may have its own way to find it. Nothing is imported.
            for folder in (spec.submodule_search_locations or [spec.origin or ""]) if spec else ():
                files.update(_files_below(folder, module))
    lines = sorted(f"{path} {digest}\n" for path, digest in files.items())
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest() if lines else ""


def _is_own(path: str) -> bool:
    """Whether a file of `RECORD` is the package's, and not the environment's."""
    return not path.startswith(("..", "/")) and ".dist-info/" not in path and not path.endswith(COMPILED)


def _digest_as_recorded(path: str) -> str:
    """The digest of a file's content as `RECORD` has it; empty where it cannot be read."""
    try:
        with open_plain(Path(path)) as file:
            digest = hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return ""
    return f"sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def _files_below(top: str, module: str) -> Iterator[tuple[str, str]]:
    """The files of a module, which may be one file, with their digests."""
    if os.path.isfile(top):
        yield module, _digest_as_recorded(top)
    for folder, inner, names in os.walk(top):
        inner[:] = [one for one in inner if not one.startswith(".")]
        for file in names:
            if not file.endswith(COMPILED):
                path = os.path.join(folder, file)
                yield f"{module}/{os.path.relpath(path, top)}", _digest_as_recorded(path)


def _changed_files(package: Distribution, sizes: Mapping[str, str]) -> Iterator[Seen]:
    """Files that are not as they were installed: of another size, or changed after `RECORD`, which is written last."""
    root = str(package.locate_file(""))
    record = next((path for path in sizes if path.endswith(".dist-info/RECORD")), None)
    if record is None:
        return
    installed = _look_at(root, record)[2]
    for path, expected in sizes.items():
        if path == record or path.endswith(COMPILED):
            continue
        _, size, changed = seen = _look_at(root, path)
        if changed > installed or str(size) != (expected or str(size)):
            yield seen


def _files_elsewhere(package: Distribution, sizes: Mapping[str, str]) -> Iterator[Seen]:
    """The files of those of its modules that Python imports from another folder."""
    for _, imported in _modules_elsewhere(package, sizes):
        for folder, _, names in os.walk(imported):
            yield from (_look_at(folder, name) for name in sorted(names) if not name.endswith(COMPILED))


def _modules_elsewhere(package: Distribution, sizes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Its modules that Python imports from another folder, as PYTHONPATH may say, with that folder."""
    root = str(package.locate_file(""))
    for module in _modules(sizes):
        imported = _folder(module)
        if imported is not None and os.path.realpath(imported) != os.path.realpath(os.path.join(root, *module)):
            yield "/".join(module), imported


def _modules(sizes: Mapping[str, str]) -> set[tuple[str, ...]]:
    """The packages of Python that it installs, by their names: `tvm`, and `iree.compiler` where `iree` is shared."""
    folders = {tuple(path.split("/")[:-1]) for path in sizes if path.endswith("/" + INIT)}
    return {path for path in folders if len(path) == 1 or (len(path) == 2 and path[:1] not in folders)}


def _folder(module: tuple[str, ...]) -> str | None:
    """The folder from which Python imports a module; None where it does from none."""
    search, spec = None, None
    for depth in range(len(module)):
        spec = PathFinder.find_spec(".".join(module[: depth + 1]), search)
        if spec is None:
            return None
        search = list(spec.submodule_search_locations or ())
    return os.path.dirname(spec.origin) if spec is not None and spec.origin else None


def _look_at(folder: str, name: str) -> Seen:
    path = os.path.join(folder, name)
    try:
        stat = os.stat(path)
    except OSError:
        return path, -1, -1
    return path, stat.st_size, stat.st_mtime_ns
