"""What the modules of a package declare is found by its name, and no other module is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnbench.lazy import declared


def test_modules_that_declare_nothing_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "shapes"
    (package / "square").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "circle.py").write_text("KIND: str = 'circle'\n")
    (package / "square" / "__init__.py").write_text("KIND = 'square'\n")
    (package / "helper.py").write_text("raise AssertionError('imported')\nKINDS = ()\nif KIND == 1:\n    pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert list(declared("shapes", "KIND")) == ["circle", "square"]
