"""Names that a package offers, imported from its modules when they are first asked for (PEP 562).

A run starts hundreds of workers. Each needs a few modules of each package, and importing the rest costs 40 ms and more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, names: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """The `__getattr__` of a package. `names` has the public names of each of its modules."""
    module_of = {name: module for module, of_module in names.items() for name in of_module}

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return load
