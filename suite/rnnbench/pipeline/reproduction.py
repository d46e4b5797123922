"""The smallest programs that show a fault of a compiler: `docs/upstream/NAME.py`, with its report `NAME.md`.

Each is a script without this suite. It exits with 1 where the fault is there, and with 0 if it is not. The packages
that it needs are in its head, as PEP 723 has them. The head's table `tool.rnnbench` has what else it needs: `tools`,
which pip does not install, and `earlier`, the packages of a second environment, where it compares two releases. It then
gets that environment's interpreter as its argument, and exits with 3 where its interval leaves the fault open.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rnnbench.outside_text import safe_text
from rnnbench.pipeline.made_environments import plain_environment, site_packages
from rnnbench.pipeline.progress import told_again
from rnnbench.pipeline.releases import newest_release
from rnnbench.spelling import hint
from rnnbench.worker import run_helper

FOLDERS = (Path(__file__).parents[3] / "docs" / "upstream", Path(__file__).parents[1] / "docs" / "upstream")
"""The folders of the scripts, in a checkout and in an installed package."""
TIME_LIMIT_S = 600.0
_STILL_THERE, _MENDED, _UNDECIDED = 1, 0, 3
# The expression of PEP 723.
_METADATA = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")


class FaultState(Enum):
    """A script's verdict about the versions that it ran with."""

    STILL_THERE = "still there"
    MENDED = "mended"
    UNDECIDED = "undecided on this machine"
    UNKNOWN = "no answer"


class ReproductionError(Exception):
    """There is no such script, or its head cannot be read. The message says which, and what to do."""


@dataclass(frozen=True)
class Reproduction:
    """A script with its title and the packages that it was written for."""

    name: str
    script: Path
    title: str
    """The first sentence of its docstring: compiler, and what is wrong."""
    requirements: tuple[str, ...]
    """Packages with their versions: `onnx==1.23.2`."""
    earlier: tuple[str, ...] = ()
    """Packages of a second environment, with the release that the script compares with. Empty if there is none."""
    tools: str = ""
    """The tools that it needs and pip does not install, and how to get them."""

    @property
    def unpinned(self) -> tuple[str, ...]:
        """The same packages in any version."""
        return _names(self.requirements)


@dataclass(frozen=True)
class Reproduced:
    """A script's verdict, and what it printed."""

    state: FaultState
    printed: str
    versions: tuple[str, ...] = ()
    """The packages that it ran with: `onnx==1.23.2`."""
    earlier: tuple[str, ...] = ()
    """The packages of the environment that it compared them with."""


def reproductions() -> tuple[Reproduction, ...]:
    """All scripts, in the order of their names. Raises ReproductionError."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    if folder is None:
        raise ReproductionError(f"no scripts lie in {FOLDERS[0]}; reinstall rnnbench")
    return tuple(_read(script) for script in sorted(folder.glob("*.py")))


def find_reproduction(name: str) -> Reproduction:
    """The script of this name. Raises ReproductionError, with the names that are near."""
    by_name = {reproduction.name: reproduction for reproduction in reproductions()}
    if name not in by_name:
        raise ReproductionError(f"no reproduction is called '{name}'; {hint(name, by_name)} (`rnnbench repro` has all)")
    return by_name[name]


def reproduce(one: Reproduction, python: str = sys.executable, earlier: str = "") -> Reproduced:
    """Run the script with this interpreter, for at most `TIME_LIMIT_S`. `earlier` is `earlier_environment`'s one."""
    versions = _versions(one.requirements, python)
    if missing := _missing(one.requirements, versions):
        names = " and ".join(_names(missing))
        return Reproduced(FaultState.UNKNOWN, f"it needs {names}: pip install {shlex.join(missing)}", versions)
    with told_again(f"{one.name}: its program runs"):
        state, printed = _run([python, str(one.script), *([earlier] if earlier else [])])
    if state is FaultState.UNKNOWN and one.tools:
        printed += f"\nit also needs {one.tools}"
    return Reproduced(state, printed, versions, _versions(one.earlier, earlier) if earlier else ())


def _run(command: list[str]) -> tuple[FaultState, str]:
    """Run the script. Returns its verdict with what it printed, or with why it has none."""
    try:
        process = run_helper(command, TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        return FaultState.UNKNOWN, f"it did not end within {TIME_LIMIT_S:.0f} s"
    printed = safe_text(process.stdout.strip())
    if process.returncode == _MENDED:
        return FaultState.MENDED, printed
    if process.returncode == _UNDECIDED:
        return FaultState.UNDECIDED, printed
    # An uncaught exception exits with 1, too: a traceback says nothing of the fault.
    if process.returncode == _STILL_THERE and "Traceback (most recent call last)" not in process.stderr:
        return FaultState.STILL_THERE, printed
    last = (process.stderr.strip().splitlines() or ["it printed no error"])[-1]
    return FaultState.UNKNOWN, f"exit status {process.returncode}: {safe_text(last)}"


def environment_of(one: Reproduction, cache: Path, *, newest: bool = False) -> str:
    """The interpreter of an environment with the script's packages, in its versions or the newest. Raises SideError.

    An environment of the newest versions is used again until one of the packages has a newer release.
    """
    if newest:
        releases = [newest_release(name) for name in one.unpinned]
        as_of = " ".join(f"{release.package}=={release.version}" for release in releases)
        return plain_environment(one.unpinned, cache, as_of=as_of).python
    return plain_environment(one.requirements, cache).python


def earlier_environment(one: Reproduction, cache: Path) -> str:
    """The interpreter of an environment with the release that the script compares with; "" for none. Raises SideError.

    It has the listed versions, whichever the script itself runs with.
    """
    return plain_environment(one.earlier, cache).python if one.earlier else ""


def _versions(requirements: Sequence[str], python: str) -> tuple[str, ...]:
    """The packages that this interpreter has. They may be older than the newest ones, because pip takes what fits."""
    here = python == sys.executable
    folders = sys.path if here else [str(site_packages(Path(python).parents[1]))]
    # A package may be in several folders, of which the first is imported. What pip left without metadata has no name.
    packages = reversed([package for package in distributions(path=folders) if package.name])
    versions = {canonicalize_name(package.name): package.version for package in packages}
    return tuple(
        f"{name}=={versions[canonicalize_name(name)]}"
        for name in _names(requirements)
        if canonicalize_name(name) in versions
    )


def _missing(requirements: Sequence[str], versions: Sequence[str]) -> list[str]:
    there = _names(versions)
    return [text for text in requirements if Requirement(text).name not in there]


def _names(requirements: Sequence[str]) -> tuple[str, ...]:
    return tuple(Requirement(text).name for text in requirements)


def _read(script: Path) -> Reproduction:
    source = script.read_text(encoding="utf-8")
    heads = [found["content"] for found in _METADATA.finditer(source) if found["type"] == "script"]
    if len(heads) != 1:
        raise ReproductionError(f"{script}: expected one block `# /// script` (PEP 723), found {len(heads)}")
    text = "".join(line[2:] if line.startswith("# ") else line[1:] for line in heads[0].splitlines(keepends=True))
    try:
        head = tomllib.loads(text)
        requirements = tuple(str(Requirement(dependency)) for dependency in head["dependencies"])
        more = head.get("tool", {}).get("rnnbench", {})
        earlier = tuple(str(Requirement(dependency)) for dependency in more.get("earlier", ()))
    except (tomllib.TOMLDecodeError, KeyError, InvalidRequirement) as error:
        raise ReproductionError(f"{script}: its block `# /// script` cannot be read: {error}") from error
    title = re.search(r'"""(.*?)(?:\.\s|\.?""")', source, re.DOTALL)
    return Reproduction(
        script.stem, script, " ".join(title[1].split()) if title else "", requirements, earlier, more.get("tools", "")
    )
