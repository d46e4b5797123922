"""Functions that a program has put its own in place of: those of Python, of NumPy and of the suite.

The checks compare with them and the samplers time with them, so nothing that they say is known once one is replaced.
Names are compared with what they were when they were first seen, before any framework was imported.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import is_, itemgetter
from types import ModuleType
from typing import Any

import numpy as np

SUITE = "rnnbench"
KINDS = (type, ModuleType, property, staticmethod, classmethod)
"""What is compared besides what can be called. Other values may change: they are caches and counters."""


@dataclass(frozen=True)
class Names:
    """Names of one module or class, and what they stand for."""

    owner: ModuleType | type
    values: Mapping[str, Any]
    read: Callable[[Mapping[str, Any]], Any]
    """Reads all of them at once."""
    originals: Any

    def replaced(self) -> Iterator[str]:
        """The names that stand for something else, or for nothing."""
        now = vars(self.owner)
        try:
            if all(map(is_, self.read(now), self.originals)):
                return
        except KeyError:
            pass
        yield from (name for name, original in self.values.items() if now.get(name) is not original)


class Functions:
    """All that is compared. A module of the suite is taken up when it is first seen."""

    def __init__(self) -> None:
        self._modules: set[str] = set()
        self._names: list[Names] = []
        for module in (builtins, np, np.linalg):
            self._take_up(module)

    def replaced(self) -> tuple[str, ...]:
        """Their full names, in order: `numpy.abs`."""
        self._take_up_new_modules()
        return tuple(f"{_name_of(names.owner)}.{name}" for names in self._names for name in names.replaced())

    def put_back(self) -> None:
        for names in self._names:
            for name in names.replaced():
                setattr(names.owner, name, names.values[name])

    def _take_up_new_modules(self) -> None:
        for name in [name for name in sys.modules if name.startswith(SUITE) and name not in self._modules]:
            self._modules.add(name)
            module = sys.modules[name]
            if name.partition(".")[0] == SUITE and isinstance(module, ModuleType):
                self._take_up(module)
                for value in list(vars(module).values()):
                    if isinstance(value, type) and value.__module__ == name:
                        self._take_up(value)

    def _take_up(self, owner: ModuleType | type) -> None:
        values = {
            name: value
            for name, value in vars(owner).items()
            if not name.startswith("__") and (callable(value) or isinstance(value, KINDS))
        }
        if values:
            # `itemgetter` of a single name gives no tuple.
            read = itemgetter(*values, next(iter(values)))
            self._names.append(Names(owner, values, read, read(values)))


def _name_of(owner: ModuleType | type) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"


FUNCTIONS = Functions()
