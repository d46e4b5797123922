"""Packages with their versions as one text, as rows and the history have them: `onnx 1.20.0, onnxruntime 1.24.1`.

Some distributions have the same module, and a machine has one of them. They are built from one source, and are one
package here: in ranges of versions, and where the versions of two runs are compared. A text has the distribution's own
name, by which pip can install it.
"""

from __future__ import annotations

from collections.abc import Mapping

IN_PLACE_OF: Mapping[str, str] = {"onnxruntime-gpu": "onnxruntime"}
"""Each distribution that takes the place of another one with the same module, and the name of that one."""


def versions_text(versions: Mapping[str, str]) -> str:
    """The text, sorted by package; empty for no package."""
    return ", ".join(f"{package} {version}" for package, version in sorted(versions.items()))


def parse_versions(text: str) -> dict[str, str]:
    """The packages of such a text. A part without a space names no version, and is left out."""
    return dict(part.rsplit(" ", 1) for part in text.split(", ") if " " in part)


def version_of(package: str, versions: Mapping[str, str]) -> str | None:
    """The version of a package, from versions by distribution; None if none of its distributions is among them."""
    if package in versions:
        return versions[package]
    name = IN_PLACE_OF.get(package, package)
    return next((version for each, version in versions.items() if IN_PLACE_OF.get(each, each) == name), None)


def by_package(versions: Mapping[str, str]) -> dict[str, str]:
    """Versions by package, to compare them. A distribution in the place of another one is named beside its version."""
    by_package = dict[str, str]()
    for name, version in versions.items():
        package, text = IN_PLACE_OF.get(name, name), f"{version} ({name})" if name in IN_PLACE_OF else version
        by_package[package] = f"{by_package[package]}, {text}" if package in by_package else text
    return by_package
