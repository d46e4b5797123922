"""`rnnbench bisect`: find the first bad release between a good and a bad one. Each step judges one release.

A release is skipped if it does not install, fails, or shows neither the good nor the bad behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Literal, Protocol

from rnnbench.cases import Trial
from rnnbench.measure import WallTime
from rnnbench.pipeline.ab import SideBySide, begin_side, compare_sides
from rnnbench.pipeline.batches import build_and_check_all
from rnnbench.pipeline.build_and_check import not_checked, not_sampled
from rnnbench.pipeline.environments import Side, open_side
from rnnbench.pipeline.made_environments import NotNowError, SideError
from rnnbench.pipeline.record import Journal, Observer
from rnnbench.pipeline.releases import Release
from rnnbench.plan import end_run
from rnnbench.reports import change_with_interval
from rnnbench.results import Record, Store, read_run
from rnnbench.sampling import Context, PairBudget
from rnnbench.worker import RunFolders

State = Literal["good", "bad", "skipped"]


@dataclass(frozen=True)
class Step:
    """One judged release."""

    release: Release
    state: State
    reason: str
    """The observed latency or outcome, or why the release was skipped."""
    command: str
    """The command that repeats the step."""


@dataclass(frozen=True)
class Bisection:
    """The result of a bisection."""

    steps: tuple[Step, ...]
    last_good: Release
    suspects: tuple[Release, ...]
    """The first bad release is one of these, the oldest first. If there is only one, it is the first bad release."""


class Judge(Protocol):
    """Judges whether a release is good or bad."""

    def check_ends(self, good: Release, bad: Release) -> tuple[Step, ...]:
        """The steps of both ends. Raises SideError if they do not differ, or if one cannot be used."""

    def judge(self, release: Release) -> Step:
        """The step of a release. Raises NotNowError: the release is not skipped for what this machine lacks now."""


@dataclass(frozen=True)
class Steps:
    """The settings that all steps of a bisection share."""

    trial: Trial
    store: Store
    environments: Path
    observer: Observer
    selected: str
    """The arguments of a command that select the trial."""


def bisect_releases(releases: Sequence[Release], judge: Judge, tell: Callable[[Step], None]) -> Bisection:
    """Bisect the releases; the first is good and the last is bad. Raises SideError if these two do not differ."""
    steps = list(judge.check_ends(releases[0], releases[-1]))
    for step in steps:
        tell(step)
    good, bad = 0, len(releases) - 1
    skipped: set[int] = set()
    while open_ones := [k for k in range(good + 1, bad) if k not in skipped]:
        middle = min(open_ones, key=lambda k: abs(k - (good + bad) / 2))
        step = judge.judge(releases[middle])
        steps.append(step)
        tell(step)
        if step.state == "good":
            good = middle
        elif step.state == "bad":
            bad = middle
        else:
            skipped.add(middle)
    return Bisection(tuple(steps), releases[good], tuple(releases[good + 1 : bad + 1]))


class LatencyJudge:
    """Compares each release with the good one, as `rnnbench ab` does. A release that is SLOWER is bad."""

    def __init__(self, steps: Steps, budget: PairBudget, path: str) -> None:
        self._steps = steps
        self._budget = budget
        self._path = path
        self._good: Release | None = None
        self._side: Side | None = None

    def check_ends(self, good: Release, bad: Release) -> tuple[Step, ...]:
        self._good = good
        self._side = open_side(good.requirements, [self._steps.trial], self._steps.environments)
        of_bad = self.judge(bad)
        if of_bad.state != "bad":
            raise SideError(
                f"{bad.version} is not slower than {good.version}: {of_bad.reason}; give other releases, a smaller "
                f"--threshold or a larger --budget; this repeats it: {of_bad.command}"
            )
        return Step(good, "good", "the others are compared with it", ""), of_bad

    def judge(self, release: Release) -> Step:
        assert self._good is not None, "check_ends comes first"
        assert self._side is not None, "check_ends comes first"
        steps = self._steps
        command = (
            f"rnnbench ab {steps.selected} --a '{self._good.requirements}' --b '{release.requirements}' "
            f"--threshold {self._budget.smallest_change_of(steps.trial):g} --budget {self._budget.seconds:g}s"
        )
        try:
            side = open_side(release.requirements, [steps.trial], steps.environments)
        except NotNowError:
            raise
        except SideError as error:
            return Step(release, "skipped", str(error), command)
        both = SideBySide.begin([steps.trial], (self._side, side), steps.store)
        comparison = compare_sides(both, self._budget, steps.observer)
        change = next((latency for latency in comparison.latencies if latency.path == self._path), None)
        if change is None:
            return Step(release, "skipped", _why_unmeasured(both), command)
        pairs = "" if change.judged.interval else ", of one pair of processes"
        seen = f"{change.verdict}, {change_with_interval(change.ratio, change.judged.interval)}{pairs}"
        states: dict[str, State] = {"SLOWER": "bad", "SAME": "good", "FASTER": "good"}
        return Step(release, states.get(change.verdict, "skipped"), seen, command)


class OutcomeJudge:
    """Builds and checks the trial in each release, without timing. A release with the bad one's outcome is bad.

    A release in which a check was too short that the bad one fails is neither good nor bad.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._states: dict[str, State] = {}
        self._failed_checks: tuple[str, ...] = ()

    def check_ends(self, good: Release, bad: Release) -> tuple[Step, ...]:
        outcomes = []
        for release in (good, bad):
            record, command = self._check(release)
            outcomes.append((release, record, command))
        (_, of_good, _), (_, of_bad, _) = outcomes
        if of_good.outcome == of_bad.outcome:
            raise SideError(
                f"{good.version} and {bad.version} have the same outcome: {_ended_as(of_good)}; give a good and a bad "
                "release that differ"
            )
        self._failed_checks = of_bad.failed_checks
        if of_good.not_answered_again(self._failed_checks):
            raise SideError(f"{good.version} may not be good: {self._ended_as(of_good)}")
        self._states = {of_good.outcome: "good", of_bad.outcome: "bad"}
        return tuple(
            Step(release, self._states[r.outcome], self._ended_as(r), command) for release, r, command in outcomes
        )

    def judge(self, release: Release) -> Step:
        try:
            record, command = self._check(release)
        except NotNowError:
            raise
        except SideError as error:
            return Step(release, "skipped", str(error), "")
        open_checks = record.not_answered_again(self._failed_checks)
        state = "skipped" if open_checks else self._states.get(record.outcome, "skipped")
        return Step(release, state, self._ended_as(record), command)

    def _ended_as(self, record: Record) -> str:
        """The outcome, and the checks that the bad release fails and that had too little time here."""
        if not (open_checks := record.not_answered_again(self._failed_checks)):
            return _ended_as(record)
        return (
            f"{_ended_as(record)}, but these checks did not run or were too short: {', '.join(open_checks)}; give "
            "more time, as in --set limits.trial=1200s"
        )

    def _check(self, release: Release) -> tuple[Record, str]:
        """The trial's record in that release, and the command that repeats it. Raises SideError."""
        steps = self._steps
        side = open_side(release.requirements, [steps.trial], steps.environments)
        plan = begin_side([steps.trial], side, "b", steps.store)
        folders, wall_time = RunFolders.of_run(plan.folder), WallTime()
        (examined,) = side.examined()
        to_check = [(examined, Context(folders, wall_time, steps.observer.stage))]
        checked = next(build_and_check_all(to_check)) if examined.failure is None else not_checked(examined)
        record = Journal(plan, steps.observer).write(not_sampled(checked), timed=False)
        end_run(plan.folder, wall_time.seconds())
        folders.clear()
        return record, f"{quote(side.interpreter)} -m rnnbench check {steps.selected}"


def _why_unmeasured(both: SideBySide) -> str:
    """Why a comparison has no verdict."""
    for name, run in zip(("the good release", "it"), both.runs, strict=True):
        for record in read_run(run).records:
            if record.outcome != "ok":
                return f"{name} ends as {_ended_as(record)}"
            if record.not_believed:
                return f"{name} has figures that are not believed: {record.not_believed}"
    return "this latency was not measured"


def _ended_as(record: Record) -> str:
    return record.outcome + (f": {record.reason}" if record.reason else "")
