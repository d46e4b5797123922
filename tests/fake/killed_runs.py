"""Runs of the real command in a process of its own, fresh or forked, and killing it at random or named moments."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from forked_commands import ForkedCommand, start_forked
from waiting import PATIENCE_S, wait_until

Command = subprocess.Popen[str] | ForkedCommand
MARK = "RNNBENCH_TEST_FOLDER"
"""A variable that all processes of a command have, its workers and their children too. The kernel does not tell it of
what a forked command has forked: that works in the command's folder."""
LATER_S = 2.0
"""How long after a kill a worker may live."""
SOONEST_S = 0.3
"""When a command is killed, at the earliest, after its start: it has begun to import."""
MAIN = "\nfrom rnnbench.__main__ import main\nmain()"


def start(folder: Path, *arguments: str, code: str = "", **options: Any) -> subprocess.Popen[str]:
    """The command in a fresh process, after `code`."""
    return subprocess.Popen(
        [sys.executable, "-c", code + MAIN, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: str(folder)},
        **options,
    )


def fork(folder: Path, *arguments: str, code: str = "", **options: Any) -> ForkedCommand:
    """As `start`, in a process that is forked from this one."""
    return start_forked(folder, code + MAIN, arguments, {MARK: str(folder)}, **options)


def left_of(folder: Path) -> list[psutil.Process]:
    """Processes that were started for a run in this folder, and run."""
    found = []
    for process in psutil.process_iter():
        try:
            mine = process.environ().get(MARK) == str(folder) or process.cwd() == os.path.realpath(folder)
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in folder.glob("results/[!.]*/records.jsonl") for line in path.open()]


def written(folder: Path) -> int:
    """How many records are on the disk, also while more are written."""
    return sum(path.read_bytes().count(b"\n") for path in _files(folder))


@dataclass
class Killed:
    """What a series of kills led to."""

    kills: int = 0
    at_risk: int = 0
    """Kills of a run that had records already."""
    with_workers: int = 0
    """Kills of a command that had processes beside its own."""
    runs: int = 0
    records: int = 0
    lost: int = 0
    """Records that were on the disk before a kill, and were not there or were changed after it."""
    doubled: int = 0
    torn: int = 0
    """Lines that are no record once the run has ended."""
    outlived: int = 0
    """Kills after which a process lived longer than LATER_S."""
    slowest_end_s: float = 0.0


def at_random(draw: random.Random, latest_s: float) -> Callable[[Command], None]:
    """Waits for a time that is drawn, up to `latest_s` after the start of the command."""
    return lambda process: time.sleep(draw.uniform(SOONEST_S, latest_s))


def kill_and_resume(
    folder: Path,
    first: tuple[str, ...],
    kills: int,
    wait: Callable[[Command], None],
    codes: Sequence[str] = (),
    begin: Callable[..., Command] = start,
) -> Killed:
    """Kill the command so many times, each after a `wait`. It begins as `first`, then it resumes.

    Where a run has ended another one begins. The last one is resumed to its end. Where there are `codes`, each command
    begins with the next one: there is one more of them than kills. `begin` is `start` or `fork`.
    """
    done = Killed()
    before: dict[str, list[bytes]] = {}
    while done.kills < kills:
        arguments = ("run", "--resume", "latest") if unfinished(folder) else first
        process = begin(folder, *arguments, code=codes[done.kills] if codes else "")
        wait(process)
        if process.poll() is None:
            done.kills += 1
            done.at_risk += unfinished(folder) and written(folder) > 0
            done.with_workers += len(left_of(folder)) > 1
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        _count_what_outlived(folder, done)
        after = {str(path): path.read_bytes().split(b"\n")[:-1] for path in _files(folder)}
        done.lost += sum(after.get(path, [])[: len(lines)] != lines for path, lines in before.items())
        before = after
    if unfinished(folder):
        process = begin(folder, "run", "--resume", "latest", code=codes[-1] if codes else "")
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert "Traceback" not in errors, errors
    _count_records(folder, done)
    return done


def _count_what_outlived(folder: Path, done: Killed) -> None:
    killed = time.monotonic()
    wait_until(lambda: not left_of(folder), "a worker outlived the suite")
    seconds = time.monotonic() - killed
    done.outlived += seconds >= LATER_S
    done.slowest_end_s = max(done.slowest_end_s, seconds)


def _count_records(folder: Path, done: Killed) -> None:
    for path in _files(folder):
        done.runs += 1
        trials: Counter[str] = Counter()
        for line in path.read_bytes().splitlines(keepends=True):
            try:
                trials[json.loads(line)["trial"]] += 1
            except ValueError:
                done.torn += 1
            done.torn += not line.endswith(b"\n")
        done.records += len(trials)
        done.doubled += sum(count - 1 for count in trials.values())


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("results/[!.]*/records.jsonl"))


def unfinished(folder: Path) -> bool:
    """Whether there is a run that can be resumed."""
    infos = sorted(folder.glob("results/[!.]*/run.json"))
    return bool(infos) and json.loads(infos[-1].read_text())["finished"] is None
