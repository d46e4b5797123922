"""The picture of operations by stage: its bars are the counts, and the same counts give the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rnnbench.reports import draw_operations
from rnnbench.reports.operations_by_stage import REST, colours_of_kinds, counts_by_kind

STAGES = [("given", {"linalg.matmul": 1, "arith.addf": 3}), ("kernels", {"memref.load": 2, "$a_{": 1})]


def test_operations_of_a_dialect_are_one_kind_and_rare_kinds_share_a_colour() -> None:
    many = [("llvm", {f"kind{number}": 30 - number for number in range(30)})]
    colours = colours_of_kinds({"one": many})
    assert list(colours)[:2] == ["kind0", "kind1"]
    assert list(colours)[-1] == REST
    assert sum(counts_by_kind(dict(many[0][1]), colours).values()) == sum(many[0][1].values())
    assert counts_by_kind(STAGES[0][1], colours_of_kinds({"one": STAGES})) == {"linalg": 1, "arith": 3}


def test_the_same_counts_give_the_same_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    first, second = (draw_operations({"a $name$": STAGES}, tmp_path / name) for name in ("first.svg", "second.svg"))
    assert first.read_bytes() == second.read_bytes()
    for total in ("4", "3"):
        assert f"<!-- {total} -->" in first.read_text()


def test_a_bar_that_has_room_has_the_name_of_its_kind(tmp_path: Path) -> None:
    """Colours alone do not tell it to everybody."""
    pytest.importorskip("matplotlib")
    stages = [("given", {"linalg.matmul": 60, "arith.addf": 40, "tensor.empty": 1})]
    drawn = draw_operations({"one": stages}, tmp_path / "drawn.svg").read_text()
    names = {name: drawn.count(f"<!-- {name} -->") for name in ("linalg", "arith", "tensor")}
    assert names == {"linalg": 2, "arith": 2, "tensor": 1}, "in its bar and in the legend"
