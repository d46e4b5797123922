"""A runtime's own way to time an artifact: what `bound` calls are compared with.

A backend whose runtime has such a tool has a module `timing_tool` beside its adapter, here or in another distribution,
with a function `own_tool(program, request, cache) -> Tool`. It raises NoToolError where a program cannot be timed that
way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Statistic = Literal["mean", "median"]


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
