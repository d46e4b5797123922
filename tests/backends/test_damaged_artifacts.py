"""A file of a cached artifact that is not what the build left is seen before anything loads it, on every backend."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from rnnbench.backends.program_store import ProgramStore


def _flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped": _flip,
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "empty": lambda file: file.write_bytes(b""),
    "deleted": Path.unlink,
    "exchanged": lambda file: file.write_bytes(b"another program's " + file.read_bytes()),
}


def test_every_damaged_file_of_an_artifact_is_seen_and_all_of_it_removed(default_program, tmp_path: Path) -> None:
    store = ProgramStore(tmp_path)
    shutil.copytree(default_program.cache, store.programs)
    store.note("trial", store.changed_since({}))
    (listed,) = (tmp_path / "lists").iterdir()
    noted = listed.read_bytes()
    whole = {path: path.read_bytes() for path in store.programs.rglob("*") if path.is_file()}
    assert len(whole) > 1
    for file in (path for path, content in whole.items() if content):
        for name, damage in DAMAGES.items():
            damage(file)
            assert ProgramStore(tmp_path).mend("trial") == (str(file.relative_to(store.programs)),), name
            # TensorFlow's saved models have a folder without files, which may stay.
            assert not any(path.is_file() for path in store.programs.rglob("*")), name
            for path, content in whole.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            listed.write_bytes(noted)
    assert ProgramStore(tmp_path).mend("trial") == ()
