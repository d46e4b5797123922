"""How an explanation is told in a terminal, of facts that no program has."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from harness_trials import make_trial
from rich.console import Console

from rnnbench.explain import ExplainError, explain, explain_trial, print_explained
from rnnbench.explain.explained import ArrayFacts, CallFacts, Explained, StageFacts
from rnnbench.plan import examine
from rnnbench.results import Artifact
from rnnbench.stages import Examined
from rnnbench.worker import START_LIMIT_S

WIDTH = 60
STATE = (ArrayFacts("h", "float32", (1, 4)),)
ARTIFACT = Artifact(source_digest="", operations={}, lowered="looped 1", origin="authored", math="exact")
CALLS = CallFacts(STATE, STATE, STATE, moved=True, cleared=True, repeated=True)


@pytest.fixture
def examined() -> Examined:
    return examine(make_trial())


def shown(examined: Examined, *stages: StageFacts, calls: CallFacts = CALLS, width: int = WIDTH) -> str:
    """What is printed of these stages and calls, without the breaks of lines."""
    console = Console(file=io.StringIO(), width=width)
    print_explained(examined, Explained(ARTIFACT, (), "", stages, calls), Path("out"), console)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    return text


def words(text: str) -> str:
    return " ".join(text.split())


def with_strategy(examined: Examined, **changes: object) -> Examined:
    trial = examined.trial
    return replace(examined, trial=replace(trial, strategy=replace(trial.strategy, **changes)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "the first call changed the state; after `reset` it was all zeros; then that call gave the same bits as"),
        ({"moved": False}, "the first call did not change the state"),
        ({"cleared": False}, "after `reset` it was not zero"),
        ({"repeated": False}, "then that call gave another output than"),
        ({"state": ()}, "two calls were made with another x between them"),
    ],
)
def test_what_the_calls_did_is_said(examined: Examined, changes: dict[str, object], said: str) -> None:
    assert said in words(shown(examined, calls=replace(CALLS, **changes)))


@pytest.mark.parametrize("kinds", [3, 4])
def test_of_many_kinds_of_operations_the_most_frequent_are_shown(examined: Examined, kinds: int) -> None:
    operations = tuple((f"op{number}", 9 - number) for number in range(kinds))
    text = words(shown(examined, StageFacts("s", "", "f", 1, operations), width=200))
    assert ("op0 9, op1 8, op2 7, …" in text) == (kinds > 3)
    assert "op0 9, op1 8, op2 7" in text


def test_the_sources_of_operations_are_listed(examined: Examined) -> None:
    text = words(shown(examined, StageFacts("linalg", "", sources=(("cell.py:7", 1_200), ("cell.py:9", 3)))))
    assert "linalg by source: cell.py:7 1,200, cell.py:9 3" in text


@pytest.mark.parametrize("length", [WIDTH - 2, WIDTH - 1])
def test_a_line_that_is_wider_than_the_terminal_is_cut(examined: Examined, length: int) -> None:
    line = "x" * (length - 1) + "y"
    text = shown(examined, StageFacts("s", "a stage", "f", head=(line,)))
    assert (line in text) == (length == WIDTH - 2)
    assert ("x…" in text) == (length > WIDTH - 2)


@pytest.mark.parametrize(("launch", "is_said"), [("stream", False), ("graph", True)])
def test_a_graph_is_said_to_replay(examined: Examined, launch: str, is_said: bool) -> None:
    assert ("a call replays, as one," in words(shown(with_strategy(examined, launch=launch)))) == is_said


@pytest.mark.parametrize("state", ["none", "stateful"])
def test_without_a_state_there_is_no_rest_of_a_call(examined: Examined, state: str) -> None:
    text = words(shown(with_strategy(examined, state=state, chunk=5)))
    assert "12 steps in 2 calls of 5 steps" in text
    assert ("and 2 calls of a program of one step" in text) == (state == "stateful")


def test_stages_without_operations_are_in_no_picture() -> None:
    stages = (StageFacts("text", "", "f"), StageFacts("kernels", "", "g", operations=(("add", 2),)))
    explained = Explained(ARTIFACT, (), "", stages, CALLS)
    assert explained.operations_by_stage == [("kernels", {"add": 2})]


def test_a_trial_is_explained_within_its_limits(
    examined: Examined, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limits: list[object] = []

    class Worker:
        def __init__(self, *_: object) -> None:
            pass

        def ready(self, *given: object) -> None:
            limits.extend(given)

        def close(self) -> None:
            pass

    monkeypatch.setattr(explain, "WorkerProcess", Worker)
    explain_trial(examined, tmp_path, 3)
    of_trial = examined.trial.limits
    assert limits == [START_LIMIT_S + 2 * of_trial.build, of_trial.memory], "it is built as it runs, and once more"


def test_a_trial_that_is_not_supported_has_its_reason(tmp_path: Path) -> None:
    with pytest.raises(ExplainError, match="the fake has no RNN operator") as refused:
        explain_trial(examine(make_trial(time="fused")), tmp_path / "out", 3)
    assert refused.value.outcome == "unsupported"
    assert not (tmp_path / "out").exists()
