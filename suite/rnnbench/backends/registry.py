"""Finds backends by their entry point (`rnnbench.backends`).

What is found here is run here. The suite's own process calls no adapter: `rnnbench.plan` asks it in another one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from rnnbench.backends.answers import AdapterError, BackendError, CheckedBackend
from rnnbench.backends.base import Backend, Program, Request
from rnnbench.backends.explanation import Explanation, Unreadable
from rnnbench.backends.shared import CompoundProgram, JoiningBackend, joined_explanation
from rnnbench.backends.timing_tool import NoToolError, Tool
from rnnbench.outside_text import describe_error, safe_text
from rnnbench.rnn import CompoundNetwork
from rnnbench.spelling import hint

__all__ = ["BackendError", "entry_of", "explanation_for", "find", "names", "tool_for"]

GROUP = "rnnbench.backends"


@cache
def find(name: str) -> Backend:
    """The backend of that name. Raises BackendError: AdapterError where its module cannot be imported."""
    entry = entry_of(name)
    try:
        return CheckedBackend(name, JoiningBackend(name, cast("Callable[[], Backend]", entry.load())()))
    except MemoryError:
        raise
    except Exception as error:
        what = f"backend '{name}' ({entry.value}) cannot be loaded: {describe_error(error)}"
        raise AdapterError(f"{what}; repair or uninstall the package that provides it") from error


@cache
def entry_of(name: str) -> EntryPoint:
    """Where the backend of that name is. Raises BackendError."""
    places = {entry.value: entry for entry in entry_points(group=GROUP) if entry.name == name}
    if not places:
        raise BackendError(f"unknown backend '{name}'; {hint(name, names())}")
    if len(places) > 1:
        several = f"several packages have a backend '{name}': {safe_text(', '.join(sorted(places)), 200)}"
        raise BackendError(f"{several}; rename it in one of them, or uninstall one")
    return next(iter(places.values()))


def tool_for(backend: str, program: Program, request: Request, cache: Path) -> Tool:
    """The runtime's own tool to time a program that the backend built into `cache`. Raises NoToolError."""
    if isinstance(request.model, CompoundNetwork):
        raise NoToolError(f"{request.model.label} is several programs, with a loop in the host between them")
    module = _adapter_module(backend, "timing_tool")
    if module is None:
        raise NoToolError(f"no tool of the runtime of '{backend}' is known")
    return cast("Callable[[Program, Request, Path], Tool]", module.own_tool)(program, request, cache)


def explanation_for(backend: str, program: Program, request: Request, folder: Path) -> Explanation:
    """What the adapter says of a program that it built: what it offers, and its stages. `folder` is for its files."""
    if isinstance(program, CompoundProgram):
        return joined_explanation(
            {
                name: explanation_for(backend, part, program.requests[name], folder / name)
                for name, part in program.programs.items()
            }
        )
    folder.mkdir(parents=True, exist_ok=True)
    module = _adapter_module(backend, "explanation")
    if module is None:
        return Explanation((), "", (Unreadable("program", f"the adapter of '{backend}' has no module `explanation`."),))
    return cast("Callable[[Program, Request, Path], Explanation]", module.explain)(program, request, folder)


def _adapter_module(backend: str, name: str) -> Any:
    """The module of that name beside the backend's adapter; None where there is none."""
    module = f"{entry_of(backend).module}.{name}"
    try:
        if find_spec(module) is None:
            return None
    except ModuleNotFoundError:
        return None  # The adapter is a single module.
    return import_module(module)


def names() -> list[str]:
    return sorted({entry.name for entry in entry_points(group=GROUP)})
