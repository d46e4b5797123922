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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, metadata, requires, version
from pathlib import Path
from threading import Event
from urllib.parse import urlparse
from urllib.request import url2pathname

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rnnbench import __version__
from rnnbench.cases import Trial
from rnnbench.disk import read_cached, read_plain, remove_anything, write_text
from rnnbench.locks import locked
from rnnbench.outside_text import safe_text
from rnnbench.pipeline.environment_worker import source_digest
from rnnbench.pipeline.pip_errors import NO_INDEX, errors_of, has_no_index
from rnnbench.results import unwritable
from rnnbench.worker import run_helper

INSTALL_LIMIT_S = 1800.0
NEWEST_TOLD = 8
"""Versions of a package that an error names if none of them meets a requirement."""
READY = "ready.json"
"""The file with an environment's packages. An environment that was made here has it once everything is installed."""
LOWER_LAYER = "rnnbench-lower-layer.pth"
"""The file of the upper layer that names the lower one."""
ENVIRONMENTS = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "rnnbench" / "environments"
_VERSIONS = re.compile(r"\(from versions: ([^)]*)\)")
_NAME = re.compile(r"[\w.-]+")
_YANKED = re.compile(r"is a yanked version:.*?Reason for being yanked: *(.*)", re.DOTALL)


class SideError(Exception):
    """A side is no environment, cannot be made, or runs another suite. The message says which, and what to do."""


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
    upper = [_with_its_extras(text, extras) for text in requirements.split()]
    named = {_name(text) for text in upper}
    pins = own_versions()
    suite = this_suite()
    source = [] if suite[0] == "--editable" else [source_digest()]
    lower = _make([*suite, *_needs(extras, named)], pins, None, cache, requirements, source, stop)
    # No pins: pip leaves what the lower layer has, unless the requirements need another version of it.
    return _make(upper, [], Path(lower.python).parents[1], cache, requirements, (), stop)


def extras_of(trials: Iterable[Trial]) -> list[str]:
    """The extras that such trials need, for their devices and backends. Some of these names are no extras.

    A backend may have an extra for a device (`tvm-cuda`), and then needs this one in place of its own. It asks for all
    that the backend needs, and may ask for another package (`onnxruntime-gpu`) with the same module.
    """
    pairs = {(trial.target.backend, trial.device) for trial in trials}
    known_extras = metadata("rnnbench").get_all("Provides-Extra") or ()
    of_both = {(backend, f"{backend}-{device}") for backend, device in pairs if f"{backend}-{device}" in known_extras}
    backends = {backend for backend, _ in pairs} - {backend for backend, _ in of_both}
    return sorted({*backends, *(device for _, device in pairs), *(name for _, name in of_both)})


def plain_environment(requirements: Sequence[str], cache: Path, as_of: str = "") -> MadeEnvironment:
    """An environment with these packages and what they need, without this suite. Raises SideError.

    A version that is not named is the newest when the environment is made. `as_of` tells one day's from another's.
    """
    return _make(list(requirements), [], None, cache, " ".join(requirements), [as_of] if as_of else [])


def this_suite() -> list[str]:
    """pip's arguments to install the rnnbench that runs, from where it came from (PEP 610)."""
    origin = distribution("rnnbench").read_text("direct_url.json")
    if origin is None:
        return [f"rnnbench=={__version__}"]
    direct = json.loads(origin)
    if direct.get("dir_info", {}).get("editable"):
        return ["--editable", url2pathname(urlparse(direct["url"]).path)]
    if "vcs_info" in direct:
        vcs = direct["vcs_info"]
        return [f"rnnbench @ {vcs['vcs']}+{direct['url']}@{vcs['commit_id']}"]
    return [f"rnnbench @ {direct['url']}"]


def own_versions() -> list[str]:
    """The packages that the suite itself needs, pinned to the versions that run.

    Two environments made on different days then differ in what was asked for, and not in NumPy.
    """
    suite_requirements = [
        text for text in metadata("rnnbench").get_all("Requires-Dist") or () if "extra ==" not in text
    ]
    return [f"{_name(text)}=={version(_name(text))}" for text in suite_requirements]


def _needs(extras: Sequence[str], named: set[str]) -> list[str]:
    """All else that these extras ask for, or that every version of the named packages asks for, as it runs here."""
    needed = _required_by(extras)
    for name in sorted(named):
        needed += [each for each in _requirements_of(name) if _applies(each, "") and not _is_capped(each)]
    others: dict[str, Requirement] = {}
    for each in needed:
        if each.name != "rnnbench":
            others.setdefault(canonicalize_name(each.name), each).extras |= each.extras
    suite_packages = {_name(pin) for pin in own_versions()}
    return [_as_here(others[name]) for name in sorted(others.keys() - named - suite_packages)]


def _required_by(extras: Sequence[str]) -> list[Requirement]:
    """The requirements of these extras of the suite, and of the extras that they name."""
    texts = [text for text in metadata("rnnbench").get_all("Requires-Dist") or () if "extra ==" in text]
    requested = [each for each in map(Requirement, texts) for extra in extras if _applies(each, extra)]
    named = {name for each in requested if each.name == "rnnbench" for name in each.extras} - set(extras)
    return [*requested, *(_required_by(sorted(named)) if named else ())]


def _with_its_extras(text: str, extras: Sequence[str]) -> str:
    """The requirement with those extras of its package that the suite's extras name: `jax[cuda13]==0.10.2`."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return text
    for each in _required_by(extras):
        if canonicalize_name(each.name) == canonicalize_name(requirement.name):
            requirement.extras |= each.extras
    return str(requirement) if requirement.extras else text


def _requirements_of(name: str) -> list[Requirement]:
    try:
        return [Requirement(text) for text in requires(name) or ()]
    except PackageNotFoundError:
        return []


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _is_capped(requirement: Requirement) -> bool:
    """Whether other versions of the package ask for another version of this one."""
    return any(each.operator not in (">=", ">", "!=") for each in requirement.specifier)


def _as_here(requirement: Requirement) -> str:
    """The requirement, pinned to the version that runs here, if one does."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    try:
        return f"{requirement.name}{extras}=={version(requirement.name)}"
    except PackageNotFoundError:
        return f"{requirement.name}{extras}{requirement.specifier}"


def _make(
    wanted: Sequence[str],
    pins: Sequence[str],
    lower: Path | None,
    cache: Path,
    requirements: str,
    source: Sequence[str] = (),
    stop: Event | None = None,
) -> MadeEnvironment:
    """Make one layer. `lower` is the layer below it."""
    below = lower and _below(lower)
    content = [list(wanted), list(pins), below, list(source), sys.version]
    folder = cache / hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
    python = folder / "bin" / "python"
    _require_writable(cache)
    with locked(cache / f"{folder.name}.lock"):
        if (made := _intact(folder)) is not None:
            return made
        remove_anything(folder)
        run_installer([sys.executable, "-m", "venv", "--without-pip", str(folder)], requirements, stop)
        constraints = folder / "constraints.txt"
        constraints.write_text("\n".join(pins) + "\n")
        if below:
            (site_packages(folder) / LOWER_LAYER).write_text(f"{below}\n")
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        messages = run_installer([*pip, "--constraint", str(constraints), *wanted], requirements, stop)
        yanked = _YANKED.search(messages)
        made = MadeEnvironment(str(python), safe_text(yanked[1].strip() or "no reason given") if yanked else "")
        ready = {"requirements": requirements, "yanked": made.yanked, "packages": _packages(folder)}
        write_text(folder / READY, json.dumps(ready, indent=2) + "\n")
    return made


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
    ready = read_cached(folder / READY, lambda path: json.loads(read_plain(path)))
    python = folder / "bin" / "python"
    if not isinstance(ready, dict) or not python.exists() or ready.get("packages") != _packages(folder):
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


def _name(requirement: str) -> str:
    found = _NAME.match(requirement)
    return canonicalize_name(found[0]) if found else requirement


def _shortened(said: str) -> str:
    """pip's error with only the newest of the versions that it lists. pip lists all that there ever were."""
    found = _VERSIONS.search(said)
    if found is None:
        return said
    versions = found[1].split(", ")
    if len(versions) <= NEWEST_TOLD:
        return said
    newest = ", ".join(versions[-NEWEST_TOLD:])
    return f"{said[: found.start()]}(the newest of {len(versions)} versions: {newest}){said[found.end() :]}"


def run_installer(command: list[str], requirements: str, stop: Event | None = None) -> str:
    """Run it. Returns what it printed on standard error."""
    try:
        done = run_helper(command, INSTALL_LIMIT_S, stop=stop)
    except subprocess.TimeoutExpired as error:
        raise SideError(
            f"'{requirements}': no environment within {INSTALL_LIMIT_S:.0f} s: {error}; see whether the package index "
            "answers, and run the command again"
        ) from error
    if done.returncode:
        output = done.stderr or done.stdout
        message = NO_INDEX if has_no_index(output) else _shortened(errors_of(output, 2))
        raise SideError(f"'{requirements}': the environment could not be made: {message}")
    return done.stderr
