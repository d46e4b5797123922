"""Packages with their versions as one text, as rows and the history have them: `onnx 1.20.0, onnxruntime 1.24.1`."""

from __future__ import annotations

from collections.abc import Mapping


def versions_text(versions: Mapping[str, str]) -> str:
    """The text, sorted by package; empty for no package."""
    return ", ".join(f"{package} {version}" for package, version in sorted(versions.items()))


def parse_versions(text: str) -> dict[str, str]:
    """The packages of such a text. A part without a space names no version, and is left out."""
    return dict(part.rsplit(" ", 1) for part in text.split(", ") if " " in part)
