"""`rnnbench ab`: build and check trials in two environments, and sample pairs of processes until there is a verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rnnbench.cases import Trial
from rnnbench.content_digest import text_with_digest
from rnnbench.disk import write_bytes
from rnnbench.history import VERDICTS_FILE, LatencyVerdict, latency_verdict, slow_calls
from rnnbench.measure import MachineWatch, WallTime
from rnnbench.pipeline.batches import build_and_check_all
from rnnbench.pipeline.build_and_check import not_checked, not_sampled
from rnnbench.pipeline.environments import Side, differences
from rnnbench.pipeline.record import Journal, Observer
from rnnbench.pipeline.run import note_versions, of_one_version
from rnnbench.plan import RunPlan, begin_run, end_run, group_by_workload
from rnnbench.results import Comparison, LatencyChange, Store, compare_runs, not_believed, read_run, write_info
from rnnbench.sampling import NO_ROOF, SIDES, Context, JudgedTrial, PairBudget, judge_trials, verdict_cost
from rnnbench.stages import Checked, Examined
from rnnbench.worker import RunFolders

ExaminedPair = tuple[Examined, Examined]
CheckedPair = tuple[Checked, Checked]


@dataclass(frozen=True)
class SideBySide:
    """Two environments and the run of each."""

    sides: tuple[Side, Side]
    plans: tuple[RunPlan, RunPlan]

    @classmethod
    def begin(cls, trials: Sequence[Trial], sides: tuple[Side, Side], store: Store) -> SideBySide:
        """Begin a run for each side. Raises StoreError."""
        started = datetime.now(UTC)
        a, b = (begin_side(trials, side, name, store, started) for name, side in zip(SIDES, sides, strict=True))
        return cls(sides, (a, b))

    @property
    def runs(self) -> tuple[Path, Path]:
        return self.plans[0].folder, self.plans[1].folder

    @property
    def differences(self) -> list[str]:
        return differences(self.sides[0].facts, self.sides[1].facts)

    def describe(self) -> list[str]:
        """Sentences about A, B and the packages in which they differ."""
        sides = [f"{name} is {side.text}." for name, side in zip("AB", self.sides, strict=True)]
        differ = f"B has other packages than A: {', '.join(self.differences)}."
        return [*sides, differ if self.differences else "B has the packages of A."]


def compare_sides(both: SideBySide, budget: PairBudget, observer: Observer, *, together: bool = False) -> Comparison:
    """Build, check, sample and judge the trials. Writes their records and the verdicts into the two runs.

    Trials of one workload share their pairs of processes. With `together`, all trials share them.

    A KeyboardInterrupt is raised after every worker has ended.
    """
    wall_time, watch = WallTime(), MachineWatch()
    folders = [RunFolders.of_run(run) for run in both.runs]
    a, b = (Context(of_side, wall_time, observer.stage) for of_side in folders)
    journals = [Journal(plan, observer, name) for plan, name in zip(both.plans, "AB", strict=True)]
    examined = list(zip(*(side.examined() for side in both.sides), strict=True))
    judged: list[JudgedTrial] = []
    groups = [examined] if together else group_by_workload(examined, lambda pair: pair[0].trial)
    for group in groups:
        pairs = list(_check_pairs(group, (a, b), journals))
        if pairs:
            of_group = judge_trials(pairs, (a, b), budget, both.plans[1].seed)
            of_group = _of_one_version(of_group, both.sides)
            for trial in of_group:
                for journal, sampled in zip(journals, trial.sides, strict=True):
                    journal.write(sampled)
            judged += map(without_disbelieved, of_group)
    for run in both.runs:
        end_run(run, wall_time.seconds(), watch.conditions())
    _write_verdicts(both, judged)
    for of_side in folders:  # It may take long, and the comparison is whole if it is interrupted.
        of_side.clear()
    return _comparison(both, judged, budget)


def begin_side(
    trials: Sequence[Trial], side: Side, name: str, store: Store, started: datetime | None = None
) -> RunPlan:
    """Begin a run with the versions of this side. Both sides of a comparison have one time in `started`."""
    plan = begin_run(trials, store, side=name, started=started)
    note_versions(plan, side.facts.trials)
    info = read_run(plan.folder).info
    machine = {**info.machine, "python": side.facts.python}
    write_info(plan.folder, info.model_copy(update={"machine": machine}))
    return plan


def _check_pairs(
    group: Sequence[ExaminedPair], contexts: tuple[Context, Context], journals: Sequence[Journal]
) -> Iterator[CheckedPair]:
    """Yield the trials that conform on both sides, on a real device. Write the records of the others at once."""
    to_check = [
        (one, context) for pair in group for one, context in zip(pair, contexts, strict=True) if one.failure is None
    ]
    checked = {id(one.examined): one for one in build_and_check_all(to_check)}
    for pair in group:
        a, b = (checked.get(id(one)) or not_checked(one) for one in pair)
        if a.failure is None and b.failure is None and not any(one.examined.on_software_device for one in (a, b)):
            yield a, b
        else:
            for journal, one in zip(journals, (a, b), strict=True):
                journal.write(replace(not_sampled(one), roof=NO_ROOF))


def _of_one_version(judged: Sequence[JudgedTrial], sides: tuple[Side, Side]) -> list[JudgedTrial]:
    """The trials. One whose package was replaced in its environment while it was sampled has a finding."""
    changed_a, changed_b = (side.changed() for side in sides)
    found = []
    for one in judged:
        a, b = one.sides
        found.append(replace(one, sides=(of_one_version(a, changed_a), of_one_version(b, changed_b))))
    return found


def without_disbelieved(judged: JudgedTrial) -> JudgedTrial:
    """Drop the verdicts of a trial whose figures are not believed."""
    believed = not any(not_believed(side.findings) for side in judged.sides)
    return judged if believed else replace(judged, judgements={})


def _write_verdicts(both: SideBySide, judged: Sequence[JudgedTrial]) -> None:
    content = {
        "a": {"environment": both.sides[0].text, "run": both.runs[0].name},
        "b": {"environment": both.sides[1].text, "run": both.runs[1].name},
        "differences": both.differences,
        "verdicts": [
            {
                "trial": trial.sides[0].trial.id,
                "path": path,
                **asdict(judgement),
                "mean": asdict(trial.means[path]),
                "ratios": trial.ratios[path],
                "scatters": trial.scatters[path],
                "seconds": trial.seconds,
            }
            for trial in judged
            for path, judgement in trial.judgements.items()
        ],
    }
    write_bytes(both.runs[1] / VERDICTS_FILE, text_with_digest(json.dumps(content)), durable=True)


def _comparison(both: SideBySide, judged: Sequence[JudgedTrial], budget: PairBudget) -> Comparison:
    base, new = (read_run(run) for run in both.runs)
    changes = []
    for trial in judged:
        for path, judgement in trial.judgements.items():
            name = trial.sides[0].trial.id
            a, b = (run.by_trial[name].latency(path) for run in (base, new))
            if a is not None and b is not None:
                threshold = budget.smallest_change_of(trial.sides[0].trial)
                changes.append(LatencyChange(name, path, a.median, b.median, judgement, threshold, trial.seconds))
    thresholds = {} if budget.smallest_change is None else {"latency": budget.smallest_change}
    compared = compare_runs(base, new, thresholds)
    # Versions differ on purpose here, and `about` names them.
    of_runs = (warning for warning in compared.warnings if not warning.startswith("versions "))
    warnings = (*of_runs, *slow_calls([verdict for trial in judged for verdict in _latency_verdicts(trial)]))
    about = (*both.describe(), verdict_cost(judged))
    return replace(compared, latencies=tuple(changes), paired=True, warnings=warnings, about=about)


def _latency_verdicts(judged: JudgedTrial) -> Iterator[LatencyVerdict]:
    """As the history has them."""
    for path, judgement in judged.judgements.items():
        yield latency_verdict(judged.sides[0].trial.id, path, asdict(judgement), asdict(judged.means[path]))
