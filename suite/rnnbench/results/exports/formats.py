"""The formats that the modules of this folder declare."""

from __future__ import annotations

from collections.abc import Mapping

from rnnbench.lazy import declared
from rnnbench.results.exports.export import AnyExport


def _declared() -> dict[str, AnyExport]:
    exports: list[AnyExport] = list(declared("rnnbench.results.exports", "EXPORT"))
    return {export.name: export for export in sorted(exports, key=lambda export: export.name)}


EXPORTS: Mapping[str, AnyExport] = _declared()
"""By name."""
