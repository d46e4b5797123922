"""The two sides of `rnnbench ab`: existing virtual environments, or environments made from requirements."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join, quote

from packaging.requirements import InvalidRequirement, Requirement

from rnnbench.cases import Trial
from rnnbench.pipeline.environment_packages import extras_of, this_suite
from rnnbench.pipeline.environment_worker import Describe, EnvironmentFacts, source_digest
from rnnbench.pipeline.made_environments import SideError, is_made, make_environment
from rnnbench.pipeline.releases import require_release
from rnnbench.results import by_package
from rnnbench.stages import Examined
from rnnbench.worker import Host, WorkerError, WorkerProcess, own_folder

DESCRIBE_LIMIT_S = 120.0


@dataclass(frozen=True)
class Side:
    """One environment: the user's text, its Python, and its content."""

    text: str
    interpreter: str
    facts: EnvironmentFacts

    def examined(self) -> list[Examined]:
        """The trials as this side's adapters examine them. Its interpreter runs them."""
        examined = []
        for one in self.facts.trials:
            support = replace(one.support, interpreter=one.support.interpreter or self.interpreter)
            examined.append(replace(one, support=support))
        return examined

    def changed(self) -> frozenset[str]:
        """The distributions that are not the ones of before: somebody installed others meanwhile. Names are lower-case.

        Empty if the environment can no longer say it: its workers fail then.
        """
        try:
            now = _describe(self.text, self.interpreter, ())
        except SideError:
            return frozenset()
        versions = frozenset(name for name, _ in self.facts.packages.items() ^ now.packages.items())
        return versions | frozenset(_of_other_files(self.facts, now))

    def only(self, trials: Sequence[Trial]) -> Side:
        """The same environment with some of its trials, in its own order."""
        ids = {trial.id for trial in trials}
        kept = tuple(one for one in self.facts.trials if one.trial.id in ids)
        return replace(self, facts=replace(self.facts, trials=kept))


def open_side(text: str | None, trials: Sequence[Trial], cache: Path) -> Side:
    """Open an environment in which every target of the trials is installed. Raises SideError."""
    side = open_environment(text, trials, cache)
    for examined in side.facts.trials:
        if examined.failure is not None and examined.failure.outcome == "unavailable":
            target = examined.trial.target
            raise SideError(f"{side.text}: {target}: {examined.failure.reason} (with {side.interpreter} -m pip)")
    return side


def open_environment(text: str | None, trials: Sequence[Trial], cache: Path) -> Side:
    """Open the environment that `text` names: a folder or requirements; None is the running one. Raises SideError."""
    check_side(text, trials, cache)
    if text is None:
        name, interpreter = "the running environment", sys.executable
    elif _is_folder(text):
        name, interpreter = text, _python_of(Path(os.path.expanduser(text)), text)
    else:
        name, interpreter = text, make_environment(text, extras_of(trials), cache).python
    facts = _describe(name, interpreter, trials)
    if facts.source != source_digest():
        if source_digest.__wrapped__() != source_digest():
            raise SideError(
                f"{name}: not used: the source of rnnbench was edited while this command ran, so that programs before "
                "and after the edit would be compared; give the command again, and edit nothing until it has ended"
            )
        raise SideError(
            f"{name}: has another source of rnnbench than the running one, so that adapters would be compared and not "
            f"packages; install this one there: {quote(interpreter)} -m pip install --no-deps {join(this_suite())}"
        )
    return Side(name, interpreter, facts)


def differences(a: EnvironmentFacts, b: EnvironmentFacts) -> list[str]:
    """The packages that differ, as `name a → b`, or with their version where only files do. Python comes first."""
    old, new = ({"Python": side.python, **by_package(side.packages)} for side in (a, b))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    versions = [f"{key} {old.get(key, 'none')} → {new.get(key, 'none')}" for key in sorted(keys)]
    return [
        *versions,
        *(f"{name} {a.packages[name]} (same version, different files)" for name in _of_other_files(a, b)),
    ]


def _of_other_files(a: EnvironmentFacts, b: EnvironmentFacts) -> list[str]:
    """The packages that have one version in both, and not the same files: edited, or built again."""
    same = a.packages.items() & b.packages.items()
    return sorted(name for name, _ in same if a.files.get(name) != b.files.get(name))


def check_side(text: str | None, trials: Sequence[Trial], cache: Path) -> None:
    """Raise SideError for a text that names no environment, before minutes are spent to make one.

    Requirements must contain a version. Otherwise a mistyped folder would be installed from the package index. For an
    environment that is not there yet, the index is asked for the versions.
    """
    if text is None:
        return
    if _is_folder(text):
        _python_of(Path(os.path.expanduser(text)), text)
        return
    if not set("=<>~@") & set(text):
        raise SideError(
            f"'{text}': is no folder here, and names no version; "
            f"give a virtual environment's folder, or requirements such as 'onnxruntime==1.30.0'"
        )
    words = text.split()
    requirements = [_requirement(word) for word in words if not word.startswith("-")]
    # pip's options may name another index.
    if len(requirements) == len(words) and not is_made(text, extras_of(trials), cache):
        for requirement in requirements:
            if requirement.specifier:
                require_release(requirement, text)


def _requirement(text: str) -> Requirement:
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        what = str(error).splitlines()[0]
        raise SideError(f"'{text}': is no requirement: {what}; write it as 'onnxruntime==1.30.0'") from error


def _is_folder(text: str) -> bool:
    """Whether a text names a folder. `Path("")` would be the working folder, so an empty text does not."""
    return text.startswith((".", "~")) or "/" in text or (text != "" and Path(text).is_dir())


def _python_of(folder: Path, text: str) -> str:
    python = folder.absolute() / "bin" / "python"
    if not python.exists():
        raise SideError(
            f"{text}: is no virtual environment, it has no bin/python; "
            f"make one with `python -m venv {text}`, or give requirements such as 'onnxruntime==1.30.0'"
        )
    return str(python)


def _describe(name: str, interpreter: str, trials: Sequence[Trial]) -> EnvironmentFacts:
    """The content of the interpreter's environment, from a worker that runs in it. Raises SideError."""
    with own_folder() as folder:
        host = Host(folder / "environment.log", {}, interpreter)
        try:
            worker = WorkerProcess("rnnbench.pipeline.environment_worker", Describe(tuple(trials)), host)
        except OSError as error:
            reason = error.strerror or error
            raise SideError(f"{name}: its Python ({interpreter}) does not run: {reason}; make it again") from error
        try:
            return worker.ready(DESCRIBE_LIMIT_S)
        except WorkerError as error:
            raise SideError(
                f"{name}: its Python ({interpreter}) cannot say what its backends support: {error}; "
                f"install this rnnbench there: {quote(interpreter)} -m pip install {join(this_suite())}"
            ) from error
        finally:
            worker.close()
