"""The time of imports inside a timed interval, so that it can be left out."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Self

_WORK = ("create_module", "exec_module")
"""The methods of a loader that take time: they map an extension into memory and run a module's code."""


class ImportClock:
    """A context manager that adds up the seconds of this thread's imports. Nested imports count once.

    It becomes the interpreter's first finder, which asks the other finders and times the loaders that they return. Only
    one clock may be entered at a time.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds = 0.0
        self._clock = clock
        self._thread = threading.get_ident()
        self._depth = 0

    def __enter__(self) -> Self:
        sys.meta_path.insert(0, self)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.meta_path.remove(self)

    @property
    def is_importing(self) -> bool:
        """Whether the thread that made this clock calls it during an import."""
        return self._depth > 0 and threading.get_ident() == self._thread

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of the other finders (importlib.abc.MetaPathFinder), with a timed loader."""
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((spec for spec in specs if spec is not None), None)
        # The loaders of built-in and frozen modules are classes, shared by all modules, and take almost no time.
        if spec is not None and spec.loader is not None and not isinstance(spec.loader, type):
            for work in _WORK:
                if hasattr(spec.loader, work):
                    setattr(spec.loader, work, self._timed(spec.loader, work))
        return spec

    def _timed(self, loader: Any, work: str) -> Callable[..., Any]:
        untimed = getattr(loader, work)

        def timed(*arguments: Any) -> Any:
            vars(loader).pop(work, None)
            outermost = self._depth == 0 and threading.get_ident() == self._thread
            if not outermost:
                return untimed(*arguments)
            self._depth, start = 1, self._clock()
            try:
                return untimed(*arguments)
            finally:
                self._depth = 0
                self.seconds += self._clock() - start

        return timed
