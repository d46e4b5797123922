"""The worker of an explanation: it builds a trial, writes its stages into a folder, and makes the first calls."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from rnnbench.backends import (
    Arrays,
    IrStage,
    Program,
    ProgramStore,
    Unreadable,
    check_program,
    explanation_for,
    find,
    request_of,
)
from rnnbench.cases import Trial
from rnnbench.conformance import ReferenceTrajectories
from rnnbench.disk import write_text
from rnnbench.explain.explained import ArrayFacts, CallFacts, Explained, StageFacts
from rnnbench.outside_text import safe_text
from rnnbench.results import file_name, writable
from rnnbench.worker import Command, run_worker

LONGEST_TEXT = 32 << 20
"""Characters of a stage that are written to its file."""
LONGEST_LINE = 160
"""Characters of a line that is shown."""
MOST_KINDS = 400
"""Kinds of operations of a stage that are named. The rest is one more kind, `others`."""
MOST_STAGES = 60
"""Stages that are written. An adapter of another distribution may give them without end."""


@dataclass(frozen=True)
class ExplainTrial(Command[Explained]):
    """Build the trial's program, and find out what it is made of."""

    trial: Trial
    work: Path
    """A folder for what is built, which is removed afterwards."""
    folder: Path
    """The folder that gets the stages, a file each."""
    affinity: tuple[int, ...]
    lines: int
    """Lines of each stage that are shown."""


def explain(command: ExplainTrial) -> Explained:
    """Build the program on the command's cores, write its stages, and make its first calls."""
    trial, store = command.trial, ProgramStore(command.work / "artifacts")
    reference = ReferenceTrajectories(trial, command.work)
    request = request_of(trial, reference.weights)
    backend = find(trial.target.backend)
    backend.load()
    os.sched_setaffinity(0, command.affinity)
    with closing(backend.build(request, store.programs)) as program:
        check_program(backend.name, program, request, store.programs)
        explanation = explanation_for(backend.name, program, request, command.work / "stages")
        stages = tuple(write_stages(explanation.stages, command.folder, command.lines))
        functions = tuple(safe_text(function) for function in explanation.functions)
        return Explained(
            store.described(program, request), functions, explanation.state, stages, first_calls(program, reference)
        )


def write_stages(stages: Iterable[object], folder: Path, lines: int) -> Iterator[StageFacts]:
    """The facts of each stage, whose text is written to a file."""
    for number, stage in enumerate(islice(stages, MOST_STAGES), 1):
        if isinstance(stage, Unreadable):
            yield StageFacts(stage.name, "", unreadable=stage.reason)
            continue
        if not isinstance(stage, IrStage):
            raise TypeError(f"{type(stage).__name__} instead of IrStage or Unreadable")
        name = file_name(f"{number:02d}-{stage.name}.{stage.suffix}")
        text = writable(stage.text)
        write_text(folder / name, _cut(text))
        yield StageFacts(
            stage.name,
            stage.meaning,
            file=name,
            lines=text.count("\n") + (not text.endswith("\n")),
            operations=_bounded(stage.operations),
            sources=_bounded(stage.sources),
            loops=stage.loops,
            head=tuple(_head(text, stage.begins_at, lines)),
        )


def _cut(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}\n… {len(text) - LONGEST_TEXT} more characters were not written\n"


def _bounded(counts: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """The largest counts first, and what is beyond MOST_KINDS as one."""
    kinds = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(count for _, count in kinds[MOST_KINDS:])
    return (*kinds[:MOST_KINDS], *([("others", rest)] if rest else []))


def _head(text: str, begins_at: str, lines: int) -> Iterator[str]:
    """The first lines from the one with `begins_at` on, without those that are empty."""
    start = text.rfind("\n", 0, max(0, text.find(begins_at))) + 1 if begins_at else 0
    shown = 0
    while shown < lines and start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end].rstrip()
        if line:
            yield line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
            shown += 1
        start = end + 1


def first_calls(program: Program, reference: ReferenceTrajectories) -> CallFacts:
    """Three calls: the first, one that continues, and the first again after a reset."""
    first, second = reference.ring[:2]
    session = program.open()
    with closing(session):
        y = session.step(first)
        state = session.get_state()
        other = session.step(second)
        session.reset()
        cleared = all(not array.any() for array in session.get_state().values())
        again = session.step(first)
    moved = any(array.any() for array in state.values()) if state else not np.array_equal(y["y"], other["y"])
    repeated = all(np.array_equal(y[name], again[name], equal_nan=True) for name in y)
    return CallFacts(_arrays(first), _arrays(y), _arrays(state), moved, cleared, repeated)


def _arrays(arrays: Arrays) -> tuple[ArrayFacts, ...]:
    return tuple(ArrayFacts(name, str(array.dtype), array.shape) for name, array in arrays.items())


def main() -> None:
    run_worker({ExplainTrial: explain})


if __name__ == "__main__":
    main()
