"""The formats that the modules of this folder declare."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from rnnbench.results.exports.export import AnyExport

_NO_FORMATS = ("export", "formats", "measured")


def _declared() -> dict[str, AnyExport]:
    package = __name__.rpartition(".")[0]
    folder = import_module(package).__path__
    names = sorted(module.name for module in iter_modules(folder) if module.name not in _NO_FORMATS)
    exports: list[AnyExport] = [import_module(f"{package}.{name}").EXPORT for name in names]
    return {export.name: export for export in sorted(exports, key=lambda export: export.name)}


EXPORTS: Mapping[str, AnyExport] = _declared()
"""By name."""
