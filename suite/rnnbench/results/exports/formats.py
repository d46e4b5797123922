"""The formats that the modules of this folder declare."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from rnnbench.results.exports.export import Export

_NO_FORMATS = ("export", "formats")


def _declared() -> dict[str, Export]:
    package = __name__.rpartition(".")[0]
    folder = import_module(package).__path__
    names = sorted(module.name for module in iter_modules(folder) if module.name not in _NO_FORMATS)
    exports: list[Export] = [import_module(f"{package}.{name}").EXPORT for name in names]
    return {export.name: export for export in exports}


EXPORTS: Mapping[str, Export] = _declared()
"""By name."""
