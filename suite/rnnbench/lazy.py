"""Names that a package offers, imported from its modules when they are first asked for (PEP 562), and what each of its
modules declares under one name.

A run starts hundreds of workers. Each needs a few modules of each package, and importing the rest costs 40 ms and more.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any


def lazy_names(package: str, file: str) -> tuple[Callable[[str], object], list[str]]:
    """The `__getattr__` and the `__all__` of a package: what its `file` imports under `if TYPE_CHECKING:`."""
    module_of = dict(_imported(package, Path(file).read_text(encoding="utf-8")))

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module_of[name]), name)

    return load, list(module_of)


def _imported(package: str, text: str) -> Iterator[tuple[str, str]]:
    """The names that a file imports for type checkers alone, with their modules, but for modules of the package."""
    conditions = (statement for statement in ast.parse(text).body if isinstance(statement, ast.If))
    for statement in (statement for condition in conditions for statement in condition.body):
        if isinstance(statement, ast.ImportFrom) and statement.module not in (None, package):
            yield from ((imported.name, statement.module) for imported in statement.names)


def declared(package: str, name: str) -> Iterator[Any]:
    """What the modules of a package declare as `name = ...`, in the order of the modules. Others are not imported."""
    declaration = re.compile(rf"^{name}\b[^=\n]*=", re.M)
    for folder in map(Path, import_module(package).__path__):
        for module in sorted(iter_modules([str(folder)])):
            file = folder / module.name / "__init__.py" if module.ispkg else folder / f"{module.name}.py"
            if declaration.search(file.read_text(encoding="utf-8")):
                yield getattr(import_module(f"{package}.{module.name}"), name)
