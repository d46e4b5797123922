"""What a worker tells of a stage: text from compilers, which may be anything, made safe and short."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from harness_trials import make_trial
from pydantic import TypeAdapter

from rnnbench.backends import IrStage, Unreadable
from rnnbench.explain import worker
from rnnbench.explain.explained import StageFacts


def told(stage: object, folder: Path, lines: int = 3) -> StageFacts:
    (facts,) = worker.write_stages([stage], folder, lines)
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


@pytest.mark.parametrize("text", ["a\nb\n", "a\nb"])
def test_a_last_line_counts_with_and_without_its_end(tmp_path: Path, text: str) -> None:
    assert told(IrStage("input", "", text), tmp_path).lines == 2


@pytest.mark.parametrize("stage", [IrStage("a", "", ""), Unreadable("a", "Nobody has it.")], ids=["text", "no text"])
def test_of_many_stages_the_first_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: object) -> None:
    monkeypatch.setattr(worker, "MOST_STAGES", 2)
    assert len(list(worker.write_stages([stage] * 5, tmp_path, 3))) == 2


class Session:
    """Gives these outputs, and after its first call and after a reset these states."""

    def __init__(self, outputs: list[float], moved: tuple[float, float], cleared: tuple[float, float]) -> None:
        self._outputs, self._state, self._cleared = iter(outputs), moved, cleared

    def step(self, x: object) -> dict[str, np.ndarray]:
        return {"y": np.array([next(self._outputs)])}

    def get_state(self) -> dict[str, np.ndarray]:
        return {name: np.array([value]) for name, value in zip("hc", self._state, strict=True)}

    def reset(self) -> None:
        self._state = self._cleared

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("session", "seen"),
    [
        (Session([1.0, 2.0, 1.0], (0.5, 0.5), (0.0, 0.0)), (True, True, True)),
        (Session([1.0, 2.0, 2.0], (0.0, 0.0), (0.0, 0.0)), (False, True, False)),
        (Session([np.nan, 2.0, np.nan], (0.5, 0.0), (0.0, 0.1)), (True, False, True)),
    ],
    ids=["sound", "without a state that moves", "one array of two"],
)
def test_what_the_first_calls_do_is_told(session: Session, seen: tuple[bool, bool, bool]) -> None:
    ring = [{"x": np.zeros((1, 2), np.float32)}] * 2
    calls = worker.first_calls(SimpleNamespace(open=lambda: session), SimpleNamespace(ring=ring))
    assert (calls.moved, calls.cleared, calls.repeated) == seen
    assert [(array.name, array.dtype, array.shape) for array in calls.passed] == [("x", "float32", (1, 2))]


def test_a_trial_is_explained_on_the_cores_that_the_command_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RNNBENCH_FAKE", "honest")
    held: list[tuple[int, ...]] = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, cores: held.append(cores))
    worker.explain(worker.ExplainTrial(make_trial(), tmp_path / "work", tmp_path, (0,), 3))
    assert held == [(0,)]
