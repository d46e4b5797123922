"""A runtime's own way to time an artifact: what its `bound` calls are held against.

A backend that has one says so in a module `fidelity` beside its adapter, with a function
`own_tool(program, request, cache) -> Tool`; one whose runtime has none raises NoToolError there, with the reason.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast

from rnnbench.backends.base import Backend, Program, Request

Statistic = Literal["mean", "median"]


class NoToolError(Exception):
    """Why a program cannot be timed by its runtime's own tool."""


@dataclass(frozen=True)
class Tool:
    name: str
    statistic: Statistic
    """What the tool gives of many calls; `bound` is summed up in the same way."""
    seconds_per_call: Callable[[float], float]
    """Time the artifact for about so many seconds, calls as the tool makes them."""
    empty: Callable[[], object]
    """The least that a call from Python costs in this runtime: of something that does nothing."""
    note: str = ""
    """What the tool does in each call that `bound` does not, where a reader must know: a sentence."""


def own_tool(backend: Backend, program: Program, request: Request, cache: Path) -> Tool:
    """The tool for a program that `backend` built into `cache`. Raises NoToolError."""
    package = type(backend).__module__.rpartition(".")[0]
    name = f"{package}.fidelity"
    if not package or find_spec(name) is None:
        raise NoToolError(f"the adapter of '{backend.name}' knows of no tool of its runtime's own")
    make = cast("Callable[[Program, Request, Path], Tool]", cast(Any, importlib.import_module(name)).own_tool)
    return make(program, request, cache)
