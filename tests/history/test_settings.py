"""`settings.yaml` of a history: what it may hold, and what is said of a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnbench.history import read_settings
from rnnbench.yaml_files import FileError


@pytest.mark.parametrize(
    ("text", "anchors"),
    [(None, ()), ("anchors: []\n", ()), ("anchors: [numpy:eager]\n", ("numpy:eager",))],
)
def test_the_settings_of_a_file(tmp_path: Path, text: str | None, anchors: tuple[str, ...]) -> None:
    if text is not None:
        (tmp_path / "settings.yaml").write_text(text)
    assert read_settings(tmp_path).anchors == anchors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("anchor: [numpy:eager]\n", "settings.yaml:1:1: unknown key 'anchor'; did you mean 'anchors'?"),
        ("\nanchors: numpy:eager\n", "settings.yaml:2:10: anchors: expected a list of targets, such as [numpy:eager]"),
        ("anchors: [numpy:eager, 3]\n", "settings.yaml:1:24: anchors[1]: expected a target such as numpy:eager, got 3"),
        ("anchors: [numpy]\n", "settings.yaml:1:11: anchors[0]: expected a target such as numpy:eager, got the text"),
        ("anchors: [\n", "settings.yaml:2:1: not YAML"),
        ("# anchors: [numpy:eager]\n", "expected one YAML document, got an empty file"),
        ("- numpy:eager\n", "settings.yaml:1:1: the file: expected a mapping"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "settings.yaml").write_text(text)
    with pytest.raises(FileError) as told:
        read_settings(tmp_path)
    assert message in str(told.value)
