"""A file of a cached artifact that is not what the build left is seen before anything loads it, on every backend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rnnbench.backends import registry
from rnnbench.backends.base import Request
from rnnbench.backends.program_store import ProgramStore
from rnnbench.cases.trial import Precision, Strategy, Target
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_weights

LSTM = Model(cell="lstm", input=5, hidden=17)


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


def test_a_damaged_file_of_an_artifact_is_seen_and_the_artifact_is_built_again(
    default_target: Target, tmp_path: Path
) -> None:
    backend = registry.find(default_target.backend)
    backend.load()
    strategy, float32 = Strategy("looped", "stitched", 4), Precision.of("float32")
    request = Request(default_target.route, LSTM, draw_weights(LSTM, 1), strategy, 1, float32)
    store = ProgramStore(tmp_path)

    def build() -> bool:
        before = store.look()
        program = backend.build(request, store.programs)
        store.note("trial", store.changed_since(before), (*program.files.program, *program.files.identity))
        program.close()
        return program.cached

    assert not build()
    whole = {path: path.read_bytes() for path in sorted(store.programs.rglob("*")) if path.is_file()}
    (listed,) = (tmp_path / "lists").iterdir()
    content = listed.read_bytes()
    for file, data in whole.items():
        for name, damage in DAMAGES.items():
            if not data:
                continue
            damage(file)
            relative = str(file.relative_to(store.programs))
            assert ProgramStore(tmp_path).mend("trial") == (relative,), name
            assert not any(path.exists() for path in whole), name
            for path, kept in whole.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(kept)
            listed.write_bytes(content)
    assert ProgramStore(tmp_path).mend("trial") == ()
    _flip(next(iter(whole)))
    assert ProgramStore(tmp_path).mend("trial")
    assert not build()
    assert build()
