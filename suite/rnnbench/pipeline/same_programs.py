"""Trials of the same program. If program and call plan are the same to the byte, and a short sampling agrees, one
measurement serves both."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from statistics import median

from rnnbench.pipeline.build_and_check import TrialWorker
from rnnbench.results import Finding, FindingKind
from rnnbench.stages import Checked
from rnnbench.worker import Compare, WorkerError, worker_key

LARGEST_RATIO = 1.5
"""How much slower one of two equal programs may be. Their blocks of 2 ms are taken in turn. The layout of memory and
other processes moved medians of six such blocks by less than 1.2 on a busy machine. Beyond this ratio, two programs
agree unless every block of the one is slower than every block of the other: one disturbed block decides nothing."""


class SamePrograms:
    """The trials of a group that share the samples of an earlier trial: `same_as` has that one, by trial."""

    def __init__(self) -> None:
        self.same_as: dict[str, Checked] = {}
        self._first: dict[Hashable, Checked] = {}

    def compare(self, checked: Checked, worker: TrialWorker) -> Checked:
        """Look for an earlier trial of the same program, and sample both in the worker that has checked this one."""
        artifact, trial = checked.artifact, checked.trial
        if checked.failure is not None or artifact is None:
            return checked
        strategy = trial.strategy
        plan = (trial.target, artifact.digest, strategy.state, strategy.chunk, strategy.launch)
        first = self._first.setdefault((*plan, worker_key(checked.examined)), checked)
        if first is checked:
            return checked
        difference = self._apart(first, checked, worker)
        if not difference:
            self.same_as[trial.id] = first
            return checked
        return replace(checked, findings=(*checked.findings, *worker.take_findings(), difference))

    def _apart(self, first: Checked, second: Checked, worker: TrialWorker) -> Finding | None:
        """Why the two are sampled apart; None if they agree."""
        try:
            blocks = worker.ask(Compare(first.trial, second.trial), second.trial.limits.trial)
        except WorkerError as error:
            return _finding(first, f"a short sampling of both failed: {error.reason}")
        if agree(blocks.first, blocks.second):
            return None
        seconds = f"{median(blocks.first):.3g} s and {median(blocks.second):.3g} s a call"
        return _finding(first, f"bound calls of the two took {seconds}, in turn")


def agree(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether the medians of blocks can be those of one program."""
    slower, faster = sorted((first, second), key=median, reverse=True)
    return median(slower) <= LARGEST_RATIO * median(faster) or min(slower) <= max(faster)


def _finding(first: Checked, why: str) -> Finding:
    detail = f"its program has the bytes of {first.trial.id}, and it was sampled apart: {why}"
    return Finding(kind=FindingKind.ARTIFACT, detail=detail)
