"""A folder for `asv publish`: results in asv's files, and a git repository with an empty commit for each run.

asv draws its series over commits. So each run gets a commit, at the time at which it began, with the run's name as its
message. A further export into the same folder adds the next run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rnnbench.disk import is_as_empty, read_cached, read_plain, write_text
from rnnbench.locks import locked_folder
from rnnbench.results.exports.export import FolderExport
from rnnbench.results.exports.measured import ExportedTrial, Figure, exported_trials, machine_facts, started
from rnnbench.results.identity import fingerprint
from rnnbench.results.merged_run import split_by_machine
from rnnbench.results.reading import StoreError
from rnnbench.results.run import Run
from rnnbench.results.text import file_name, visible

CONFIG, REPOSITORY, RESULTS, BENCHMARKS = "asv.conf.json", "runs.git", "results", "benchmarks.json"
BRANCH, ENVIRONMENT = "runs", "rnnbench"
CONFIG_VERSION, MACHINE_VERSION, RESULT_VERSION, BENCHMARKS_VERSION = 1, 1, 2, 2
MACHINE = {"cpu": "cpu", "cores": "num_cpu", "memory": "ram", "system": "os"}
"""asv's names for facts of the machine."""
COLUMNS = ("result", "params", "version", "started_at")
"""Columns of a result. asv's `duration`, statistics and samples are not filled: its interval is one of 99 %."""
NO_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""git's name of a folder without files."""
GIT_LIMIT_S = 60.0
"""Seconds that one call of git may take. It takes milliseconds where it reads and writes plain files."""
SEPARATOR = "\x1f"

PROJECT = {
    "version": CONFIG_VERSION,
    "project": "rnnbench",
    "repo": REPOSITORY,
    "dvcs": "git",
    "branches": [BRANCH],
    "results_dir": RESULTS,
    "html_dir": "html",
}
"""The content of CONFIG."""


def _write(run: Run, folder: Path) -> bool:
    time = started(run.info)
    if time is None:
        raise StoreError(
            f"{run.path}: run.json has no time at which the run began, and asv sorts runs by it; choose another format"
        )
    if folder.exists() and not (folder.is_dir() and (_is_asv(folder) or is_as_empty(folder))):
        raise StoreError(f"{folder} is no folder that an export to asv made; choose an empty or a new one with -o")
    folder.mkdir(parents=True, exist_ok=True)
    with locked_folder(folder):  # Of two exports at once, one would take the other one's commit off the branch.
        if not (folder / CONFIG).exists():  # Its user may have added settings of asv.
            _save(folder / CONFIG, PROJECT)
        commit = _commit(folder, run, time)
        replaced = [_save_results(part, folder / RESULTS, commit, time) for part in split_by_machine(run)]
    return any(replaced)


def _save_results(run: Run, results: Path, commit: str, time: datetime) -> bool:
    """The figures of one machine. Says whether there were earlier ones of this run."""
    machine, facts = fingerprint(run.info.machine), machine_facts(run)
    figures = [(trial, figure) for trial in exported_trials(run) for figure in trial.figures]
    about = {"machine": machine, **{name: str(facts[key]) for key, name in MACHINE.items() if key in facts}}
    milliseconds = int(time.timestamp() * 1000)
    _save(results / machine / "machine.json", {**about, "version": MACHINE_VERSION})
    file = results / machine / f"{commit[:8]}-{ENVIRONMENT}.json"
    is_there = file.exists()
    _save(
        file,
        {
            "commit_hash": commit,
            "env_name": ENVIRONMENT,
            "date": milliseconds,
            "params": about,
            "python": "",
            "requirements": {},
            "env_vars": {},
            "result_columns": COLUMNS,
            "results": {_name(*figure): [[figure[1].value], [], "1", milliseconds] for figure in figures},
            "durations": {},
            "version": RESULT_VERSION,
        },
    )
    benchmarks = _benchmarks(results / BENCHMARKS)
    added = {_name(*figure): _benchmark(*figure) for figure in figures}
    _save(results / BENCHMARKS, {**benchmarks, **added, "version": BENCHMARKS_VERSION})
    return is_there


def _name(trial: ExportedTrial, figure: Figure) -> str:
    """asv groups benchmarks by what stands before the first dot: the case.

    It makes a file of each name, and reports no step of a benchmark whose name had to change for that.
    """
    return f"{file_name(re.sub('[/:]', '.', trial.entry.record.trial))}.{figure.name}"


def _benchmark(trial: ExportedTrial, figure: Figure) -> dict[str, Any]:
    name = _name(trial, figure)
    return {
        "name": name,
        "pretty_name": name,
        "code": figure.meaning,
        "param_names": [],
        "params": [],
        "timeout": 0,
        "type": "time" if figure.unit == "s" else "memory",
        "unit": "seconds" if figure.unit == "s" else "bytes",
        "version": "1",
    }


def _commit(folder: Path, run: Run, time: datetime) -> str:
    """The commit of the run: the one that it has, or a new one after all others."""
    repository, name = folder / REPOSITORY, " ".join(visible(run.info.run).split())  # As git shows a subject.
    seconds = int(time.timestamp())
    _git(folder, "init", "--quiet", "--bare", f"--initial-branch={BRANCH}", REPOSITORY)  # Again, it changes nothing.
    log = _git(repository, "log", f"--format=%H{SEPARATOR}%at{SEPARATOR}%s", "--branches").splitlines()
    commits = [line.split(SEPARATOR) for line in log]
    for commit, at, subject in commits:
        if (int(at), subject) == (seconds, name):
            return commit
    last = commits[0] if commits else []
    if last and int(last[1]) > seconds:
        raise StoreError(
            f"{folder} already has the later run {last[2]}, and asv takes runs in the order of time; "
            f"choose a new folder with -o, and export the oldest run first"
        )
    parents = ("-p", last[0]) if last else ()
    text = f"{name}\n\n{_versions(run)}\n"
    commit = _git(repository, "commit-tree", NO_TREE, *parents, "-F", "-", time=seconds, text=text).strip()
    _git(repository, "update-ref", f"refs/heads/{BRANCH}", commit)
    return commit


def _versions(run: Run) -> str:
    packages = {name: version for packages in run.info.versions.values() for name, version in packages.items()}
    return "\n".join(f"{visible(package)} {visible(version)}" for package, version in sorted(packages.items()))


def _git(folder: Path, *arguments: str, time: int = 0, text: str = "") -> str:
    """git's output, whatever the user's settings are, with `text` as its input. No hook runs.

    Raises StoreError where there is no git, or it fails or hangs.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    for who in ("AUTHOR", "COMMITTER"):
        environment |= {
            f"GIT_{who}_NAME": "rnnbench",
            f"GIT_{who}_EMAIL": "rnnbench@localhost",
            f"GIT_{who}_DATE": f"@{time} +0000",
        }
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-c", f"core.hooksPath={os.devnull}", *arguments]
    try:
        process = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            input=text,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=GIT_LIMIT_S,
        )
    except FileNotFoundError as error:
        raise StoreError("the export to asv needs git, which is not installed; install it") from error
    except subprocess.TimeoutExpired as error:
        raise StoreError(
            f"{folder}: git {arguments[0]} did not end within {GIT_LIMIT_S:g} s; see what lies there, or choose a new "
            "folder with -o"
        ) from error
    if process.returncode:
        raise StoreError(f"{folder}: git {arguments[0]} failed: {visible(process.stderr.strip())}; choose a new folder")
    return process.stdout


def _is_asv(folder: Path) -> bool:
    """Whether an export made the folder, also where it was interrupted."""
    return (folder / CONFIG).is_file() and ((folder / REPOSITORY).is_dir() or _read(folder / CONFIG) == PROJECT)


def _read(file: Path) -> dict[str, Any]:
    """The object in a file; empty where there is none."""
    content = read_cached(file, lambda path: json.loads(read_plain(path)))
    return content if isinstance(content, dict) else {}


def _benchmarks(file: Path) -> dict[str, Any]:
    """What earlier exports have said of their benchmarks. Raises StoreError where it is damaged: it would be lost."""
    content = _read(file)
    if not content and os.path.lexists(file):
        raise StoreError(f"{file}: is damaged; restore it, or delete it and export every run again")
    return content


def _save(file: Path, content: Mapping[str, Any]) -> None:
    write_text(file, json.dumps(content, indent=1) + "\n")


EXPORT = FolderExport("asv", "a folder for `asv publish`, one commit a run", _write)
