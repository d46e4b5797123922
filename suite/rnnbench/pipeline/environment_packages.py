"""The packages of an environment that is made: this suite, what it needs, and what the extras of its trials ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, distribution, metadata, requires, version
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

import rnnbench
from rnnbench import __version__
from rnnbench.cases import Trial

_NAME = re.compile(r"[\w.-]+")


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


def own_clone() -> Path | None:
    """The clone whose suite runs; None where an installed one does.

    It may run with the packages of another clone, whose metadata names that one.
    """
    clone = Path(rnnbench.__file__).resolve().parents[2]
    return clone if (clone / "pyproject.toml").is_file() else None


def this_suite() -> list[str]:
    """pip's arguments to install the rnnbench that runs: its clone, or where it came from (PEP 610)."""
    if (clone := own_clone()) is not None:
        return ["--editable", str(clone)]
    origin = distribution("rnnbench").read_text("direct_url.json")
    if origin is None:
        return [f"rnnbench=={__version__}"]
    direct = json.loads(origin)
    if "vcs_info" in direct:
        vcs = direct["vcs_info"]
        return [f"rnnbench @ {vcs['vcs']}+{direct['url']}@{vcs['commit_id']}"]
    return [f"rnnbench @ {direct['url']}"]


def own_metadata() -> list[str]:
    """What an installation of the suite keeps of it, also of one that follows its clone: version and entry points."""
    return [
        __version__,
        *sorted(f"{entry.group}: {entry.name} = {entry.value}" for entry in distribution("rnnbench").entry_points),
    ]


def own_versions() -> list[str]:
    """The packages that the suite itself needs, pinned to the versions that run.

    Two environments made on different days then differ in what was asked for, and not in NumPy.
    """
    suite_requirements = [
        text for text in metadata("rnnbench").get_all("Requires-Dist") or () if "extra ==" not in text
    ]
    return [f"{package_name(text)}=={version(package_name(text))}" for text in suite_requirements]


def requirements_beside(extras: Sequence[str], named: set[str]) -> list[str]:
    """All else that these extras ask for, or that every version of the named packages asks for, as it runs here."""
    needed = _required_by(extras)
    for name in sorted(named):
        needed += [
            requirement
            for requirement in requirements_of(name)
            if _applies(requirement, "") and not _is_capped(requirement)
        ]
    others: dict[str, Requirement] = {}
    for requirement in needed:
        if requirement.name != "rnnbench":
            others.setdefault(canonicalize_name(requirement.name), requirement).extras |= requirement.extras
    suite_packages = {package_name(pin) for pin in own_versions()}
    return [_pinned_as_here(others[name]) for name in sorted(others.keys() - named - suite_packages)]


def _required_by(extras: Sequence[str]) -> list[Requirement]:
    """The requirements of these extras of the suite, and of the extras that they name."""
    texts = [text for text in metadata("rnnbench").get_all("Requires-Dist") or () if "extra ==" in text]
    requested = [needed for needed in map(Requirement, texts) for extra in extras if _applies(needed, extra)]
    named = {name for needed in requested if needed.name == "rnnbench" for name in needed.extras} - set(extras)
    return [*requested, *(_required_by(sorted(named)) if named else ())]


def with_extras(text: str, extras: Sequence[str]) -> str:
    """The requirement with those extras of its package that the suite's extras name: `jax[cuda13]==0.10.2`."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return text
    for required in _required_by(extras):
        if canonicalize_name(required.name) == canonicalize_name(requirement.name):
            requirement.extras |= required.extras
    return str(requirement) if requirement.extras else text


def requirements_of(name: str) -> list[Requirement]:
    """What a package asks for; nothing if it is not installed."""
    try:
        return [Requirement(text) for text in requires(name) or ()]
    except PackageNotFoundError:
        return []


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _is_capped(requirement: Requirement) -> bool:
    """Whether other versions of the package ask for another version of this one."""
    return any(specifier.operator not in (">=", ">", "!=") for specifier in requirement.specifier)


def _pinned_as_here(requirement: Requirement) -> str:
    """The requirement, pinned to the version that runs here, if one does."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    try:
        return f"{requirement.name}{extras}=={version(requirement.name)}"
    except PackageNotFoundError:
        return f"{requirement.name}{extras}{requirement.specifier}"


def package_name(requirement: str) -> str:
    """The normalised name of the package that a requirement names."""
    match = _NAME.match(requirement)
    return canonicalize_name(match[0]) if match else requirement
