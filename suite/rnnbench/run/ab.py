"""`rnnbench ab` without its options: trials are built and checked on both sides, and sampled in pairs of processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

from rich.console import Console

from rnnbench.cases.trial import Trial
from rnnbench.measure.latency import save_samples
from rnnbench.measure.machine import MachineWatch
from rnnbench.results.compare import Comparison, LatencyChange, compare_runs
from rnnbench.results.store import Store, append_record, read_run, write_info
from rnnbench.run.account import Account
from rnnbench.run.compose import compose
from rnnbench.run.environments import Side, differences
from rnnbench.run.execute import Observer, comparable
from rnnbench.run.paired import SIDES, Match, cost, decide, note_anchors, sample_pair, split_matches
from rnnbench.run.plan import begin, end
from rnnbench.run.prepare import Findings, prepare, start_worker
from rnnbench.run.process import Workplace
from rnnbench.run.progress import ProgressBar

VERDICTS = "verdicts.json"
"""The file in the run of side b that holds what was judged, and the ratio that every pair of processes showed."""

NO_ROOF = "`rnnbench ab` compares two sides and probes no roof; `rnnbench run` does"


@dataclass(frozen=True)
class SideBySide:
    """Two environments and the run of each."""

    sides: tuple[Side, Side]
    runs: tuple[Path, Path]

    @classmethod
    def begin(cls, trials: Sequence[Trial], sides: tuple[Side, Side], store: Store) -> SideBySide:
        runs = tuple(_begun(trials, side, name, store) for name, side in zip(SIDES, sides, strict=True))
        return cls(sides, (runs[0], runs[1]))

    @property
    def differences(self) -> list[str]:
        return differences(self.sides[0].answer, self.sides[1].answer)

    def describe(self) -> list[str]:
        """What A and B are and in what they differ, a sentence each."""
        sides = [f"{name} is {side.text}." for name, side in zip("AB", self.sides, strict=True)]
        return [*sides, f"B has other versions than A: {', '.join(self.differences) or 'none, nothing differs'}."]


def judge_sides(
    both: SideBySide, trials: Sequence[Trial], budget: float, smallest: float, console: Console
) -> Comparison:
    """Build, check, sample and judge the trials; their records and the verdicts are left in the runs.

    `budget` is wall seconds a trial. An interrupt goes through once every worker is gone.
    """
    account, watch = Account(), MachineWatch()
    workplaces = Workplace.of_run(both.runs[0]), Workplace.of_run(both.runs[1])
    matches = [Match(a, b) for a, b in zip(*(side.findings(trials) for side in both.sides), strict=True)]
    for match, side in product(matches, range(2)):
        match.sides[side].no_roof = NO_ROOF
    seed = read_run(both.runs[1]).info.seed
    with ProgressBar(console, 2 * len(matches)) as progress:
        for group in _groups(matches):
            for match, side in product(group, range(2)):
                _prepare(match.sides[side], workplaces[side], account, progress)
            if whole := [match for match in group if match.whole]:
                parts = list(split_matches(whole))
                for part in parts:

                    def sample(under_way: Sequence[Match], number: int) -> None:
                        sample_pair(under_way, workplaces, account, progress.stage, f"{seed}/{number}")

                    decide(part.trials, budget, smallest, sample)
                note_anchors(parts)
            for match, side in product(group, range(2)):
                _journal(match.sides[side], both.runs[side], progress)
    for run, workplace in zip(both.runs, workplaces, strict=True):
        end(run, account.seconds(), watch.conditions())
        workplace.clear()
    _write_verdicts(both, matches)
    return _comparison(both, matches, smallest)


def _begun(trials: Sequence[Trial], side: Side, name: str, store: Store) -> Path:
    """A run whose versions are what that side has."""
    run = begin(trials, store, suffix=f"-{name}")
    info = read_run(run).info
    answers = zip(trials, side.answer.trials, strict=True)
    versions = {trial.target.backend: dict(known.probe.versions) for trial, known in answers}
    machine = {**info.machine, "python": side.answer.python}
    write_info(run, info.model_copy(update={"versions": versions, "machine": machine}))
    return run


def _groups(matches: Sequence[Match]) -> list[list[Match]]:
    """Matches that are sampled in turn: the same case and sizes; small chunks first, as in a run."""
    groups: dict[object, list[Match]] = {}
    for match in matches:
        groups.setdefault(comparable(match.a.trial), []).append(match)
    return [sorted(group, key=lambda match: match.a.trial.strategy.chunk) for group in groups.values()]


def _prepare(findings: Findings, workplace: Workplace, account: Account, observer: Observer) -> None:
    if findings.failure is None:
        worker = start_worker(findings, workplace, f"{findings.trial.digest}.log")
        for _ in prepare(findings, worker, workplace, account, observer.stage):
            continue


def _journal(findings: Findings, run: Path, observer: Observer) -> None:
    if findings.is_measured():
        for path, blocks in findings.blocks.items():
            save_samples(run / "samples" / f"{findings.trial.digest}.{path}.npy", blocks)
    record = compose(findings)
    append_record(run, record)
    observer.finished(record)


def _write_verdicts(both: SideBySide, matches: Sequence[Match]) -> None:
    content = {
        "a": {"environment": both.sides[0].text, "run": both.runs[0].name},
        "b": {"environment": both.sides[1].text, "run": both.runs[1].name},
        "differences": both.differences,
        "verdicts": [
            {
                "trial": match.a.trial.id,
                "path": path,
                **asdict(judged),
                "ratios": match.ratios[path],
                "seconds": match.seconds,
            }
            for match in matches
            for path, judged in match.judged.items()
        ],
    }
    (both.runs[1] / VERDICTS).write_text(json.dumps(content, indent=2) + "\n")


def _comparison(both: SideBySide, matches: Sequence[Match], smallest: float) -> Comparison:
    base, new = (read_run(run) for run in both.runs)
    changes = []
    for match in matches:
        for path, judged in match.judged.items():
            trial = match.a.trial.id
            old, young = (getattr(run.by_trial[trial].timing, path).median for run in (base, new))
            changes.append(LatencyChange(trial, path, old, young, judged, match.seconds))
    compared = compare_runs(base, new, smallest)
    # That versions differ is what was asked for, and is said in `about`.
    warnings = tuple(warning for warning in compared.warnings if not warning.startswith("versions "))
    about = (*both.describe(), cost(matches))
    return replace(compared, latencies=tuple(changes), paired=True, warnings=warnings, about=about)
