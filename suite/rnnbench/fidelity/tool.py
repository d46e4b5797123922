"""A runtime's own way to time an artifact: what `bound` calls are compared with.

`fidelity/tools/` has a module for each backend whose runtime has such a tool, named as the backend, with a function
`own_tool(program, request, cache) -> Tool`. It raises NoToolError where a program cannot be timed that way. These
modules know the inside of their adapters: they run the same artifact by another way.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast

from rnnbench.backends import Backend, Program, Request

Statistic = Literal["mean", "median"]
TOOLS = "rnnbench.fidelity.tools"


class NoToolError(Exception):
    """Why a program cannot be timed by its runtime's own tool."""


@dataclass(frozen=True)
class Tool:
    """A runtime's own tool, ready to time one artifact."""

    name: str
    statistic: Statistic
    """What the tool gives of many calls. `bound` is summarised in the same way."""
    seconds_per_call: Callable[[float], float]
    """Time the artifact for about so many seconds, calls as the tool makes them."""
    empty: Callable[[], object]
    """The least that a call from Python costs in this runtime: of something that does nothing."""
    note: str = ""
    """What the tool does in each call that `bound` does not, where a reader must know: a sentence."""


def tool_for(backend: Backend, program: Program, request: Request, cache: Path) -> Tool:
    """The tool for a program that `backend` built into `cache`. Raises NoToolError."""
    name = f"{TOOLS}.{backend.name}"
    if find_spec(name) is None:
        raise NoToolError(f"no tool of the runtime of '{backend.name}' is known")
    make = cast("Callable[[Program, Request, Path], Tool]", cast(Any, importlib.import_module(name)).own_tool)
    return make(program, request, cache)
