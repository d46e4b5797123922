"""A small sound case, and what loading a changed one says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from rnnbench.cases import Case, CaseError, load_case

BASE = """\
schema: 1
name: tiny
model: {cell: lstm, input: 8, hidden: [16, 32]}
workload: {steps: 10, chunk: [1, 4]}
strategy: {time: [looped, unrolled], state: stitched}
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Case]:
    """load(replaced, by): BASE with one text in it replaced, or with `by` after it where nothing is."""

    def loaded(replaced: str = "", by: str = "", overrides: Sequence[str] = (), **options: int) -> Case:
        assert replaced in BASE
        path = tmp_path / "case.yaml"
        path.write_text(BASE.replace(replaced, by) if replaced else BASE + by, encoding="utf-8")
        return load_case(path, overrides, **options)

    return loaded


@pytest.fixture
def refusal(load: Callable[..., Case], tmp_path: Path) -> Callable[..., list[str]]:
    """What load(…) is refused with: a text for each problem, without the folder."""

    def told(*args: object, **options: object) -> list[str]:
        with pytest.raises(CaseError) as caught:
            load(*args, **options)
        assert all(str(problem) in str(caught.value) for problem in caught.value.problems)
        return [str(problem).replace(f"{tmp_path}/", "") for problem in caught.value.problems]

    return told
