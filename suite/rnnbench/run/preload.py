"""What builds import, imported once by the worker that forks a child for each trial, and not by every child anew.

A converter is imported when it is first needed: TensorFlow takes longer to import than a network to convert.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress


def modules() -> list[str]:
    """Modules that came from files, packages before what is in them."""
    named = [
        name
        for name, module in list(sys.modules.items())
        if (spec := getattr(module, "__spec__", None)) is not None and spec.has_location and spec.name == name
    ]
    return sorted(named, key=lambda name: name.count("."))


def modules_since(before: Collection[str]) -> list[str]:
    return [name for name in modules() if name not in before]


def preload(names: Iterable[str]) -> None:
    """Import them, and keep the collector from looking at what is here now, again and again, in every child.

    What does not import by itself is left to the child that needs it.
    """
    for name in names:
        if name not in sys.modules:
            with suppress(Exception):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()
