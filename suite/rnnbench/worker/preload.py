"""Importing the modules of builds and checks once, in the worker that forks a child for each trial.

A converter is not imported beforehand: TensorFlow takes longer to import than a network takes to convert.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress

from rnnbench.conformance import freeze_for_good


def modules_since(before: Collection[str]) -> tuple[str, ...]:
    """The modules loaded from files that are not in `before`. Packages come before their submodules."""
    new = [(name, module) for name, module in list(sys.modules.items()) if name not in before]
    names = [
        name
        for name, module in new
        if (spec := getattr(module, "__spec__", None)) is not None and spec.has_location and spec.name == name
    ]
    return tuple(sorted(names, key=lambda name: name.count(".")))


def preload(names: Iterable[str]) -> None:
    """Import the modules. A module whose import fails here is left to the child that needs it."""
    for name in names:
        if name not in sys.modules:
            with suppress(Exception):
                importlib.import_module(name)


def freeze() -> None:
    """Freeze all objects in memory, so that the garbage collectors of children skip them."""
    gc.collect()
    freeze_for_good()
