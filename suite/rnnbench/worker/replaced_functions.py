"""Finding functions, modules and constants of Python, NumPy and the suite that a program has replaced.

Checks compare with these and samplers time with them, so their results mean nothing once one is replaced.
Each name is compared with its object when it was first seen, before any framework was imported.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import call, is_, itemgetter
from types import ModuleType
from typing import Any

import numpy as np

SUITE = "rnnbench"
KINDS = (type, ModuleType, property, staticmethod, classmethod)
"""The types that are compared in addition to callables and constants, whose names have no small letters. Other values
may change: they are caches and counters."""


@dataclass(frozen=True)
class Names:
    """Names of one module or class, or of `sys.modules`, and the objects that they stood for at first."""

    owner: str
    """Its full name."""
    namespace: Callable[[], Mapping[str, Any]]
    put: Callable[[str, Any], object]
    values: Mapping[str, Any]
    read: Callable[[Mapping[str, Any]], Any]
    """Reads all of them at once."""
    originals: Any
    may_go: bool
    """Whether a name may be removed: a module may be removed so that it is imported anew."""

    def replaced(self) -> Iterator[str]:
        """The names that stand for another object now."""
        now = self.namespace()
        try:
            if all(map(is_, self.read(now), self.originals)):
                return
        except KeyError:
            pass
        for name, original in self.values.items():
            if now.get(name, original if self.may_go else None) is not original:
                yield name

    def put_back(self) -> None:
        for name in list(self.replaced()):
            self.put(name, self.values[name])


class Functions:
    """All names that are compared. A module of the suite is added when it is first seen."""

    def __init__(self) -> None:
        self._modules: set[str] = set()
        self._last_seen: tuple[int, str] = (0, "")
        """The number of modules, and the last one imported, when new ones were last looked for."""
        self._names: list[Names] = []
        self._reads: list[Callable[[Mapping[str, Any]], Any]] = []
        self._namespaces: list[Mapping[str, Any]] = []
        """The namespaces of `_names`. A module or class keeps its namespace."""
        self._originals: list[Any] = []
        """The first results of `_reads` on `_namespaces`, concatenated."""
        for module in (builtins, np, np.linalg):
            self._take_up(module)
        standard = {name: module for name, module in list(sys.modules.items()) if name in sys.stdlib_module_names}
        self._standard = _names("sys.modules", lambda: sys.modules, sys.modules.__setitem__, standard, may_go=True)

    def replaced(self) -> tuple[str, ...]:
        """The full names of what is replaced, in order: `numpy.abs`."""
        self._take_up_new_modules()
        changed = [self._standard] if self._are_as_first_seen() else [*self._names, self._standard]
        return tuple(f"{names.owner}.{name}" for names in changed for name in names.replaced())

    def put_back(self) -> None:
        for names in (*self._names, self._standard):
            names.put_back()

    def _are_as_first_seen(self) -> bool:
        """Whether every name of the modules and classes stands for its first object.

        Every check calls this, so it has no loop in Python.
        """
        try:
            return all(map(is_, chain.from_iterable(map(call, self._reads, self._namespaces)), self._originals))
        except KeyError:
            return False

    def _take_up_new_modules(self) -> None:
        modules = list(sys.modules)  # In one step, since another thread may import.
        last_seen = len(modules), modules[-1]
        if last_seen == self._last_seen:
            return
        self._last_seen = last_seen
        for name in [name for name in modules if name.startswith(SUITE) and name not in self._modules]:
            self._modules.add(name)
            module = sys.modules.get(name)
            if name.partition(".")[0] == SUITE and isinstance(module, ModuleType):
                self._take_up(module)
                for value in list(vars(module).values()):
                    if isinstance(value, type) and value.__module__ == name:
                        self._take_up(value)

    def _take_up(self, owner: ModuleType | type) -> None:
        values = {
            name: value
            for name, value in list(vars(owner).items())
            if not name.startswith("__") and (callable(value) or isinstance(value, KINDS) or name.isupper())
        }
        if values:
            name = owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"
            names = _names(name, lambda: vars(owner), partial(setattr, owner), values)
            self._names.append(names)
            self._reads.append(names.read)
            self._namespaces.append(vars(owner))
            self._originals += names.originals


def _names(
    owner: str,
    namespace: Callable[[], Mapping[str, Any]],
    put: Callable[[str, Any], object],
    values: Mapping[str, Any],
    *,
    may_go: bool = False,
) -> Names:
    read = itemgetter(*values, next(iter(values)))  # Of a single name it gives no tuple.
    return Names(owner, namespace, put, values, read, read(values), may_go)


FUNCTIONS = Functions()
