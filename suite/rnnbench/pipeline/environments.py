"""The two sides of `rnnbench ab`: virtual environments that are there, or that are made from requirements."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distribution, metadata, version
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

from rnnbench import __version__
from rnnbench.cases import Trial
from rnnbench.disk import write_text
from rnnbench.pipeline.environment_worker import Describe, EnvironmentFacts, source_digest
from rnnbench.stages import Examined
from rnnbench.worker import Host, WorkerError, WorkerProcess

DESCRIBE_LIMIT_S = 120.0
INSTALL_LIMIT_S = 1800.0
READY = "ready"
"""The file that an environment made here has once everything is installed."""
ENVIRONMENTS = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "rnnbench" / "environments"


class SideError(Exception):
    """A side is no environment, cannot be made, or runs another suite. The message says which and what to do."""


@dataclass(frozen=True)
class Side:
    """One environment: what the user wrote, its Python, and what that has."""

    text: str
    interpreter: str
    facts: EnvironmentFacts

    def examined(self) -> list[Examined]:
        """The trials as this side's adapters see them, to be run by its interpreter."""
        examined = []
        for one in self.facts.trials:
            support = replace(one.support, interpreter=one.support.interpreter or self.interpreter)
            examined.append(replace(one, support=support))
        return examined


def open_side(text: str | None, trials: Sequence[Trial], cache: Path) -> Side:
    """The environment that `text` means: a folder, requirements, or, where there is none, the running one.

    Raises SideError.
    """
    if text is None:
        name, interpreter = "the running environment", sys.executable
    elif _is_folder(text):
        name, interpreter = text, _python_of(Path(text).expanduser(), text)
    else:
        name, interpreter = text, make_environment(text, sorted({trial.target.backend for trial in trials}), cache)
    facts = _describe(name, interpreter, trials)
    if facts.source != source_digest():
        raise SideError(
            f"{name}: has another source of rnnbench than the running one, so that adapters would be compared and not "
            f"packages; install this one there: {interpreter} -m pip install --no-deps {' '.join(this_suite(()))}"
        )
    for examined in facts.trials:
        if examined.failure is not None and examined.failure.outcome == "unavailable":
            target = examined.trial.target
            raise SideError(f"{name}: {target}: {examined.failure.reason} (with {interpreter} -m pip)")
    return Side(name, interpreter, facts)


def differences(a: EnvironmentFacts, b: EnvironmentFacts) -> list[str]:
    """What is installed in other versions, `name a → b`, Python first."""
    old, new = ({"Python": side.python, **side.packages} for side in (a, b))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return [f"{key} {old.get(key, 'none')} → {new.get(key, 'none')}" for key in sorted(keys)]


def make_environment(requirements: str, backends: Sequence[str], cache: Path) -> str:
    """The Python of an environment with this suite, what the backends need, and `requirements`, made where it is not.

    It lies in `cache` under a digest of all that decides what is in it. Raises SideError.
    """
    extras = sorted(set(backends) & set(metadata("rnnbench").get_all("Provides-Extra") or ()))
    wanted = [*this_suite(extras), *requirements.split()]
    pins = own_versions(requirements)
    digest = hashlib.sha256(json.dumps([wanted, pins, sys.version]).encode()).hexdigest()[:16]
    folder = cache / digest
    python = folder / "bin" / "python"
    if not (folder / READY).exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", str(folder)], requirements)
        constraints = folder / "constraints.txt"
        constraints.write_text("\n".join(pins) + "\n")
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "--constraint", str(constraints), *wanted], requirements)
        write_text(folder / READY, requirements + "\n")
    return str(python)


def this_suite(extras: Sequence[str]) -> list[str]:
    """What pip takes to install the rnnbench that runs, from where it came from (PEP 610), with `extras`."""
    bracket = f"[{','.join(extras)}]" if extras else ""
    origin = distribution("rnnbench").read_text("direct_url.json")
    if origin is None:
        return [f"rnnbench{bracket}=={__version__}"]
    direct = json.loads(origin)
    if direct.get("dir_info", {}).get("editable"):
        return ["--editable", f"{url2pathname(urlparse(direct['url']).path)}{bracket}"]
    if "vcs_info" in direct:
        vcs = direct["vcs_info"]
        return [f"rnnbench{bracket} @ {vcs['vcs']}+{direct['url']}@{vcs['commit_id']}"]
    return [f"rnnbench{bracket} @ {direct['url']}"]


def own_versions(requirements: str) -> list[str]:
    """Pins of what the suite itself needs to the versions that run, but for what `requirements` name.

    Two environments made on different days then differ in what was asked for, and not in NumPy.
    """
    named = {_canonical(re.split(r"[^\w.-]", text)[0]) for text in requirements.split()}
    own = [text for text in metadata("rnnbench").get_all("Requires-Dist") or () if "extra ==" not in text]
    names = [_canonical(re.split(r"[^\w.-]", text)[0]) for text in own]
    return [f"{name}=={version(name)}" for name in names if name not in named]


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _is_folder(text: str) -> bool:
    return text.startswith((".", "~")) or "/" in text or Path(text).is_dir()


def _python_of(folder: Path, text: str) -> str:
    python = folder.absolute() / "bin" / "python"
    if not python.exists():
        raise SideError(
            f"{text}: is no virtual environment, it has no bin/python; "
            f"make one with `python -m venv {text}`, or give requirements such as 'onnxruntime==1.30.0'"
        )
    return str(python)


def _describe(name: str, interpreter: str, trials: Sequence[Trial]) -> EnvironmentFacts:
    """What the environment of that interpreter says of itself. Raises SideError."""
    with tempfile.TemporaryDirectory(prefix="rnnbench-environment-") as folder:
        host = Host(Path(folder) / "environment.log", {}, interpreter)
        try:
            worker = WorkerProcess("rnnbench.pipeline.environment_worker", Describe(tuple(trials)), host)
        except OSError as error:
            raise SideError(f"{name}: its Python ({interpreter}) does not run: {error}") from error
        try:
            return worker.ready(DESCRIBE_LIMIT_S)
        except WorkerError as error:
            raise SideError(
                f"{name}: its Python ({interpreter}) cannot say what its backends support: {error}; "
                f"install this rnnbench there: {interpreter} -m pip install {' '.join(this_suite(()))}"
            ) from error
        finally:
            worker.close()


def _run(command: list[str], requirements: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise SideError(f"'{requirements}': no environment within {INSTALL_LIMIT_S:.0f} s: {error}") from error
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.startswith("ERROR")]
        said = " ".join(lines[-2:]) or (done.stderr or done.stdout).strip()[-300:]
        raise SideError(f"'{requirements}': the environment could not be made: {said}")
