"""The smallest programs that show a fault of a compiler: `docs/upstream/NAME.py`, with its report `NAME.md`.

Each is a script without this suite. It exits with 1 where the fault is there, and with 0 where it is not. The packages
that it needs are in its head, as PEP 723 has them.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from rnnbench.outside_text import safe_text
from rnnbench.pipeline.made_environments import plain_environment

FOLDERS = (Path(__file__).parents[3] / "docs" / "upstream", Path(__file__).parents[1] / "docs" / "upstream")
"""Where the scripts lie: in a checkout, or in an installed package."""
TIME_LIMIT_S = 600.0
_STILL_THERE, _MENDED = 1, 0
# The expression of PEP 723.
_METADATA = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")


class Finding(Enum):
    """What a script says of the versions that it ran with."""

    STILL_THERE = "still there"
    MENDED = "mended"
    UNKNOWN = "could not be told"


class ReproductionError(Exception):
    """There is no such script, or its head cannot be read. The message says which and what to do."""


@dataclass(frozen=True)
class Reproduction:
    """A script with its title and the packages that it was written for."""

    name: str
    script: Path
    title: str
    """The first sentence of its docstring: compiler, and what is wrong."""
    requirements: tuple[str, ...]
    """Packages with their versions: `onnx==1.23.2`."""

    @property
    def unpinned(self) -> tuple[str, ...]:
        """The same packages in any version."""
        return tuple(Requirement(text).name for text in self.requirements)


@dataclass(frozen=True)
class Reproduced:
    """What a script found, and what it printed."""

    finding: Finding
    printed: str


def reproductions() -> tuple[Reproduction, ...]:
    """All scripts, by name. Raises ReproductionError."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    if folder is None:
        raise ReproductionError(f"no scripts lie in {FOLDERS[0]}; reinstall rnnbench")
    return tuple(_read(script) for script in sorted(folder.glob("*.py")))


def find_reproduction(name: str) -> Reproduction:
    """The script of this name. Raises ReproductionError with those that there are."""
    known = {one.name: one for one in reproductions()}
    if name not in known:
        raise ReproductionError(f"no reproduction is called {name!r}; there are {', '.join(known)}")
    return known[name]


def reproduce(one: Reproduction, python: str = sys.executable) -> Reproduced:
    """Run the script with this interpreter, for at most `TIME_LIMIT_S`."""
    try:
        done = subprocess.run(
            [python, str(one.script)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIME_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Reproduced(Finding.UNKNOWN, f"it did not end within {TIME_LIMIT_S:.0f} s")
    printed = safe_text(done.stdout.strip())
    if done.returncode == _MENDED:
        return Reproduced(Finding.MENDED, printed)
    # An uncaught exception exits with 1, too: a traceback is no finding.
    if done.returncode == _STILL_THERE and "Traceback (most recent call last)" not in done.stderr:
        return Reproduced(Finding.STILL_THERE, printed)
    last = (done.stderr.strip().splitlines() or ["it printed no error"])[-1]
    return Reproduced(Finding.UNKNOWN, f"exit status {done.returncode}: {safe_text(last)}")


def environment_of(one: Reproduction, cache: Path, *, newest: bool = False) -> str:
    """The interpreter of an environment with the script's packages: its versions, or the newest. Raises SideError."""
    if newest:
        return plain_environment(one.unpinned, cache, as_of=date.today().isoformat()).python
    return plain_environment(one.requirements, cache).python


def _read(script: Path) -> Reproduction:
    source = script.read_text(encoding="utf-8")
    heads = [found["content"] for found in _METADATA.finditer(source) if found["type"] == "script"]
    if len(heads) != 1:
        raise ReproductionError(f"{script}: expected one block `# /// script` (PEP 723), found {len(heads)}")
    text = "".join(line[2:] if line.startswith("# ") else line[1:] for line in heads[0].splitlines(keepends=True))
    try:
        requirements = tuple(str(Requirement(each)) for each in tomllib.loads(text)["dependencies"])
    except (tomllib.TOMLDecodeError, KeyError, InvalidRequirement) as error:
        raise ReproductionError(f"{script}: its block `# /// script` cannot be read: {error}") from error
    title = re.search(r'"""(.*?)(?:\.\s|\.?""")', source, re.DOTALL)
    return Reproduction(script.stem, script, " ".join(title[1].split()) if title else "", requirements)
