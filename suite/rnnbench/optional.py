"""Packages that are missing: of an extra, with an error that says which; of rnnbench itself, with a sentence."""

from __future__ import annotations

import importlib
import sys
from typing import Any


class MissingExtraError(ImportError):
    """A package of an extra is not installed. The message says what needs it and what to install."""


def require(module: str, extra: str, purpose: str) -> Any:
    """The module; where its package is not installed, MissingExtraError. A package that is broken raises as it does."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A namespace such as `ruamel` may be there without the package that is wanted.
        if error.name not in (package, module):
            raise
        raise MissingExtraError(
            f"{purpose} needs {package}, which is not installed; pip install 'rnnbench[{extra}]'", name=package
        ) from error


def broken_installation(error: ModuleNotFoundError) -> str:
    """The sentence about a package that rnnbench always needs and that is missing; empty if it is a module of ours."""
    package = (error.name or "").partition(".")[0]
    if package in ("", "rnnbench"):
        return ""
    return (
        f"this installation is broken: {error}, in {sys.prefix}; install rnnbench there again, or "
        f"{sys.executable} -m pip install --force-reinstall {package}"
    )
