"""Long commands that get a blow at a random moment, again and again, and what is looked at after each.

A blow is a signal to the command, two of them, or a kill of one of the processes that it has started.

Each runs in a process of its own, fresh or forked. The fake backend has releases of its own there, and reports have no
pictures.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil
import yaml
from forked_commands import start_forked
from killed_runs import MARK, Command, left_of, unfinished
from waiting import PATIENCE_S, wait_until

from rnnbench.history import Alerts, AlertsError, History
from rnnbench.night import read_state
from rnnbench.results import StoreError, read_run

BLOWS_EACH = 36
"""That each command gets in the whole proof."""
SHORT_BLOWS = 2
"""That `make test` gives to those of SHORT."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
OF_THE_FAKE = "rnnbench-test-"
"""Begins the names of temporary folders of `few_checks`, which nobody removes after a kill."""
BETWEEN_S = 0.3
"""The longest time between the first and the second of two signals."""
RELEASES = {"1.0": "", "1.1": "", "1.2": "RNNBENCH_FAKE_SLOWDOWN=9.0"}
"""With the variables of their environments."""
CASE = """\
schema: 1
name: tiny
model: {cell: lstm, input: 3, hidden: 4}
workload: {steps: 8, chunk: [2, 4]}
strategy: {time: looped, state: [stitched, stateful]}
measure: {budget: 30ms, processes: 1}
"""
_BEGIN = """
import os, signal
from rnnbench.__main__ import _end, main
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, _end)
open(os.environ["RNNBENCH_TEST_FOLDER"] + "/begun", "w").close()
main()
"""
_WITH_THE_FAKE = """
import json, os
import pytest
from fake_releases import fake_index
from few_checks import make_few_checks
from forked_workers import fork_workers
patch = pytest.MonkeyPatch()
fork_workers(patch)
make_few_checks(patch)
fake_index(patch, json.loads(os.environ["RNNBENCH_TEST_RELEASES"]))
patch.setattr("rnnbench.reports.plots.draw", lambda view, folder: [])
patch.setattr("rnnbench.plan.named_targets.baselines", list)
"""
_FAKE = ("tiny.yaml", "--backend=fake:honest")
_ONE = "--filter=chunk=4,state=stitched"


@dataclass(frozen=True)
class LongCommand:
    """A command, and how its folder becomes one in which there is work for it."""

    name: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path], None] = lambda folder: None
    """In a new folder."""
    resumes: bool = False
    """Whether a run that has not ended is resumed, in place of the same command again."""
    is_done: Callable[[Path], bool] = lambda folder: False
    """Whether there is nothing left for it to do, and the folder has to be a new one."""

    @property
    def program(self) -> str:
        return (_WITH_THE_FAKE if "tiny.yaml" in self.arguments else "") + _BEGIN

    def arguments_in(self, folder: Path) -> tuple[str, ...]:
        return ("run", "--resume", "latest") if self.resumes and unfinished(folder) else self.arguments


def _add_runs(folder: Path) -> None:
    import fake_records as fake

    for day in (1, 2, 3):
        started = f"2026-01-0{day}T02:00:00+00:00"
        run = folder / "results" / f"2026010{day}T020000Z-fake"
        fake.write_run(run, [fake.record(chunk=chunk) for chunk in (1, 2)], started=started, seed=day)


def _add_history(folder: Path) -> None:
    _add_runs(folder)
    for run in sorted((folder / "results").iterdir()):
        History(folder / "results" / "history").add(run)


def _add_shards(folder: Path) -> None:
    import fake_shards

    fake_shards.make_shards(folder / "shards")


def _add_good_version(folder: Path) -> None:
    good = {"fake": {"version": "1.0", "requirements": "rnnbench-fake==1.0", "since": "2026-01-01"}}
    (folder / "results").mkdir()
    (folder / "results" / "night.yaml").write_text(yaml.safe_dump({"schema_version": 1, "good": good}))


def _night(*selected: str) -> LongCommand:
    return LongCommand(
        "night",
        ("night", *_FAKE, *selected, "--same-trials=1", "--anchors=none", "--budget=50ms"),
        _add_good_version,
        _night_is_over,
    )


def _night_is_over(folder: Path) -> bool:
    return read_state(folder / "results" / "night.yaml").night is None


def _run_is_over(folder: Path) -> bool:
    return any(folder.glob("results/[!.]*/run.json")) and not unfinished(folder)


COMMANDS = (
    LongCommand("run", ("run", "tiny.yaml", "--backend=fake:honest,numpy"), is_done=_run_is_over, resumes=True),
    _night("--filter=chunk=4"),
    LongCommand("ab", ("ab", *_FAKE, _ONE, "--budget=50ms")),
    LongCommand("check", ("check", *_FAKE)),
    LongCommand(
        "history backfill",
        ("history", "backfill", "fake:honest", "tiny.yaml", "--filter=chunk=4", "--pairs=2", "--package=rnnbench-fake"),
        is_done=lambda folder: len(History(folder / "results" / "history").runs) == len(RELEASES),
    ),
    LongCommand(
        "bisect",
        ("bisect", *_FAKE, _ONE, "--good=1.0", "--bad=1.2", "--budget=60s", "--package=rnnbench-fake"),
    ),
    LongCommand(
        "history add",
        ("history", "add", *(f"2026010{day}T020000Z-fake" for day in (1, 2, 3))),
        _add_runs,
        lambda folder: len(History(folder / "results" / "history").runs) == 3,
    ),
    LongCommand(
        "history add --compress",
        ("history", "add", "--compress", *(f"2026010{day}T020000Z-fake" for day in (1, 2, 3))),
        _add_runs,
        lambda folder: len([*folder.glob("results/[!.]*/*.zst")]) == 3,
    ),
    LongCommand("history alerts", ("history", "alerts"), _add_history),
    LongCommand("site", ("site",), _add_history),
    LongCommand("report", ("report", *(f"2026010{day}T020000Z-fake" for day in (1, 2))), _add_runs),
    LongCommand("merge", ("merge", *(f"shards/2026013{n}T120000Z-fake_case-{n}-of-4" for n in (1, 2, 3))), _add_shards),
)

SHORT = (
    LongCommand("check", ("check", *_FAKE, _ONE)),
    *(each for each in COMMANDS if each.name in ("history add", "merge")),
)
"""What `make test` tries. A night would take ten times as long: `night/test_night.py` has an interrupted one."""


@dataclass
class Interrupted:
    """What a series of blows to one command led to."""

    blows: int = 0
    ended_before: int = 0
    """Commands that had ended when their blow came."""
    wrong: list[str] = field(default_factory=list)
    slowest_end_s: float = 0.0


@dataclass(frozen=True)
class Blow:
    """What a command gets at a random moment."""

    name: str
    give: Callable[[Command, Path, random.Random], object]
    statuses: tuple[int, ...]
    """What the command may end with, beside the statuses of one that has ended before, or goes on."""


def _signal(number: signal.Signals, status: int) -> Blow:
    return Blow(number.name, lambda process, folder, draw: process.send_signal(number), (status,))


def _two_signals(process: Command, folder: Path, draw: random.Random) -> None:
    process.send_signal(draw.choice(SIGNALS))
    with suppress(subprocess.TimeoutExpired):
        process.wait(draw.uniform(0, BETWEEN_S))
    process.send_signal(draw.choice(SIGNALS))


def _kill_of_another(process: Command, folder: Path, draw: random.Random) -> None:
    """One of the processes that the command has started: a worker, an adapter, the supervisor, or a child of theirs."""
    if others := [other for other in left_of(folder) if other.pid != process.pid]:
        with suppress(psutil.NoSuchProcess):
            draw.choice(others).kill()


BLOWS = (
    *(_signal(number, 130) for number in SIGNALS),
    _signal(signal.SIGKILL, -signal.SIGKILL),
    Blow("two signals", _two_signals, (130,)),
    Blow("a kill of another process", _kill_of_another, ()),
)


def start_fresh(command: LongCommand, folder: Path) -> Command:
    return subprocess.Popen(
        [sys.executable, "-c", command.program, *command.arguments_in(folder)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **_variables(folder)},
        preexec_fn=_AS_IN_A_TERMINAL,
    )


def fork_here(command: LongCommand, folder: Path) -> Command:
    """In a process that is forked from this one: see `fake/forked_commands.py`."""
    return start_forked(folder, command.program, command.arguments_in(folder), _variables(folder), _AS_IN_A_TERMINAL)


_AS_IN_A_TERMINAL = partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)


def _variables(folder: Path) -> dict[str, str]:
    return {MARK: str(folder), "TMPDIR": str(folder / "tmp"), "RNNBENCH_TEST_RELEASES": json.dumps(RELEASES)}


def interrupt(
    command: LongCommand,
    top: Path,
    count: int,
    draw: random.Random,
    took_s: float | None = None,
    begin: Callable[[LongCommand, Path], Command] = start_fresh,
) -> Interrupted:
    """Give the command so many blows, each up to `took_s` after its begin: by default what it takes as a whole.

    After each, the same command is given again. At the end it is left alone, and must end well.
    """
    done, folder = Interrupted(), _new(command, top)
    if took_s is None:
        took_s = _whole(command, folder, done, begin)
    while done.blows < count:
        if command.is_done(folder):
            folder = _new(command, top)
        blow: Blow | None = BLOWS[done.blows % len(BLOWS)]
        before = _finished(folder)
        process = _begun(command, folder, begin)
        try:
            process.wait(draw.uniform(0, took_s))
            done.ended_before += 1
            blow = None
        except subprocess.TimeoutExpired:
            done.blows += 1
            blow.give(process, folder, draw)
        given = time.monotonic()
        _, errors = process.communicate(timeout=PATIENCE_S)
        _wait_for_the_rest(command, folder)
        if blow is None or blow.statuses:
            done.slowest_end_s = max(done.slowest_end_s, time.monotonic() - given)
        name = blow.name if blow else "none"
        wrong = [*_look(process.returncode, errors, blow, folder)]
        done.wrong += [f"{command.name}, {name}: {what}" for what in wrong]
        done.wrong += [f"{command.name}, {name}: {what} is lost" for what in _lost(folder, before)]
    if command.is_done(folder):
        folder = _new(command, top)
    _whole(command, folder, done, begin)
    return done


def _new(command: LongCommand, top: Path) -> Path:
    folder = top / command.name.replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tmp").mkdir(parents=True)
    (folder / "tiny.yaml").write_text(CASE)
    command.prepare(folder)
    return folder


def _begun(command: LongCommand, folder: Path, begin: Callable[[LongCommand, Path], Command]) -> Command:
    """It has imported what it needs, and waits for no signal before."""
    begun = folder / "begun"
    begun.unlink(missing_ok=True)
    process = begin(command, folder)
    wait_until(begun.exists, f"{command.name} does not begin", process)
    return process


def _whole(
    command: LongCommand, folder: Path, done: Interrupted, begin: Callable[[LongCommand, Path], Command]
) -> float:
    """Let it end. Returns the seconds that it took."""
    process = _begun(command, folder, begin)
    begun = time.monotonic()
    _, errors = process.communicate(timeout=PATIENCE_S)
    seconds = time.monotonic() - begun
    _wait_for_the_rest(command, folder)
    done.wrong += [f"{command.name}, whole: {what}" for what in _look(process.returncode, errors, None, folder)]
    return seconds


def _wait_for_the_rest(command: LongCommand, folder: Path) -> None:
    wait_until(lambda: not left_of(folder), f"{command.name} left a process")


def _look(status: int, errors: str, blow: Blow | None, folder: Path) -> Iterator[str]:
    """What is wrong after a command that got this blow, or none."""
    ended = (0, 1, 3)
    """A command may have ended when the blow came. 1 and 3 are what nights and comparisons of the fake end with."""
    if status not in (*ended, *(blow.statuses if blow else ())) or "Traceback" in errors:
        yield f"status {status}: {errors[-2000:]}"
    if status == 130 and errors.count("Interrupted.") != 1 and not (blow and blow.give is _two_signals):
        yield f"it says {errors!r}"
    temporary = [path for path in (folder / "tmp").iterdir() if not path.name.startswith(OF_THE_FAKE)]
    for left in [*temporary, *folder.rglob("*.before")]:
        yield f"{left.name} is left"
        shutil.rmtree(left, ignore_errors=True)
    yield from _damaged(folder)


def _damaged(folder: Path) -> Iterator[str]:
    """What a later command would find damaged."""
    for page in folder.rglob("*.html"):
        if not page.read_text().rstrip().endswith("</html>"):
            yield f"{page.name} is torn"
    for run in (path.parent for path in folder.rglob("run.json")):
        try:
            yield from (warning for warning in read_run(run).warnings if "ended before its first trial" not in warning)
        except StoreError as error:
            yield str(error)
    yield from History(folder / "results" / "history").warnings
    try:
        Alerts.read(folder / "results" / "alerts.yaml")
        read_state(folder / "results" / "night.yaml")
    except (AlertsError, StoreError) as error:
        yield str(error)


def _finished(folder: Path) -> dict[str, frozenset[str]]:
    """By file or folder, what is finished: the records of runs and the runs of the history."""
    runs = {path.parent: read_run(path.parent) for path in folder.rglob("run.json") if "shards" not in path.parts}
    found = {str(run): frozenset(record.model_dump_json() for record in read.records) for run, read in runs.items()}
    history = History(folder / "results" / "history")
    return {**found, "the history": frozenset(entry.run_id for entry in (*history.runs, *history.comparisons))}


def _lost(folder: Path, before: dict[str, frozenset[str]]) -> Iterator[str]:
    after = _finished(folder)
    for where, what in before.items():
        if not what <= after.get(where, frozenset()):
            yield f"something is lost in {where}"


def summary(done: dict[str, Interrupted]) -> str:
    """A line for each command."""
    return "\n".join(
        f"{name}: {one.blows} blows, {one.ended_before} commands that had ended before, {len(one.wrong)} wrong, "
        f"the slowest end {one.slowest_end_s:.2f} s"
        for name, one in done.items()
    )
