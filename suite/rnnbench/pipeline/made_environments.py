"""Virtual environments, made from requirements, kept under a digest of their content, and used again.

An environment has two layers. The lower one, shared by many, has this suite and what every release of a package needs.
The upper one has what the requirements name. Python finds a package in the upper layer first.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from rnnbench.content_digest import intact, text_with_digest
from rnnbench.disk import read_cached, read_plain, remove_anything, write_bytes
from rnnbench.locks import locked
from rnnbench.outside_text import one_line, safe_text
from rnnbench.pipeline.environment_packages import (
    own_metadata,
    own_versions,
    package_name,
    requirements_beside,
    this_suite,
    with_extras,
)
from rnnbench.pipeline.environment_worker import source_digest
from rnnbench.pipeline.pip_errors import NO_INDEX, error_of_disk_in, errors_of, has_no_index
from rnnbench.pipeline.progress import told_again
from rnnbench.results import unwritable
from rnnbench.temporary import MADE
from rnnbench.worker import run_helper

INSTALL_LIMIT_S = 1800.0
NAMED_VERSIONS = 8
"""Versions of a package that an error names if none of them meets a requirement."""
LONGEST_TOLD = 400
"""Most characters of what is said of an environment that is being made."""
FREE_SPACE = (
    "free space on the disks of the environments and of temporary files, or name other folders with --environments and "
    "TMPDIR"
)
LOWER_LAYER = "rnnbench-lower-layer.pth"
"""The file of the upper layer that names the lower one."""
ENVIRONMENTS = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "rnnbench" / "environments"
_VERSIONS = re.compile(r"\(from versions: ([^)]*)\)")
_YANKED = re.compile(r"is a yanked version:.*?Reason for being yanked: *(.*)", re.DOTALL)


class SideError(Exception):
    """A side is no environment, cannot be made, or runs another suite. The message says which, and what to do."""


class NotNowError(SideError):
    """This machine can make no environment now: its disk is full, or no package index answers. Nobody's release is at
    fault, and another try may succeed.
    """


@dataclass(frozen=True)
class MadeEnvironment:
    """An environment that was made here."""

    python: str
    yanked: str = ""
    """Why its makers withdrew one of its packages; empty if they did not."""


def make_environment(
    requirements: str, extras: Sequence[str], cache: Path, stop: Event | None = None
) -> MadeEnvironment:
    """The environment with this suite, what its `extras` ask for, and `requirements`. Made if it is missing or damaged.

    `extras_of` has the extras that trials need. Versions in `requirements` win over those that the suite asks for.
    `stop` is that of `run_helper`. Raises SideError and HelperStoppedError.
    """
    lower, upper = _layers(requirements, extras, cache)
    _make(lower, stop)
    return _make(upper, stop)


def is_made(requirements: str, extras: Sequence[str], cache: Path) -> bool:
    """Whether `make_environment` would install nothing."""
    return all(_intact(layer.folder) is not None for layer in _layers(requirements, extras, cache))


def plain_environment(requirements: Sequence[str], cache: Path, as_of: str = "") -> MadeEnvironment:
    """An environment with these packages and what they need, without this suite. Raises SideError.

    A version that is not named is the newest when the environment is made. `as_of` tells one day's from another's.
    """
    text = " ".join(requirements)
    return _make(_Layer(text, text, tuple(requirements), cache, source=(as_of,) if as_of else ()))


@dataclass(frozen=True)
class _Layer:
    """One layer of an environment, made or not.

    Each clone, interpreter and user has layers of its own. A user may lack the rights to the layers of another user.
    """

    requirements: str
    """Those of the whole environment, for messages."""
    content: str
    """What it has, in words."""
    wanted: tuple[str, ...]
    """pip's arguments."""
    cache: Path
    pins: tuple[str, ...] = ()
    below: str | None = None
    """The line that puts it above another layer."""
    source: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        facts = (sys.version, sys.base_prefix, os.geteuid())
        content = [list(self.wanted), list(self.pins), self.below, list(self.source), *facts]
        return self.cache.absolute() / hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def _layers(requirements: str, extras: Sequence[str], cache: Path) -> tuple[_Layer, _Layer]:
    """The lower and the upper layer of an environment with this suite."""
    wanted = tuple(with_extras(text, extras) for text in requirements.split())
    suite = this_suite()
    beside = requirements_beside(extras, {package_name(text) for text in wanted})
    source = own_metadata() if suite[0] == "--editable" else [source_digest()]
    lower = _Layer(
        requirements, "this suite", (*suite, *beside), cache, pins=tuple(own_versions()), source=tuple(source)
    )
    # No pins: pip leaves what the lower layer has, unless the requirements need another version of it.
    return lower, _Layer(requirements, requirements, wanted, cache, below=_below(lower.folder))


def _make(layer: _Layer, stop: Event | None = None) -> MadeEnvironment:
    """Make one layer, unless it is there. What is installed is said on standard error: it takes minutes."""
    folder, cache = layer.folder, layer.cache
    _require_writable(cache)
    with locked(cache / f"{folder.name}.lock"):
        if (environment := _intact(folder)) is not None:
            return environment
        told = f"installing {layer.content} into an environment of its own, which is kept; this may take minutes"
        with told_again(one_line(told, LONGEST_TOLD)):
            return _installed(layer, stop)


def _installed(layer: _Layer, stop: Event | None) -> MadeEnvironment:
    """Make a layer anew."""
    folder, requirements = layer.folder, layer.requirements
    python = str(folder / "bin" / "python")
    remove_anything(folder)
    run_installer([sys.executable, "-m", "venv", "--without-pip", str(folder)], requirements, stop)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(layer.pins) + "\n")
    if layer.below:
        (site_packages(folder) / LOWER_LAYER).write_text(f"{layer.below}\n")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    messages = run_installer([*pip, "--constraint", str(constraints), *layer.wanted], requirements, stop)
    yanked = _YANKED.search(messages)
    environment = MadeEnvironment(python, safe_text(yanked[1].strip() or "no reason given") if yanked else "")
    ready = {"requirements": requirements, "yanked": environment.yanked, "packages": _packages(folder)}
    write_bytes(folder / MADE, text_with_digest(json.dumps(ready)))
    return environment


def _require_writable(cache: Path) -> None:
    """Raises StoreError, with the option that names another folder, if no environment can be made there."""
    try:
        if cache.parts[:1] == ("~",):
            raise FileNotFoundError(errno.ENOENT, "this user has no home folder", str(cache))
        cache.mkdir(parents=True, exist_ok=True)
        if not os.access(cache, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(cache))
    except OSError as error:
        raise unwritable(cache, error, "--environments") from error


def _intact(folder: Path) -> MadeEnvironment | None:
    """The environment in the folder. None unless it was finished and still has every package that it had then."""
    ready = read_cached(folder / MADE, lambda path: json.loads(intact(read_plain(path))))
    python = folder / "bin" / "python"
    if not isinstance(ready, dict) or not os.access(python, os.X_OK) or ready.get("packages") != _packages(folder):
        return None
    return MadeEnvironment(str(python), str(ready.get("yanked", "")))


def site_packages(folder: Path) -> Path:
    """The folder of packages of an environment with this Python's version."""
    return folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def _below(lower: Path) -> str:
    """The line that puts a layer below another one.

    A suite that is installed as editable has a .pth file of its own there, and Python reads those in site folders only.
    """
    return f"import site; site.addsitedir({str(site_packages(lower))!r})"


def _packages(folder: Path) -> list[str]:
    return sorted(path.name for path in site_packages(folder).glob("*.dist-info"))


def _shortened(said: str) -> str:
    """pip's error with only the newest of the versions that it lists. pip lists all that there ever were."""
    match = _VERSIONS.search(said)
    if match is None:
        return said
    versions = match[1].split(", ")
    if len(versions) <= NAMED_VERSIONS:
        return said
    newest = ", ".join(versions[-NAMED_VERSIONS:])
    return f"{said[: match.start()]}(the newest of {len(versions)} versions: {newest}){said[match.end() :]}"


def run_installer(command: list[str], requirements: str, stop: Event | None = None) -> str:
    """Run it. Returns what it printed on standard error. Raises SideError."""
    try:
        process = run_helper(command, INSTALL_LIMIT_S, stop=stop)
    except subprocess.TimeoutExpired as error:
        raise SideError(
            f"'{requirements}': no environment within {INSTALL_LIMIT_S:.0f} s: {error}; see whether the package index "
            "answers, and run the command again"
        ) from error
    if process.returncode:
        output = process.stderr or process.stdout
        failed = f"'{requirements}': the environment could not be made:"
        if of_disk := error_of_disk_in(output):
            raise NotNowError(f"{failed} {of_disk}; {FREE_SPACE}")
        if has_no_index(output):
            raise NotNowError(f"{failed} {NO_INDEX}")
        raise SideError(f"{failed} {_shortened(errors_of(output, 2))}")
    return process.stderr
