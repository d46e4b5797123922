"""What a worker tells of a stage: text from compilers, which may be anything, made safe and short."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from rnnbench.backends import IrStage, Unreadable
from rnnbench.explain import worker
from rnnbench.explain.explained import StageFacts


def told(stage: object, folder: Path, lines: int = 3) -> StageFacts:
    (facts,) = worker._told([stage], folder, lines)
    return facts


def test_text_of_a_compiler_commands_no_terminal_and_names_no_file_elsewhere(tmp_path: Path) -> None:
    stage = IrStage("../../\x1b[2J", "\x1b]0;title\x07 meaning", "a\x1b[31m\n\n\ud800b\n", {"\x1b[2Jadd": 2}, "t\nxt")
    facts = told(stage, tmp_path)
    (file,) = tmp_path.iterdir()
    assert file.name == facts.file
    assert file.read_text() == "a\x1b[31m\n\n\\ud800b\n"
    received = TypeAdapter(StageFacts).validate_python(TypeAdapter(StageFacts).dump_python(facts))
    assert "\x1b" not in f"{received}"
    assert received.head == ("a", "\\ud800b")


def test_a_huge_text_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LONGEST_TEXT", 100)
    facts = told(IrStage("input", "", "x" * 1000 + "\n" + "y\n" * 50), tmp_path)
    assert (tmp_path / facts.file).read_text().endswith("… 1001 more characters were not written\n")
    assert len(facts.head) == 3
    assert len(facts.head[0]) == worker.LONGEST_LINE


def test_a_head_begins_where_the_stage_says(tmp_path: Path) -> None:
    text = "module {\n  func @reset\n  func @step {\n    add\n  }\n}"
    assert told(IrStage("input", "", text, begins_at="@step"), tmp_path).head == ("  func @step {", "    add", "  }")
    assert told(IrStage("input", "", text, begins_at="@absent"), tmp_path).head[0] == "module {"
    assert told(IrStage("input", "", "", begins_at="@step"), tmp_path).head == ()


def test_many_kinds_of_operations_are_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MOST_KINDS", 2)
    facts = told(IrStage("input", "", "", {"a": 1, "b": 5, "c": 2, "scf.for": 2}), tmp_path)
    assert facts.operations == (("b", 5), ("c", 2), ("others", 3))
    assert facts.total == 10
    assert facts.loops == 2


def test_a_stage_without_text_has_its_reason_and_no_file(tmp_path: Path) -> None:
    assert told(Unreadable("kernels", "compiled"), tmp_path) == StageFacts("kernels", "", unreadable="compiled")
    assert not list(tmp_path.iterdir())


def test_what_is_no_stage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="str instead of IrStage or Unreadable"):
        told("text", tmp_path)
