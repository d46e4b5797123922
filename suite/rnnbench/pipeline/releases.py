"""The releases of a package: the user's list, or those that the package index has for this Python and platform."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rnnbench.disk import read_plain
from rnnbench.pipeline.made_environments import NAMED_VERSIONS, NotNowError, SideError
from rnnbench.pipeline.pip_errors import NO_INDEX, errors_of, has_no_index
from rnnbench.plan import probe_or_stand_in
from rnnbench.spelling import absent, count
from rnnbench.worker import run_helper

INDEX_LIMIT_S = 120.0
_AVAILABLE = re.compile(r"^Available versions: (.+)$", re.MULTILINE)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
COMPANIONS: Mapping[str, Sequence[tuple[str, str]]] = {
    "onnxruntime": (("<1.19", "numpy<2"),),
    "onnxruntime-gpu": (("<1.19", "numpy<2"),),
    "iree-base-compiler": (("", "iree-base-runtime=={major}.{minor}.*"),),
    "jax": (("<0.4.26", "numpy<2 scipy<1.13"),),
}
"""Requirements of releases that their metadata leaves out: a specifier of releases, and the requirement."""


@dataclass(frozen=True)
class Release:
    """One version of a package."""

    package: str
    version: str
    day: str = ""
    """When it came out, ISO 8601; empty if that is not known."""

    @property
    def requirements(self) -> str:
        """What an environment with this release is made from."""
        version = Version(self.version)
        beside = [
            text.format(major=version.major, minor=version.minor)
            for specifier, text in COMPANIONS.get(self.package, ())
            if SpecifierSet(specifier).contains(version, prereleases=True)
        ]
        return " ".join([f"{self.package}=={self.version}", *beside])


def released_package(backend: str) -> str:
    """The package whose releases are a backend's: the first that its probe names. Raises SideError."""
    probe = probe_or_stand_in(backend)
    if not probe.available or not probe.versions:
        raise SideError(f"{backend}: its package is not known here, since it is not installed; give --package NAME")
    return next(iter(probe.versions))


def list_releases(package: str, versions: str = "", listed: Path | None = None) -> tuple[Release, ...]:
    """The releases of a package, the oldest first.

    `versions` is a specifier of PEP 440 (`>=1.24,<1.30`), or the versions themselves (`1.20.1,1.21.0`), which need no
    index. `listed` is a file with a version a line, and its day after it where that is known. Raises SideError.
    """
    plain = [text.strip() for text in versions.split(",") if text.strip()]
    if plain and all(text[0].isdigit() for text in plain):
        wanted = [(text, "") for text in plain]
        chosen, place = SpecifierSet(), "--versions"
    else:
        chosen = _specifier(versions)
        wanted = [(text, "") for text in versions_of_index(package)] if listed is None else _of_file(listed)
        place = str(listed or "the package index")
    try:
        releases = {Version(text): Release(package, text, day) for text, day in wanted}
    except ValueError as error:  # Also of a number with thousands of digits.
        raise SideError(f"{place}: {error}; expected a version such as 1.24.1") from error
    kept = [version for version in sorted(releases) if chosen.contains(version, prereleases=True)]
    if not kept:
        shown = _named_versions(sorted(releases))
        raise SideError(f"{package}: no release is {versions or 'listed'}; the releases are {shown}")
    return tuple(releases[version] for version in kept)


def require_release(requirement: Requirement, of: str) -> None:
    """Raise SideError where the package index has no version that meets a requirement of the text `of`."""
    listed = _versions_of_index(requirement.name, "", "--pre")
    if not any(requirement.specifier.contains(version, prereleases=True) for version in listed):
        newest = ", ".join(listed[:NAMED_VERSIONS])
        raise SideError(
            f"'{of}': the package index has no {requirement.name}{requirement.specifier} for Python "
            f"{platform.python_version()} on this machine; the newest of {count(len(listed), 'version')}: {newest}"
        )


def newest_release(package: str, *, pre: bool = False) -> Release:
    """The newest release that the package index has; with `pre`, a pre-release too. Raises SideError."""
    listed = versions_of_index(package, *(("--pre",) if pre else ()))
    versions = [version for version in map(Version, listed) if pre or not version.is_prerelease]
    if not versions:
        raise SideError(f"{package}: the package index has pre-releases only; ask for them with --pre")
    return Release(package, str(max(versions)))


def between(releases: Iterable[Release], good: Release, bad: Release) -> tuple[Release, ...]:
    """The releases from `good` to `bad`, both of them included, the oldest first."""
    first, last = Version(good.version), Version(bad.version)
    by_version = {Version(release.version): release for release in (*releases, good, bad)}
    return tuple(by_version[version] for version in sorted(by_version) if first <= version <= last)


def newest_of_minors(releases: Sequence[Release]) -> tuple[Release, ...]:
    """The newest release of each minor version. `releases` are the oldest first."""
    versions = ((Version(release.version), release) for release in releases)
    newest = {(version.epoch, version.major, version.minor): release for version, release in versions}
    return tuple(newest.values())


def find_release(releases: Sequence[Release], package: str, text: str, place: str) -> Release:
    """The release with that version. One that is not listed is there all the same. Raises SideError.

    `place` is where the version is written, such as an option.
    """
    try:
        version = Version(text)
    except ValueError as error:
        raise SideError(f"{place} '{text}': expected a version of {package}, such as 1.24.1") from error
    return next((release for release in releases if Version(release.version) == version), Release(package, text))


def _specifier(text: str) -> SpecifierSet:
    try:
        specifier = SpecifierSet(text)
        specifier.contains("0")  # A number with thousands of digits is read now.
    except ValueError as error:
        raise SideError(
            f"--versions '{text}': expected a specifier such as '>=1.24,<1.30', or versions such as 1.24.1,1.25.0"
        ) from error
    return specifier


def _of_file(file: Path) -> list[tuple[str, str]]:
    try:
        lines = read_plain(file).decode().splitlines()
    except FileNotFoundError as error:
        raise SideError(f"{file}: {absent(file)}") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SideError(f"{file}: cannot be read: {reason}; expected a text file with a version a line") from error
    entries = []
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if len(words) > 2 or (len(words) == 2 and not _DAY.fullmatch(words[1])):
            raise SideError(f"{file}:{number}: expected a version, and its day where it is known: 1.24.1 2026-02-17")
        if words:
            entries.append((words[0], words[1] if len(words) == 2 else ""))
    return entries


def versions_of_index(package: str, *options: str) -> list[str]:
    """The versions that pip finds for this Python and platform, by pip's own settings."""
    return _versions_of_index(package, "--list FILE", *options)


def _versions_of_index(package: str, instead: str, *options: str) -> list[str]:
    """As `versions_of_index`. `instead` is the option that needs no index; empty where there is none."""
    command = [sys.executable, "-m", "pip", "index", "versions", package, "--disable-pip-version-check", *options]
    other, option = (f"; or give {instead}", " (--package)") if instead else ("", "")
    try:
        process = run_helper(command, INDEX_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SideError(f"{package}: the package index gave no answer: {error}{other}") from error
    match = _AVAILABLE.search(process.stdout)
    if process.returncode or match is None:
        if has_no_index(process.stderr):
            raise NotNowError(f"{package}: {NO_INDEX}{other}")
        raise SideError(
            f"{package}: the package index names no releases: {errors_of(process.stderr, 1)}; "
            f"check the name{option}{other}"
        )
    return [text.strip() for text in match[1].split(",")]


def _named_versions(versions: Sequence[Version]) -> str:
    if len(versions) <= 6:
        return ", ".join(map(str, versions)) or "none"
    return f"{versions[0]}, {versions[1]}, … {versions[-1]} ({len(versions)})"
