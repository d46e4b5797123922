"""A program is in the cache as a whole or not at all; one whose description is damaged is built again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rnnbench.backends.base import Artifact
from rnnbench.backends.shared import build_cache
from rnnbench.backends.shared.build_cache import load_or_build, program_folder

ARTIFACT = Artifact(
    source_digest="1" * 64,
    digest="0" * 64,
    nbytes=8,
    operations={},
    lowered="looped 4",
    origin="authored",
    math="exact",
)


class Builder:
    def __init__(self):
        self.builds = 0

    def __call__(self, folder):
        self.builds += 1
        (folder / "program.bin").write_text(f"build {self.builds}")
        return ARTIFACT


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[:9]),
        lambda file: file.unlink(),
    ],
    ids=["empty", "torn", "gone"],
)
def test_a_damaged_description_is_a_new_build_that_takes_its_place(tmp_path, damage):
    folder, build = tmp_path / "program", Builder()
    assert not load_or_build(folder, build).cached
    assert load_or_build(folder, build).cached
    damage(folder / "artifact.json")
    again = load_or_build(folder, build)
    assert (again.cached, again.artifact, build.builds) == (False, ARTIFACT, 2)
    assert (folder / "program.bin").read_text() == "build 2"
    assert load_or_build(folder, build).cached


def test_a_program_that_another_process_has_just_built_stays(tmp_path, monkeypatch):
    """The folder appears after this process has seen that there is none."""
    folder, other, build = tmp_path / "program", Builder(), Builder()
    read_cached = build_cache.read_cached

    def read_too_early(path, read):
        monkeypatch.setattr(build_cache, "read_cached", read_cached)
        seen = read_cached(path, read)
        load_or_build(folder, other)
        (folder / "loaded by the other").touch()
        return seen

    monkeypatch.setattr(build_cache, "read_cached", read_too_early)
    assert load_or_build(folder, build).artifact == ARTIFACT
    assert (folder / "loaded by the other").exists()


def test_programs_that_other_versions_made_have_folders_of_their_own(tmp_path):
    request = SimpleNamespace(facts={"route": "onnx", "batch": 1})
    other = SimpleNamespace(facts={"route": "onnx", "batch": 2})
    asked = ((request, "1.0"), (request, "1.1"), (other, "1.0"), (request, "1.0"))
    one, newer, larger, again = (program_folder(of, tmp_path, {"runtime": version}) for of, version in asked)
    assert one == again
    assert len({one, newer, larger}) == 3
