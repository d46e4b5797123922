"""The night's measurements: a run of the newest versions, their conformance, comparisons with the last good ones, A/A.

Each finished step is written to the state file at once. An interrupted night continues: its run is resumed, and an
unfinished check or comparison is made again. A failed step is reported, and the other steps are still made.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rnnbench.cases import Trial
from rnnbench.night.builds import VersionSearch, has_changed, installed_version, is_new, newest_of
from rnnbench.night.conformance import ConformanceCases, check_version
from rnnbench.night.slowdowns import SLOWER, confirm_slowdowns, slowdowns_of, versions_of
from rnnbench.night.state import BackendNight, Build, Compared, Night, State, read_state, write_state
from rnnbench.pipeline import (
    MAKING_ANCHORS,
    Observer,
    Side,
    SideBySide,
    SideError,
    compare_sides,
    examine_with_anchors,
    extras_of,
    make_environment,
    note_versions,
    open_side,
    run_trials,
)
from rnnbench.plan import ExpectedFailures, RunPlan, begin_run, resume_run
from rnnbench.reports import ReportError, write_comparison
from rnnbench.results import Store, StoreError, read_run
from rnnbench.sampling import PairBudget
from rnnbench.stages import Examined

CONFIRMATION = 2
"""A second comparison has this many times the budget. It has few trials, and an undecided one costs another night."""


@dataclass(frozen=True)
class NightPlan:
    """The trials of a night, and how and where they are measured."""

    trials: tuple[Trial, ...]
    anchors: tuple[Trial, ...]
    """Trials of pinned versions. They are measured in the same run, and not compared with other versions."""
    expected: ExpectedFailures
    search: VersionSearch
    budget: PairBudget
    """The budget of each comparison."""
    same_trials: int
    """The number of trials that are compared with themselves (A/A)."""
    store: Store
    state: Path
    reports: Path
    environments: Path
    conformance: ConformanceCases = field(default_factory=ConformanceCases)
    """The trials for the checks of new versions."""

    @property
    def backends(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(trial.target.backend for trial in self.trials))

    @property
    def digest(self) -> str:
        names = "\n".join(sorted(trial.id for trial in (*self.trials, *self.anchors)))
        return hashlib.sha256(names.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def trials_of(self, backend: str) -> list[Trial]:
        return [trial for trial in self.trials if trial.target.backend == backend]


def measure_night(plan: NightPlan, observer: Observer, tell: Callable[[str], None]) -> None:
    """Measure a night, or the rest of an interrupted one. Raises StoreError if results cannot be written.

    A KeyboardInterrupt is raised; the same command continues the night.
    """
    state = read_state(plan.state)
    night = state.night
    if night is None or night.trials != plan.digest or not night.backends.keys() >= set(plan.backends):
        started = datetime.now(UTC).isoformat(timespec="seconds")
        night = Night(started=started, trials=plan.digest, backends=newest_of(plan.backends, plan.search))
    else:
        tell(f"Going on with the night that began at {night.started}.")
        night = _without_lost_runs(night, plan.store, tell)
    measuring = _Measuring(plan, state, night, observer, tell)
    measuring.open_sides()
    measuring.run()
    for backend in plan.backends:
        measuring.check(backend)
    for backend in plan.backends:
        measuring.compare(backend)
    for backend in plan.backends:
        measuring.confirm(backend)
    measuring.compare_with_itself()


def _without_lost_runs(night: Night, store: Store, tell: Callable[[str], None]) -> Night:
    """The night without finished steps whose runs can no longer be read.

    They are made again: the later steps and the collection need them.
    """

    def is_lost(name: str) -> bool:
        try:
            read_run(store.resolve(name))
        except StoreError as error:
            tell(f"{name}: made again: {error}")
            return True
        return False

    checked = {name: one for name, one in night.backends.items() if one.checked and is_lost(one.checked)}
    unchecked = {name: one.model_copy(update={"checked": ""}) for name, one in checked.items()}
    night = night.model_copy(update={"backends": {**night.backends, **unchecked}})
    if night.run_ended and is_lost(night.run):
        return night.model_copy(update={"run": "", "run_ended": False})
    return night


@dataclass
class _Measuring:
    """A night while it is measured."""

    plan: NightPlan
    state: State
    """The state when the command began. It decides what is compared."""
    night: Night
    observer: Observer
    tell: Callable[[str], None]
    sides: dict[str, Side] = field(default_factory=dict)
    """The environment that is measured for each backend."""

    def open_sides(self) -> None:
        """Open the environments of the newest versions, or of the last good versions if the newest cannot be used."""
        self._note()
        for backend in self.plan.backends:
            progress = self.night.backends[backend]
            if not progress.package and not progress.problem:
                self.sides[backend] = open_side(None, self.plan.trials_of(backend), self.plan.environments)
                continue
            good = self.state.good.get(backend)
            # A run that was begun continues with the versions that it began with.
            is_begun = bool(self.night.run) and progress.measured is not None
            for build in filter(None, (progress.measured or progress.newest, None if is_begun else good)):
                try:
                    self.sides[backend] = self._open(backend, build)
                except SideError as error:
                    progress = progress.model_copy(update={"problem": str(error)})
                else:
                    is_newest = build.alone() == progress.newest
                    progress = progress.model_copy(
                        update={"measured": build.alone(), "problem": "" if is_newest else progress.problem}
                    )
                    break
            if progress.problem:
                self.tell(f"{backend}: {progress.problem}")
            self._note_backend(backend, progress)

    def run(self) -> None:
        """Build, check and sample every trial of the backends that have an environment, and the anchors."""
        if self.night.run_ended or not self.sides:
            return
        examined = {one.trial.id: one for side in self.sides.values() for one in side.examined()}
        if self.plan.anchors:
            self.tell(MAKING_ANCHORS)
        anchors = examine_with_anchors(self.plan.anchors, self.plan.environments)
        examined |= {one.trial.id: one for one in anchors}
        plan = self._resumed() or self._begun(list(examined.values()))
        self._note(run=plan.folder.name)
        run_trials(plan, self.observer, examined=[examined[trial.id] for trial in plan.trials if trial.id in examined])
        self._note(run_ended=True)

    def check(self, backend: str) -> None:
        """Check the conformance of the newest version, if it is new."""
        progress, trials = self.night.backends[backend], self.plan.conformance.of(backend)
        if not trials or progress.checked or progress.measured is None or progress.measured != progress.newest:
            return
        if not is_new(backend, progress.newest, self.state):
            return
        self.tell(f"{backend}: conformance of {progress.measured.version}")
        try:
            environment = self._environment(backend, progress.measured), self.plan.environments
            name = check_version(trials, self.plan.conformance, environment, self.plan.store, self.observer)
        except SideError as error:
            self._note_backend(backend, progress.model_copy(update={"not_checked": str(error)}))
            self.tell(f"{backend}: not checked: {error}")
            return
        self._note_backend(backend, progress.model_copy(update={"checked": name, "not_checked": ""}))

    def compare(self, backend: str) -> None:
        """Compare the newest version with the last good one, if it has changed."""
        progress, good = self.night.backends[backend], self.state.good.get(backend)
        if progress.compared or good is None or progress.measured != progress.newest:
            return
        if not has_changed(backend, progress.newest, self.state):
            return
        try:
            sides = self._open(backend, good), self._side(backend)
            both = SideBySide.begin(self.plan.trials_of(backend), sides, self.plan.store)
            self.tell("\n".join(both.describe()))
            comparison = compare_sides(both, self.plan.budget, self.observer)
        except SideError as error:
            self._note_backend(backend, progress.model_copy(update={"not_compared": str(error)}))
            self.tell(f"{backend}: not compared: {error}")
            return
        compared = Compared(
            good=good.alone(),
            runs=(both.runs[0].name, both.runs[1].name),
            versions=versions_of(both),
            worse=any(name in comparison.fail_on and name != SLOWER for name in comparison.found),
            slower=slowdowns_of(comparison, both, read_run(self.plan.store.resolve(self.night.run))),
        )
        self._note_backend(backend, progress.model_copy(update={"compared": compared, "not_compared": ""}))
        try:
            write_comparison(comparison, self.plan.reports / both.runs[1].name)
        except ReportError as error:  # What was measured counts: the page can be made again.
            again = f"rnnbench compare {both.runs[0]} {both.runs[1]}"
            self._note(problems=(*self.night.problems, f"{backend}: its comparison has no page: {error}; see: {again}"))

    def confirm(self, backend: str) -> None:
        """Compare the trials with a SLOWER verdict once more: among many verdicts, some are wrong."""
        progress, good = self.night.backends[backend], self.state.good.get(backend)
        if progress.compared is None or progress.compared.confirmed or good is None:
            return
        slowdowns = progress.compared.slower
        if slowdowns:
            self.tell(f"{backend}: found slower; compared once more.")
            try:
                sides = self._open(backend, good), self._side(backend)
                seconds = CONFIRMATION * self.plan.budget.seconds
                slowdowns = confirm_slowdowns(slowdowns, sides, seconds, self.plan.store, self.observer)
            except SideError as error:
                self._note(problems=(*self.night.problems, f"{backend}: not confirmed: {error}"))
        after_confirmation = progress.compared.model_copy(update={"slower": slowdowns, "confirmed": True})
        self._note_backend(backend, progress.model_copy(update={"compared": after_confirmation}))

    def compare_with_itself(self) -> None:
        """Compare some trials of one backend with themselves (A/A): every difference is a false alarm.

        The backend changes from night to night.
        """
        if self.night.same or not self.plan.same_trials or not self.night.run_ended:
            return
        records = read_run(self.plan.store.resolve(self.night.run)).by_trial
        ok = [trial for trial in self.plan.trials if trial.id in records and records[trial.id].outcome == "ok"]
        backends = sorted({trial.target.backend for trial in ok} & self.sides.keys())
        if not backends:
            return
        day = datetime.fromisoformat(self.night.started).toordinal()
        backend = backends[day % len(backends)]
        of_backend = [trial for trial in ok if trial.target.backend == backend]
        chosen = random.Random(self.night.started).sample(of_backend, min(self.plan.same_trials, len(of_backend)))
        side = self.sides[backend].only(chosen)
        try:
            both = SideBySide.begin([one.trial for one in side.facts.trials], (side, side), self.plan.store)
            compare_sides(both, self.plan.budget, self.observer)
        except SideError as error:
            self._note(problems=(*self.night.problems, f"A/A: {error}"))
            return
        self._note(same=(both.runs[0].name, both.runs[1].name))

    def _side(self, backend: str) -> Side:
        """The environment that is measured for a backend. Raises SideError if it could not be opened."""
        if backend not in self.sides:
            raise SideError(self.night.backends[backend].problem or f"{backend}: has no environment")
        return self.sides[backend]

    def _open(self, backend: str, build: Build) -> Side:
        """Open the environment of a version, with the trials of the night. Raises SideError."""
        text = self._environment(backend, build)
        return open_side(text, self.plan.trials_of(backend), self.plan.environments)

    def _environment(self, backend: str, build: Build) -> str | None:
        """The requirements of a version's environment, which is made; None for the running environment.

        Raises SideError.
        """
        package = self.night.backends[backend].package
        if not self.plan.search.upgrade and installed_version(backend, package) == build.version:
            return None
        environment = make_environment(
            build.requirements, extras_of(self.plan.trials_of(backend)), self.plan.environments
        )
        if environment.yanked:
            raise SideError(f"{build.requirements}: was withdrawn by its makers (yanked): {environment.yanked}")
        return build.requirements

    def _resumed(self) -> RunPlan | None:
        """The rest of the run that the night has begun; None if there is none, or if it cannot be resumed."""
        if not self.night.run:
            return None
        try:
            plan = resume_run(self.plan.store.resolve(self.night.run))
        except StoreError as error:
            self.tell(f"{self.night.run}: not resumed, and begun again: {error}")
            return None
        return plan

    def _begun(self, examined: Sequence[Examined]) -> RunPlan:
        plan = begin_run([one.trial for one in examined], self.plan.store, self.plan.expected)
        note_versions(plan, examined)
        return plan

    def _note_backend(self, backend: str, known: BackendNight) -> None:
        self._note(backends={**self.night.backends, backend: known})

    def _note(self, **changes: object) -> None:
        """Write changes of the night into the state file. What a person has written into it meanwhile stays."""
        self.night = self.night.model_copy(update=changes)
        write_state(self.plan.state, read_state(self.plan.state).model_copy(update={"night": self.night}))
