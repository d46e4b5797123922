"""Functions and modules that a program has put its own in place of: those of Python, of NumPy and of the suite.

The checks compare with them and the samplers time with them, so nothing that they say is known once one is replaced.
Names are compared with what they were when they were first seen, before any framework was imported.
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
"""What is compared besides what can be called. Other values may change: they are caches and counters."""


@dataclass(frozen=True)
class Names:
    """Names of one module or class, or of `sys.modules`, and what they stand for."""

    owner: str
    """Its full name."""
    namespace: Callable[[], Mapping[str, Any]]
    put: Callable[[str, Any], object]
    values: Mapping[str, Any]
    read: Callable[[Mapping[str, Any]], Any]
    """Reads all of them at once."""
    originals: Any
    may_go: bool
    """Whether a name may come to stand for nothing: a module may be removed, so that it is imported anew."""

    def replaced(self) -> Iterator[str]:
        """The names that stand for something else."""
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
    """All that is compared. A module of the suite is taken up when it is first seen."""

    def __init__(self) -> None:
        self._modules: set[str] = set()
        self._last_seen: tuple[int, str] = (0, "")
        """How many modules there were when new ones were last looked for, and the last one imported."""
        self._names: list[Names] = []
        self._reads: list[Callable[[Mapping[str, Any]], Any]] = []
        self._namespaces: list[Mapping[str, Any]] = []
        """Of `_names`. No module or class ever gets another one."""
        self._originals: list[Any] = []
        """What `_reads` give of `_namespaces`, one after the other."""
        for module in (builtins, np, np.linalg):
            self._take_up(module)
        standard = {name: module for name, module in list(sys.modules.items()) if name in sys.stdlib_module_names}
        self._standard = _names("sys.modules", lambda: sys.modules, sys.modules.__setitem__, standard, may_go=True)

    def replaced(self) -> tuple[str, ...]:
        """Their full names, in order: `numpy.abs`."""
        self._take_up_new_modules()
        changed = [self._standard] if self._are_as_first_seen() else [*self._names, self._standard]
        return tuple(f"{names.owner}.{name}" for names in changed for name in names.replaced())

    def put_back(self) -> None:
        for names in (*self._names, self._standard):
            names.put_back()

    def _are_as_first_seen(self) -> bool:
        """Whether no name of a module or a class stands for something else: one look at all of them, without a loop in
        Python. Every check asks."""
        try:
            return all(map(is_, chain.from_iterable(map(call, self._reads, self._namespaces)), self._originals))
        except KeyError:
            return False

    def _take_up_new_modules(self) -> None:
        there = list(sys.modules)  # In one step, since another thread may import.
        last_seen = len(there), there[-1]
        if last_seen == self._last_seen:
            return
        self._last_seen = last_seen
        for name in [name for name in there if name.startswith(SUITE) and name not in self._modules]:
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
            if not name.startswith("__") and (callable(value) or isinstance(value, KINDS))
        }
        if values:
            names = _names(_name_of(owner), lambda: vars(owner), partial(setattr, owner), values)
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


def _name_of(owner: ModuleType | type) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"


FUNCTIONS = Functions()
